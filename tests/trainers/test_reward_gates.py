"""Gates before rewards, and rewards normalised each by itself, in the policy trainers."""

import pytest
import torch

from trl_reasoning.errors import UserError
from trl_reasoning.rewards import REWARDS
from trl_reasoning.trainers import (
    DrGRPOConfig,
    DrGRPOTrainer,
    GRPOPSConfig,
    KimiConfig,
    KimiTrainer,
    OnlineRFTConfig,
    OnlineRFTTrainer,
    PPOConfig,
    PPOTrainer,
    ReasoningGRPOConfig,
    ReasoningGRPOTrainer,
)


METHODS = [
    (ReasoningGRPOTrainer, ReasoningGRPOConfig, {}),
    (DrGRPOTrainer, DrGRPOConfig, {}),
    (KimiTrainer, KimiConfig, {"num_iterations": 2}),
    (OnlineRFTTrainer, OnlineRFTConfig, {"correct_threshold": 1.0}),
    (PPOTrainer, PPOConfig, {"num_generations": 4, "kl_coef": 0.0}),
]
# Right in the form, wrong in it, right without it, wrong without it.
TEXTS = ["<think>9-5</think>4", "<think>9-5</think>5", "4", "5"]


@pytest.fixture
def build(tiny, chain, common):
    def make(trainer_class, config_class, names=("accuracy", "format"), **changes):
        settings = {
            "per_device_train_batch_size": 4,
            "num_generations": 4,
            "max_completion_length": 12,
            "max_steps": 1,
        }
        rewards = [REWARDS[name]() for name in names]
        args = config_class(**{**common, **settings, "reward_weights": [1.0, 0.5], **changes})
        return trainer_class(model=tiny, args=args, reward_funcs=rewards, train_dataset=chain)

    return make


def score(trainer, golds=("4",) * 4, texts=TEXTS):
    trainer.model.train()
    trainer._is_complete = [True] * len(texts)
    rows = [{"prompt": "?", "solution": gold} for gold in golds]
    return trainer._calculate_rewards(rows, ["?"] * len(texts), texts, [[1]] * len(texts))


@pytest.mark.parametrize(("trainer_class", "config_class", "changes"), METHODS)
def test_the_form_counts_where_the_answer_is_right_in_every_method(build, trainer_class, config_class, changes):
    trainer = build(trainer_class, config_class, **changes, reward_gates={"format": "accuracy"})
    assert score(trainer).tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    metrics = trainer._metrics["train"]
    assert metrics["rewards/format_reward/ungated_mean"] == [0.5]
    assert metrics["rewards/format_reward/gate_open"] == [0.5]
    if isinstance(trainer, OnlineRFTTrainer):
        assert trainer._is_right.tolist() == [True, False, True, False]
    if isinstance(trainer, PPOTrainer):
        assert trainer._scores.tolist() == [1.5, 0.0, 1.0, 0.0]


def test_without_gates_nothing_changes(build):
    trainer = build(ReasoningGRPOTrainer, ReasoningGRPOConfig)
    assert score(trainer).tolist() == [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]
    assert "rewards/format_reward/gate_open" not in trainer._metrics["train"]


def test_a_row_without_a_readable_gold_has_no_reward_at_all(build):
    """The form would be its only reward, and it would be paid for any answer."""
    trainer = build(ReasoningGRPOTrainer, ReasoningGRPOConfig, reward_gates={"format": "accuracy"})
    rewards = score(trainer, golds=(None, "4", "4", "4"))
    assert rewards[0].isnan().all() and not rewards[1:].isnan().any()
    assert trainer._metrics["train"]["rewards/format_reward/ungated_mean"] == [pytest.approx(1 / 3)]
    assert trainer._metrics["train"]["rewards/format_reward/gate_open"] == [pytest.approx(1 / 3)]


def test_the_length_reward_behind_a_gate(build):
    """Lengths are all 1 but for the last: lambda is 0.5 for the short ones, and -0.5 for the long wrong answer."""
    gate = {"kimi_length": {"reward": "accuracy", "otherwise": 0.0}}
    trainer = build(ReasoningGRPOTrainer, ReasoningGRPOConfig, names=("accuracy", "kimi_length"), reward_gates=gate)
    trainer._is_complete = [True] * 4
    rows = [{"prompt": "?", "solution": "4"}] * 4
    rewards = trainer._calculate_rewards(rows, ["?"] * 4, TEXTS, [[1], [1], [1], [1] * 9])
    assert rewards.tolist() == [[1.0, 0.5], [0.0, 0.0], [1.0, 0.5], [0.0, 0.0]]


def test_the_logged_reward_is_the_weighted_sum_of_the_logged_means(build):
    trainer = build(DrGRPOTrainer, DrGRPOConfig, reward_gates={"format": "accuracy"}, max_steps=2)
    trainer.train()
    for log in (log for log in trainer.state.log_history if "reward" in log):
        accuracy, form = (log[f"rewards/{name}_reward/mean"] for name in ("accuracy", "format"))
        assert log["reward"] == pytest.approx(accuracy + 0.5 * form)
        assert form <= log["rewards/format_reward/ungated_mean"]


def test_a_gate_of_an_unknown_reward_is_refused(build):
    with pytest.raises(UserError, match=r"reward_gates\.form: 'form' is not one of the rewards"):
        build(ReasoningGRPOTrainer, ReasoningGRPOConfig, reward_gates={"form": "accuracy"})


def test_each_reward_normalised_in_its_group(build):
    """Gated first: form is 1 0 0 0 with standard deviation 0.5; accuracy 1 0 1 0 with 0.577."""
    trainer = build(
        ReasoningGRPOTrainer,
        ReasoningGRPOConfig,
        reward_gates={"format": "accuracy"},
        multi_objective_aggregation="normalize_then_sum",
    )
    trainer._generate = stub(trainer, TEXTS)
    trainer.model.train()
    rows = [{"prompt": "?", "solution": "4"}] * 4
    advantages = trainer._generate_and_score_completions(rows)["advantages"]
    accuracy = torch.tensor([0.5, -0.5, 0.5, -0.5]) / (1 / 3) ** 0.5
    form = torch.tensor([0.75, -0.25, -0.25, -0.25]) / 0.5
    total = accuracy + 0.5 * form
    assert advantages.tolist() == pytest.approx((total / total.std()).tolist(), abs=2e-3)


def stub(trainer, texts):
    def generate(prompts):
        ids = [trainer.processing_class(text)["input_ids"] for text in texts]
        trainer._is_complete = [True] * len(ids)
        return [[1]] * len(ids), ids, None, texts, None, {}, None, None

    return generate


def test_normalisation_is_refused_where_it_means_something_else(build, common):
    keys = {"multi_objective_aggregation": "normalize_then_sum"}
    with pytest.raises(UserError, match="kimi_length the same spread as accuracy"):
        build(ReasoningGRPOTrainer, ReasoningGRPOConfig, names=("accuracy", "kimi_length"), **keys)
    with pytest.raises(ValueError, match="`outcome_weight` above 0 alone"):
        GRPOPSConfig(**common, **keys)
    GRPOPSConfig(**common, **keys, outcome_weight=0.5)
    for config_class in (KimiConfig, OnlineRFTConfig, PPOConfig, DrGRPOConfig):
        with pytest.raises(ValueError, match="multi_objective_aggregation: .* needs 'sum_then_normalize'"):
            config_class(**common, **keys)
