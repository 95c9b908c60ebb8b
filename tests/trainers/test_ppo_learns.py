"""PPO learns: from the shipped base, which thinks in six of ten cases, to one that nearly always does."""

from pathlib import Path

import pytest

from trl_reasoning.callbacks.progress import read_log
from trl_reasoning.cli import main


RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "rl" / "ppo_tiny.yaml"


@pytest.mark.slow
def test_held_out_accuracy_rises_by_a_fifth_and_the_value_learns(tmp_path):
    """Ten rollouts, 40 updates: 62.5 % of 120 held-out chains before; at least 82.5 % after, 95.0 % measured."""
    words = ["--max_steps", "40", "--heldout.every", "40", "--save_strategy", "no", "--output_dir", str(tmp_path)]
    assert main(["train", str(RECIPE), *words]) == 0
    log = read_log(tmp_path / "train_log.jsonl")
    start, end = [row["heldout/accuracy"] for row in log if "heldout/accuracy" in row]
    assert end >= start + 0.2
    losses = [row["value_loss"] for row in log if "value_loss" in row]
    assert sum(losses[-8:]) < 0.5 * sum(losses[:8])
