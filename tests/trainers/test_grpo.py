"""GRPO: the paper's settings, the parent's loss and the parent's metrics."""

import pytest
import torch
from trl import GRPOConfig, GRPOTrainer

from trl_reasoning.trainers import ReasoningGRPOConfig, ReasoningGRPOTrainer


@pytest.mark.parametrize(
    ("beta", "advantage", "expected"),
    [(0.0, 1.0, -0.083333), (0.0, 0.707107, -0.058926), (0.04, 1.0, -0.080714)],
)
def test_loss_averages_each_completion(make, loss_on_example, common, beta, advantage, expected):
    config = ReasoningGRPOConfig(**common, num_generations=2, max_completion_length=4, beta=beta)
    trainer = make(ReasoningGRPOTrainer, config)
    assert loss_on_example(trainer, [advantage, -advantage]) == pytest.approx(expected, abs=1e-6)


def test_advantages_are_scaled_by_the_sample_deviation(make, chain, common):
    config = ReasoningGRPOConfig(**common, num_generations=4, max_completion_length=4, beta=0.0)
    trainer = make(ReasoningGRPOTrainer, config)
    trainer.model.train()
    trainer._calculate_rewards = lambda *args: torch.tensor([[1.0], [0.0], [0.0], [1.0]])
    batch = trainer._generate_and_score_completions([chain[0]] * 4)
    assert batch["advantages"].tolist() == pytest.approx([0.865875, -0.865875, -0.865875, 0.865875], abs=1e-6)


@pytest.mark.parametrize(("loss_type", "expected"), [("grpo", False), ("vespo", True)])
def test_a_completion_that_the_sampler_correction_masks(make, common, loss_type, expected):
    """The correction is a factor of the loss, but VESPO has it inside its weight, which does not become 0."""
    trainer = make(
        ReasoningGRPOTrainer, ReasoningGRPOConfig(**common, num_generations=2, beta=0.0, loss_type=loss_type)
    )
    batch = {"completion_mask": torch.ones(2, 3), "advantages": torch.tensor([1.0, -1.0])}
    batch["importance_sampling_ratio"] = torch.tensor([[1.0], [0.0]])
    assert trainer.has_gradient(batch).tolist() == [True, expected]


def test_passes_that_fill_up_stay_out_of_the_entropy_that_steers(make, common):
    config = ReasoningGRPOConfig(
        **common, num_generations=2, beta=0.0, use_adaptive_entropy=True, entropy_target=0.5, entropy_coef=0.01
    )
    trainer = make(ReasoningGRPOTrainer, config)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    entropies, mask = torch.full((2, 3), 0.7), torch.ones(2, 3)
    for is_filler in (True, False):
        trainer._entropy_bonus({"is_filler": is_filler}, entropies, mask, None)
    assert trainer._entropy_window_stats.tolist() == pytest.approx([4.2, 6.0])


def test_a_run_after_one_that_was_broken_off(make, common):
    """The second micro-batch's reward fails; the next run's steps hold their own micro-batches alone."""
    calls, windows = [], []

    def reward(completions, completion_ids, **kwargs):
        calls.append(len(completions))
        if len(calls) == 2:
            raise RuntimeError("the grader is away")
        return [float(sum(ids) % 5) for ids in completion_ids]

    settings = {"num_generations": 4, "per_device_train_batch_size": 4, "max_completion_length": 8, "max_steps": 2}
    config = ReasoningGRPOConfig(**common, **settings, gradient_accumulation_steps=2, steps_per_generation=1)
    trainer = make(ReasoningGRPOTrainer, config, reward)
    with pytest.raises(RuntimeError, match="the grader is away"):
        trainer.train()
    update = trainer._update
    trainer._update = lambda model, window: windows.append(len(window)) or update(model, window)
    trainer.train()
    assert windows == [2, 2]


def test_defaults_are_the_papers(common):
    config = ReasoningGRPOConfig(**common)
    assert (config.loss_type, config.beta, config.scale_rewards) == ("grpo", 0.04, "group")
    assert config.use_bias_correction_kl is False and config.disable_dropout is True


def test_metrics_and_losses_are_the_parents(make, common):
    settings = {**common, "num_generations": 4, "max_completion_length": 12, "max_steps": 2, "learning_rate": 1e-3}
    same = {"loss_type": "grpo", "beta": 0.04, "use_bias_correction_kl": False, "disable_dropout": True}
    pairs = [(ReasoningGRPOTrainer, ReasoningGRPOConfig(**settings)), (GRPOTrainer, GRPOConfig(**settings, **same))]
    logs = []
    for trainer_class, config in pairs:
        trainer = make(trainer_class, config)  # sets the seed, so it is made right before it trains
        trainer.train()
        logs.append(trainer.state.log_history)
    own = {"update/rows_left_out", "update/padding", "update/tokens"}
    own |= {"thoughts/missing", "thoughts/asked", "rewards/length/skipped"}
    assert [set(log) - own for log in logs[0]] == [set(log) for log in logs[1]]
    for key in ("loss", "reward", "kl", "grad_norm"):
        assert [log[key] for log in logs[0][:2]] == pytest.approx([log[key] for log in logs[1][:2]], abs=1e-6)
