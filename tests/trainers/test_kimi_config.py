"""What the configuration of Kimi k1.5 refuses, and what it warns about."""

import pytest

from trl_reasoning.trainers import KimiConfig


@pytest.fixture
def settings(common) -> dict:
    return {**common, "num_generations": 4, "per_device_train_batch_size": 4, "num_iterations": 2}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("loss_type", "dapo"),
        ("scale_rewards", "group"),
        ("beta", 0.04),
        ("epsilon", 0.1),
        ("epsilon_high", 0.28),
        ("delta", 2.0),
        ("importance_sampling_level", "sequence"),
        ("multi_objective_aggregation", "normalize_then_sum"),
        ("top_entropy_quantile", 0.2),
        ("off_policy_mask_threshold", 0.5),
        ("ref_model_mixup_alpha", 0.6),
    ],
)
def test_contradictions_are_refused_by_name(settings, key, value):
    with pytest.raises(ValueError, match=f"^{key}: kimi"):
        KimiConfig(**settings, **{key: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tau": 0.0}, "^tau: expected more than 0, got 0.0"),
        ({"baseline": "median"}, "^baseline: .*'log_mean_exp'.*'median'"),
        ({"batches_per_iteration": 0}, "^batches_per_iteration: expected at least 1"),
        ({"gradient_accumulation_steps": 4, "steps_per_generation": 3, "num_iterations": 1}, "^steps_per_.*write 4$"),
        ({"gradient_accumulation_steps": 4, "steps_per_generation": 1, "num_iterations": 2}, "^steps_per_.*write 2$"),
        ({"use_vllm": True, "vllm_importance_sampling_mode": "token_truncate"}, "^vllm_importance_sampling_mode: "),
    ],
)
def test_impossible_settings(settings, change, message):
    with pytest.raises(ValueError, match=message):
        KimiConfig(**{**settings, **change})


def test_more_batches_an_iteration_are_warned_about(settings):
    with pytest.warns(UserWarning, match="^batches_per_iteration 2: .* not the reference"):
        KimiConfig(**settings, batches_per_iteration=2)


def test_one_update_an_iteration_leaves_tau_without_effect(settings):
    settings["num_iterations"] = 1
    with pytest.warns(UserWarning, match=r"tau does nothing.*steps_per_generation \(now 1\)"):
        KimiConfig(**settings)
    KimiConfig(**settings, baseline="log_mean_exp")  # here it is in the baseline
    KimiConfig(**settings, steps_per_generation=2)
