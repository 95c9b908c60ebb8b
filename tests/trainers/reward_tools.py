"""Rows and a trainer that the tests of reward models share."""

from typing import Any

from datasets import Dataset
from peft import LoraConfig

from trl_reasoning.builtin import make_chain_pairs_dataset
from trl_reasoning.trainers import ReasoningRewardConfig, ReasoningRewardTrainer


PAIR = ["prompt", "chosen", "rejected"]


def chain_pairs(size: int = 8) -> Dataset:
    """Pairs of messages whose replies have unequal lengths."""
    return make_chain_pairs_dataset(size=size, operands=(2, 4), length_bias=0.5).select_columns(PAIR)


def as_text(pairs: Dataset) -> Dataset:
    """The same as plain text."""

    def convert(row: dict[str, Any]) -> dict[str, str]:
        return {column: row[column][-1]["content"] for column in PAIR}

    return Dataset.from_list([convert(row) for row in pairs])  # type: ignore[arg-type]


def rankings(counts: list[int]) -> Dataset:
    """Plain text prompts with these numbers of replies, all of different scores."""
    rows = []
    for row, count in enumerate(counts):
        replies = [f"{number}+{row}" * (1 + number % 3) for number in range(count)]
        rows.append({"prompt": f"{row}+1=?", "replies": replies, "scores": [float(number) for number in range(count)]})
    return Dataset.from_list(rows)


def lora(**settings: Any) -> LoraConfig:
    return LoraConfig(**{"r": 4, "target_modules": "all-linear", "task_type": "SEQ_CLS", **settings})


def make_trainer(model: Any, common: dict[str, Any], rows: Dataset, **settings: Any) -> ReasoningRewardTrainer:
    """A trainer; data sets, tokenizer and adapter settings go to it, everything else to its configuration."""
    names = ("eval_dataset", "peft_config", "processing_class", "quantization_config")
    given = {name: settings.pop(name) for name in names if name in settings}
    if isinstance(settings.get("demonstrations"), Dataset):
        given["demonstrations"] = settings.pop("demonstrations")
    return ReasoningRewardTrainer(model, ReasoningRewardConfig(**{**common, **settings}), rows, **given)


def logged(trainer: Any, *keys: str) -> list[list[float]]:
    """These numbers of each training step."""
    return [[log[key] for key in keys] for log in trainer.state.log_history if "loss" in log]
