"""Rows and a trainer that the tests of process reward models share."""

from typing import Any

from datasets import Dataset
from peft import LoraConfig

from trl_reasoning.builtin import make_chain_steps_dataset
from trl_reasoning.trainers import PRMConfig, PRMTrainer


def step_rows(size: int = 8, split: str = "train", **settings: Any) -> Dataset:
    """Worked chains, most with a slip."""
    rows = make_chain_steps_dataset(split, size=size, **{"operands": (2, 4), "slip_share": 0.7, **settings})
    return rows.select_columns(["prompt", "steps", "labels"])


def lora(**settings: Any) -> LoraConfig:
    return LoraConfig(**{"r": 4, "target_modules": "all-linear", "task_type": "TOKEN_CLS", **settings})


def make_trainer(model: Any, common: dict[str, Any], rows: Dataset, **settings: Any) -> PRMTrainer:
    """A trainer; data sets, tokenizer and adapter settings go to it, everything else to its configuration."""
    names = ("eval_dataset", "peft_config", "processing_class", "quantization_config", "callbacks")
    given = {name: settings.pop(name) for name in names if name in settings}
    return PRMTrainer(model, PRMConfig(**{**common, **settings}), rows, **given)


def logged(trainer: Any, *keys: str) -> list[list[float]]:
    """These numbers of each training step."""
    return [[log[key] for key in keys] for log in trainer.state.log_history if "loss" in log]
