"""A reward model learns to tell right chain arithmetic from wrong."""

from pathlib import Path

import pytest

from trl_reasoning.callbacks.progress import read_log
from trl_reasoning.cli import main


RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "reward" / "reward_tiny.yaml"


@pytest.mark.slow
def test_held_out_pairs_of_equal_length_are_told_apart(tmp_path):
    """Chance is 50 %, with a standard error of 3 % on 300 pairs; at least 65 % are needed after 60 steps."""
    params = "{operands: [2, 2], seed: 1}"
    words = ["--max_steps", "60", "--eval_steps", "60", "--save_strategy", "no", "--output_dir", str(tmp_path)]
    for key in ("datasets.0.params", "eval_datasets.0.params", "demonstrations.params"):
        words += [f"--{key}", params]
    assert main(["train", str(RECIPE), *words]) == 0
    log = read_log(tmp_path / "train_log.jsonl")
    (accuracy,) = [row["eval_accuracy"] for row in log if "eval_accuracy" in row]
    assert accuracy >= 0.65
