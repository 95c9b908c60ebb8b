"""Dr. GRPO: its loss on worked numbers, its zero for truncated completions, and what it refuses."""

import math

import pytest
import torch

from trl_reasoning.trainers import DrGRPOConfig, DrGRPOTrainer, ReasoningGRPOConfig


@pytest.mark.parametrize(("max_length", "expected"), [(3, -0.116667), (4, -0.0875)])
def test_loss_is_a_sum_over_a_constant(make, loss_on_example, common, max_length, expected):
    config = DrGRPOConfig(**common, num_generations=2, max_completion_length=max_length)
    trainer = make(DrGRPOTrainer, config)
    assert loss_on_example(trainer, [0.5, -0.5]) == pytest.approx(expected, abs=1e-6)


def test_advantages_are_not_scaled(make, chain, common):
    config = DrGRPOConfig(**common, num_generations=8, max_completion_length=4, zero_truncated_reward=False)
    trainer = make(DrGRPOTrainer, config)
    rows = [chain[0]] * 8
    trainer.model.train()
    trainer._calculate_rewards = lambda *args: torch.tensor([[1.0], [0.0], [0.0], [1.0]] * 2)
    batch = trainer._generate_and_score_completions(rows)
    assert batch["advantages"].tolist() == pytest.approx([0.5, -0.5, -0.5, 0.5] * 2)


def test_truncated_completion_scores_zero_and_none_stays_none(make, chain, common):
    config = DrGRPOConfig(**common, num_generations=4, per_device_train_batch_size=4, max_completion_length=32)
    trainer = make(DrGRPOTrainer, config, lambda completions, **kwargs: [2.0, 2.0, None, None])
    trainer._is_complete = [True, False, True, False]
    rewards = trainer._calculate_rewards([chain[0]] * 4, [chain[0]["prompt"]] * 4, [""] * 4, [[1]] * 4)
    assert rewards[:2, 0].tolist() == [2.0, 0.0]
    assert all(math.isnan(value) for value in rewards[2:, 0].tolist())


def test_a_cut_batch_is_scored_zero_in_a_real_step(make, common):
    config = DrGRPOConfig(
        **common, num_generations=4, per_device_train_batch_size=4, max_completion_length=1, max_steps=1
    )
    trainer = make(DrGRPOTrainer, config)
    trainer.train()
    log = trainer.state.log_history[0]
    assert log["completions/clipped_ratio"] == 1.0
    assert log["reward"] == 0.0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("loss_type", "dapo"),
        ("scale_rewards", "group"),
        ("beta", 0.04),
        ("importance_sampling_level", "sequence"),
        ("multi_objective_aggregation", "normalize_then_sum"),
        ("mask_truncated_completions", True),
        ("top_entropy_quantile", 0.2),
        ("delta", 2.0),
        ("off_policy_mask_threshold", 0.5),
    ],
)
def test_contradictions_are_refused_by_name(common, key, value):
    with pytest.raises(ValueError, match=f"^{key}: dr_grpo"):
        DrGRPOConfig(**common, **{key: value})


def test_unknown_loss_type_is_refused_before_the_first_loss(common):
    with pytest.raises(ValueError, match="loss_type.*'grpoo'"):
        ReasoningGRPOConfig(**common, loss_type="grpoo")
