"""Gates and the watch for tricked rewards in two processes: shares over both, one file of samples."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


SMOKE = Path(__file__).parents[2] / "recipes" / "smoke" / "grpo_gated_tiny.yaml"


def test_shares_are_those_of_both_processes_and_one_of_them_writes(tmp_path):
    """Two rows in each process, whose groups of four span both: every share is a number of quarters."""
    command = [sys.executable, "-m", "trl_reasoning", "train", str(SMOKE), "--accelerate", "cpu_2"]
    command += ["--per_device_train_batch_size", "2", "--output_dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    logs = [json.loads(line) for line in (tmp_path / "train_log.jsonl").read_text().splitlines()]
    logs = [log for log in logs if "reward" in log]
    assert len(logs) == 2
    for log in logs:
        names = ("skipped", "right", "wrong", "unparsed", "timed_out")
        shares = [log[f"rewards/accuracy_reward/{name}"] for name in names]
        shares += [log["thoughts/missing"], log["rewards/format_reward/gate_open"]]
        assert sum(shares[:5]) == pytest.approx(1.0)
        assert all(share * 4 == pytest.approx(round(share * 4)) for share in shares)
        assert log["rewards/accuracy_reward/right"] == log["rewards/format_reward/gate_open"]
    lines = [json.loads(line) for line in (tmp_path / "reward_samples.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1] * 4
    right = sum(line["verdict"] == "right" for line in lines)
    assert right / 4 == logs[0]["rewards/accuracy_reward/right"]
    for line in lines:
        assert line["verdict"] == "right" or line["rewards"]["format_reward"] == 0.0
