"""The tiny model and task that the trainer tests share."""

import pytest


@pytest.fixture
def tiny() -> str:
    from trl_reasoning.builtin import resolve_model

    return resolve_model("builtin:tiny")


@pytest.fixture
def tokenizer(tiny):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny)


@pytest.fixture
def chain():
    from trl_reasoning.builtin import make_chain_dataset

    return make_chain_dataset(size=16, operands=(2, 4))


@pytest.fixture
def common(tmp_path) -> dict:
    """Settings that every small training run here uses."""
    return {
        "output_dir": str(tmp_path / "out"),
        "bf16": False,
        "activation_checkpointing": False,
        "dataloader_pin_memory": False,
        "report_to": [],
        "disable_tqdm": True,
        "logging_steps": 1,
        "save_strategy": "no",
        "use_cpu": True,
    }


class LengthReward:
    """Rewards by the number of tokens and remembers the prompts it saw."""

    __name__ = "length"

    def __init__(self):
        self.prompts = []

    def __call__(self, prompts, completions, completion_ids, **kwargs):
        self.prompts.extend(prompt[-1]["content"] for prompt in prompts)
        return [float(len(ids)) + 0.1 * sum(ids) for ids in completion_ids]


@pytest.fixture
def length_reward() -> LengthReward:
    return LengthReward()
