"""The tiny model and task that the trainer tests share."""

from pathlib import Path

import pytest
import torch


# The 2 x 3 example whose losses were worked out by hand: ratios, a mask of lengths 3 and 2, log pi_ref - log pi.
RATIOS = torch.tensor([[1.1, 0.9, 1.5], [1.0, 0.7, 1.0]])
MASK = torch.tensor([[1, 1, 1], [1, 1, 0]])
REF_GAPS = torch.tensor([[0.1, -0.1, 0.0], [0.5, -0.5, 0.0]])


@pytest.fixture
def loss_on_example():
    """`_compute_loss` on the example: the log-probs are put in where the model's forward would give them."""

    def loss(trainer, advantages: list[float]) -> float:
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

    return loss


@pytest.fixture
def make(tiny, chain, length_reward):
    """A trainer on the tiny model, the chain task and the length reward unless another reward is given."""

    def build(trainer_class, config, reward=None):
        return trainer_class(model=tiny, args=config, reward_funcs=[reward or length_reward], train_dataset=chain)

    return build


@pytest.fixture
def learn(tmp_path):
    """Train a recipe of `recipes/rl`; held-out accuracy has to rise by a fifth. Gives the rows of its log."""
    from trl_reasoning.callbacks.progress import read_log
    from trl_reasoning.cli import main

    def run(name: str, steps: int) -> list[dict]:
        recipe = Path(__file__).resolve().parents[2] / "recipes" / "rl" / f"{name}.yaml"
        words = ["--max_steps", str(steps), "--heldout.every", str(steps), "--save_strategy", "no"]
        assert main(["train", str(recipe), *words, "--output_dir", str(tmp_path)]) == 0
        log = read_log(tmp_path / "train_log.jsonl")
        start, end = [row["heldout/accuracy"] for row in log if "heldout/accuracy" in row]
        assert end >= start + 0.2
        return log

    return run


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
