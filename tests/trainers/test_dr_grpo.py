"""Dr. GRPO: its loss on worked numbers, its zero for truncated completions, and what it refuses."""

import math

import pytest
import torch

from trl_reasoning.trainers import DrGRPOConfig, DrGRPOTrainer, ReasoningGRPOConfig, ReasoningGRPOTrainer


RATIOS = torch.tensor([[1.1, 0.9, 1.5], [1.0, 0.7, 1.0]])
MASK = torch.tensor([[1, 1, 1], [1, 1, 0]])
REF_GAPS = torch.tensor([[0.1, -0.1, 0.0], [0.5, -0.5, 0.0]])  # log pi_ref - log pi


def loss_on_toy(trainer, advantages: list[float]) -> float:
    """`_compute_loss` on given ratios: the log-probs are put in where the model's forward would give them."""
    logps = RATIOS.log()
    trainer._get_per_token_logps_and_entropies = lambda *args, **kwargs: (logps, torch.zeros_like(logps), None)
    trainer.current_gradient_accumulation_steps = 1
    inputs = {
        "prompt_ids": torch.ones(2, 1, dtype=torch.long),
        "prompt_mask": torch.ones(2, 1, dtype=torch.long),
        "completion_ids": torch.ones(2, 3, dtype=torch.long),
        "completion_mask": MASK,
        "advantages": torch.tensor(advantages),
        "old_per_token_logps": torch.zeros_like(logps),
        "ref_per_token_logps": logps + REF_GAPS,
        "num_items_in_batch": torch.tensor(5),
    }
    return trainer._compute_loss(trainer.model, inputs).item()


def make(trainer_class, config, tiny, chain, reward):
    return trainer_class(model=tiny, args=config, reward_funcs=[reward], train_dataset=chain)


@pytest.mark.parametrize(("max_length", "expected"), [(3, -0.116667), (4, -0.0875)])
def test_loss_is_a_sum_over_a_constant(tiny, chain, common, length_reward, max_length, expected):
    config = DrGRPOConfig(**common, num_generations=2, max_completion_length=max_length)
    trainer = make(DrGRPOTrainer, config, tiny, chain, length_reward)
    assert loss_on_toy(trainer, [0.5, -0.5]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("beta", "advantage", "expected"),
    [(0.0, 1.0, -0.083333), (0.0, 0.707107, -0.058926), (0.04, 1.0, -0.080714)],
)
def test_grpo_loss_averages_each_completion(tiny, chain, common, length_reward, beta, advantage, expected):
    config = ReasoningGRPOConfig(**common, num_generations=2, max_completion_length=4, beta=beta)
    trainer = make(ReasoningGRPOTrainer, config, tiny, chain, length_reward)
    assert loss_on_toy(trainer, [advantage, -advantage]) == pytest.approx(expected, abs=1e-6)


def test_advantages_are_not_scaled(tiny, chain, common, length_reward):
    config = DrGRPOConfig(**common, num_generations=8, max_completion_length=4, zero_truncated_reward=False)
    trainer = make(DrGRPOTrainer, config, tiny, chain, length_reward)
    rows = [chain[0]] * 8
    trainer._calculate_rewards = lambda *args: torch.tensor([[1.0], [0.0], [0.0], [1.0]] * 2)
    batch = trainer._generate_and_score_completions(rows)
    assert batch["advantages"].tolist() == pytest.approx([0.5, -0.5, -0.5, 0.5] * 2)


def test_truncated_completion_scores_zero_and_none_stays_none(tiny, chain, common, length_reward):
    config = DrGRPOConfig(**common, num_generations=4, per_device_train_batch_size=4, max_completion_length=32)
    trainer = make(DrGRPOTrainer, config, tiny, chain, lambda completions, **kwargs: [2.0, 2.0, None, None])
    trainer._is_complete = [True, False, True, False]
    rewards = trainer._calculate_rewards([chain[0]] * 4, [chain[0]["prompt"]] * 4, [""] * 4, [[1]] * 4)
    assert rewards[:2, 0].tolist() == [2.0, 0.0]
    assert all(math.isnan(value) for value in rewards[2:, 0].tolist())


def test_a_cut_batch_is_scored_zero_in_a_real_step(tiny, chain, common, length_reward):
    config = DrGRPOConfig(**common, num_generations=4, per_device_train_batch_size=4, max_completion_length=1, max_steps=1)
    trainer = make(DrGRPOTrainer, config, tiny, chain, length_reward)
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
    ],
)
def test_contradictions_are_refused_by_name(common, key, value):
    with pytest.raises(ValueError, match=f"^{key}: dr_grpo"):
        DrGRPOConfig(**common, **{key: value})


def test_unknown_loss_type_is_refused_before_the_first_loss(common):
    with pytest.raises(ValueError, match="loss_type.*'grpoo'"):
        ReasoningGRPOConfig(**common, loss_type="grpoo")
