"""GRPO with a renewed reference and Dr. GRPO learn: from a base that thinks in six of ten cases to one that does."""

from pathlib import Path

import pytest

from trl_reasoning.callbacks.progress import read_log
from trl_reasoning.cli import main


RECIPES = Path(__file__).resolve().parents[2] / "recipes" / "rl"


@pytest.mark.slow
@pytest.mark.parametrize("stem", ["grpo", "dr_grpo"])
def test_held_out_accuracy_rises_by_a_fifth(tmp_path, stem):
    """40 steps: 62.5 % of 120 held-out chains before; at least 82.5 % after."""
    words = ["--max_steps", "40", "--heldout.every", "40", "--save_strategy", "no", "--output_dir", str(tmp_path)]
    assert main(["train", str(RECIPES / f"{stem}_tiny.yaml"), *words]) == 0
    log = read_log(tmp_path / "train_log.jsonl")
    start, end = [row["heldout/accuracy"] for row in log if "heldout/accuracy" in row]
    assert end >= start + 0.2
    if stem == "grpo":
        assert [row["reference/step"] for row in log if "reference/step" in row] == [0.0] * 20 + [20.0] * 20
