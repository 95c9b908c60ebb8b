"""Kimi k1.5 with LoRA on a 4-bit base, an 8-bit optimizer that is reset, and a frozen copy of the adapter."""

from pathlib import Path

import pytest

from trl_reasoning.callbacks.progress import read_log
from trl_reasoning.cli import main


SMOKE = Path(__file__).resolve().parents[2] / "recipes" / "smoke" / "kimi_tiny.yaml"


@pytest.mark.filterwarnings("ignore:batches_per_iteration")
def test_two_batches_an_iteration_on_a_four_bit_base(tmp_path):
    pytest.importorskip("bitsandbytes", reason="bitsandbytes (extra `quantization`) is not installed")
    words = ["--load_in_4bit", "true", "--use_peft", "true", "--lora_r", "4", "--learning_rate", "1e-3"]
    words += ["--optim", "adamw_8bit", "--batches_per_iteration", "2", "--max_steps", "6"]
    assert main(["train", str(SMOKE), *words, "--output_dir", str(tmp_path)]) == 0
    log = [row for row in read_log(tmp_path / "train_log.jsonl") if "loss" in row]
    assert [row.get("reference/step") for row in log] == [0.0, None, 0.0, None, 4.0, None]
    drifts = [row["kimi/log_ratio_abs_max"] for row in log]
    # The live policy and its frozen copy agree to the last bit at the start of each iteration of four updates.
    assert drifts[0] == drifts[4] == 0.0
    assert all(drift > 1e-3 for drift in (*drifts[1:4], drifts[5]))
    assert [row.get("length_reward/weight") for row in log] == [0.0, None, 0.5, None, 0.5, None]
