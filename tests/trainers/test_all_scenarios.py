"""R1's last stage: rule rewards for one kind of prompt, a reward model for another, each group by itself."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from transformers import AutoConfig, AutoTokenizer, Qwen3ForSequenceClassification

from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.cli import main
from trl_reasoning.generation.scorers import RewardModelScorer
from trl_reasoning.rewards import REWARDS
from trl_reasoning.rewards.routing import make_routed_reward
from trl_reasoning.trainers import (
    DrGRPOConfig,
    DrGRPOTrainer,
    PPOConfig,
    PPOTrainer,
    ReasoningGRPOConfig,
    ReasoningGRPOTrainer,
)


CHAT = [{"role": "user", "content": "2=?"}]
# Two completions a prompt are right, two have the form; each in another order.
REPLIES = [r"<think>a</think>\boxed{4}", r"<think>a</think>\boxed{5}", "5", r"\boxed{4}"]


@pytest.fixture(scope="module")
def reward_model(tmp_path_factory) -> Path:
    """A random reward model with the tokenizer of the tiny model."""
    folder = tmp_path_factory.mktemp("reward")
    path = resolve_model("builtin:tiny")
    config = AutoConfig.from_pretrained(path, num_labels=1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        Qwen3ForSequenceClassification(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(path).save_pretrained(folder)
    return folder


def fixed(name: str, values: list[float]):
    """A reward of one value a completion, in their order."""

    def reward(prompts, completions, **kwargs):
        assert len(completions) == len(values)
        return values

    reward.__name__ = name
    return reward


def advantages(trainer_class, config, rewards, rows, replies=None) -> list[float]:
    """Advantages of one generated batch; `replies` take the place of what the model wrote."""
    trainer = trainer_class(model=resolve_model("builtin:tiny"), args=config, reward_funcs=rewards, train_dataset=rows)
    trainer.model.train()
    if replies is not None:
        score = trainer._calculate_rewards
        trainer._calculate_rewards = lambda inputs, prompts, completions, ids: score(inputs, prompts, replies, ids)
    repeated = [row for row in rows for _ in range(4)]
    return trainer._generate_and_score_completions(repeated)["advantages"].tolist()


@pytest.fixture
def rows():
    """A problem and a prompt without a right answer."""
    dataset = make_chain_dataset(size=2, operands=(2, 2)).select_columns(["prompt"])
    return dataset.add_column("scenario", ["math", "chat"]).add_column("solution", ["4", None])


@pytest.fixture
def settings(common) -> dict:
    return {**common, "num_generations": 4, "per_device_train_batch_size": 8, "max_completion_length": 4}


def routed(reward, *values):
    return make_routed_reward(reward, "scenario", values)


def test_hand_computed_advantages_of_each_group(rows, settings) -> None:
    """
    Sums of the problem's group: accuracy 1 0 0 1 and form 1 1 0 0 give 2 1 0 1; mean 1, sample deviation sqrt(2/3).
    Of the other: model 2 4 6 8 and form 1 1 0 0 give 3 5 6 8; mean 5.5, sample deviation sqrt(13/3).
    """
    rewards = [
        routed(fixed("accuracy", [1.0, 0.0, 0.0, 1.0]), "math"),
        routed(fixed("model", [2.0, 4.0, 6.0, 8.0]), "chat"),
        fixed("form", [1.0, 1.0, 0.0, 0.0] * 2),
    ]
    centred = [1.0, 0.0, -1.0, 0.0, -2.5, -0.5, 0.5, 2.5]
    plain = advantages(DrGRPOTrainer, DrGRPOConfig(**settings, zero_truncated_reward=False), rewards, rows)
    assert plain == pytest.approx(centred, abs=1e-6)
    scales = [(2 / 3) ** 0.5 + 1e-4] * 4 + [(13 / 3) ** 0.5 + 1e-4] * 4
    expected = [value / scale for value, scale in zip(centred, scales, strict=True)]
    scaled = advantages(ReasoningGRPOTrainer, ReasoningGRPOConfig(**settings), rewards, rows)
    assert scaled == pytest.approx(expected, abs=1e-5)


def test_a_model_in_one_group_does_not_move_the_other(rows, settings, reward_model) -> None:
    """Accuracy and form of the replies are 2, 1, 0, 1; the other group's scores are the model's alone plus form."""
    scorer = RewardModelScorer(str(reward_model), sees="answer")
    rewards = [routed(REWARDS["accuracy"](), "math"), routed(scorer, "chat"), REWARDS["format"]()]
    config = DrGRPOConfig(**settings, zero_truncated_reward=False)
    values = advantages(DrGRPOTrainer, config, rewards, rows, REPLIES * 2)
    assert values[:4] == pytest.approx([1.0, 0.0, -1.0, 0.0], abs=1e-6)
    answers = [r"\boxed{4}", r"\boxed{5}", "5", r"\boxed{4}"]
    alone = [scorer.score([(rows[1]["prompt"], answer)])[0] for answer in answers]
    sums = [score + form for score, form in zip(alone, [1.0, 1.0, 0.0, 0.0], strict=True)]
    mean = sum(sums) / 4
    assert values[4:] == pytest.approx([value - mean for value in sums], abs=1e-5)


def test_a_value_function_starts_from_the_reward_model(settings, rows, reward_model) -> None:
    """PPO finds the model inside the scorer, also where it scores some rows only."""
    scorer = RewardModelScorer(str(reward_model), sees="answer")
    model: Any = scorer.model
    before = model.score.weight.clone()
    config = PPOConfig(**{**settings, "num_generations": 1, "max_steps": 1, "learning_rate": 1e-3})
    rewards = [routed(REWARDS["accuracy"](), "math"), routed(scorer, "chat"), REWARDS["format"]()]
    chain = make_chain_dataset(size=16, operands=(2, 2)).add_column("scenario", ["math", "chat"] * 8)
    trainer = PPOTrainer(resolve_model("builtin:tiny"), rewards, config, train_dataset=chain)
    value: Any = trainer.value_function
    assert torch.equal(value.head.weight, before)
    copied = dict(model.base_model.named_parameters())
    assert all(torch.equal(parameter, copied[name]) for name, parameter in value.trunk.named_parameters())
    trainer.train()
    assert not torch.equal(value.head.weight, before)
    assert torch.equal(model.score.weight, before)


def test_a_recipe_with_a_reward_model(tmp_path, reward_model) -> None:
    recipe = {
        "method": "dr_grpo",
        "model_name_or_path": "builtin:tiny",
        "datasets": [
            {"path": "builtin:chain", "size": 8, "constants": {"scenario": "math"}},
            {"path": "builtin:chain", "size": 8, "constants": {"scenario": "chat"}, "params": {"seed": 3}},
        ],
        "reward_funcs": [
            {"name": "accuracy", "for": {"scenario": "math"}},
            {"name": "reward_model", "model": str(reward_model), "sees": "answer", "for": {"scenario": "chat"}},
            "format",
        ],
        "per_device_train_batch_size": 16,
        "num_generations": 4,
        "max_completion_length": 16,
        "max_steps": 2,
        "temperature": 0.7,
        "report_to": "none",
        "output_dir": str(tmp_path / "out"),
    }
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    assert main(["train", str(tmp_path / "recipe.yaml"), "--save_strategy", "no"]) == 0
    log = [json.loads(line) for line in (tmp_path / "out" / "train_log.jsonl").read_text().splitlines()]
    steps = [row for row in log if "reward" in row]
    assert len(steps) == 2
    # A reward that was for no row of a batch has no mean there.
    for name in ("accuracy_reward", "reward_model", "format_reward"):
        assert any(isinstance(row[f"rewards/{name}/mean"], float) for row in steps)
