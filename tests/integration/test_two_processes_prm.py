"""A process reward model in two processes: each labelled step weighs the same, wherever it lies."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from trl_reasoning.config import accelerate_command


WORKER = Path(__file__).with_name("prm_worker.py")


def run(processes: int, folder: Path) -> dict:
    out = folder / f"{processes}.json"
    launch = [*accelerate_command("cpu" if processes == 1 else "cpu_2"), "--main_process_port", "0"]
    command = [*launch, str(WORKER), str(folder / f"run{processes}"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ}, timeout=300)
    assert done.returncode == 0, done.stderr[-9000:]
    result = json.loads(out.read_text())
    assert result.pop("processes") == processes
    return result


def test_two_processes_are_one(tmp_path):
    one, two = run(1, tmp_path), run(2, tmp_path)
    for found in (one["2"], two["1"], two["2"]):
        for alone, together in zip(one["1"]["gradients"], found["gradients"], strict=True):
            assert together == pytest.approx(alone, rel=1e-3, abs=1e-5)
        assert found["logs"] == [pytest.approx(row, rel=1e-3, abs=1e-5) for row in one["1"]["logs"]]
        assert found["eval"] == pytest.approx(one["1"]["eval"], rel=1e-3, abs=1e-5)
    assert max(max(step) for step in one["1"]["gradients"]) > 1e-2
    assert (tmp_path / "run2" / "1" / "model" / "process_reward.json").is_file()
