"""On-policy distillation learns: the base thinks in six of ten cases, its teacher always, and so does the student."""

from pathlib import Path

import pytest

from trl_reasoning.callbacks.progress import read_log
from trl_reasoning.cli import main


RECIPES = Path(__file__).resolve().parents[2] / "recipes"


@pytest.mark.slow
def test_held_out_accuracy_rises_by_a_fifth(tmp_path):
    """The teacher is the base after one epoch on careful thoughts; twenty steps of 64 samples of the student."""
    teacher, student = tmp_path / "teacher", tmp_path / "student"
    assert main(["train", str(RECIPES / "sft" / "sft_tiny.yaml"), "--output_dir", str(teacher)]) == 0
    words = ["--teacher_model_name_or_path", str(teacher), "--heldout.every", "20", "--save_strategy", "no"]
    recipe = RECIPES / "distillation" / "distillation_tiny.yaml"
    assert main(["train", str(recipe), *words, "--output_dir", str(student)]) == 0
    log = read_log(student / "train_log.jsonl")
    start, end = [row["heldout/accuracy"] for row in log if "heldout/accuracy" in row]
    assert end >= start + 0.2
    divergence = [row["divergence"] for row in log if "divergence" in row]
    assert sum(divergence[-5:]) < 0.5 * sum(divergence[:5])
