"""A reward model on rankings in two processes: the numbers of one, one bias over all demonstrations, exact resume."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from trl_reasoning.config import accelerate_command


WORKER = Path(__file__).with_name("reward_worker.py")


def run(processes: int, folder: Path) -> dict:
    out = folder / f"{processes}.json"
    launch = [*accelerate_command("cpu" if processes == 1 else "cpu_2"), "--main_process_port", "0"]
    command = [*launch, str(WORKER), str(folder / f"run{processes}"), str(out)]
    environment = {**os.environ, "TRL_EXPERIMENTAL_SILENCE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(out.read_text())
    assert result["processes"] == processes
    return result


def test_two_processes_train_as_one(tmp_path):
    one, two = run(1, tmp_path), run(2, tmp_path)
    assert len(one["numbers"]) == 3
    for alone, together in zip(one["numbers"], two["numbers"], strict=True):
        assert together == pytest.approx(alone, rel=1e-3, abs=1e-4)
    # Five prompts in batches of two: two processes fill up the last one.
    assert two["evaluation"] == pytest.approx(one["evaluation"], rel=1e-3, abs=1e-4)
    assert two["bias"] == pytest.approx(one["bias"], abs=1e-4)
    for result in (one, two):
        assert sum(result["scores"]) / 5 == pytest.approx(0.0, abs=1e-5)
        assert max(result["scores"]) - min(result["scores"]) > 1e-3
        # The tokens seen are counted from the checkpoint on, as in TRL.
        last, again = result["numbers"][2][:-1], result["resumed"][2][:-1]
        assert again == pytest.approx(last, rel=1e-4, abs=1e-5)
