"""Kimi k1.5 with a group that is split over two processes: the numbers of one process, and exact resume."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from trl_reasoning.config import accelerate_command


WORKER = Path(__file__).with_name("kimi_worker.py")


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


def test_a_group_split_over_two_processes(tmp_path):
    one, two = run(1, tmp_path), run(2, tmp_path)
    # Lengths grow evenly from place to place, even places are right: 0.5 - place / 7, and min(0, ...) for odd ones.
    middle = [0.5 - place / 7 for place in range(8)]
    length = [value if place % 2 == 0 else min(0.0, value) for place, value in enumerate(middle)]
    accuracy = [1.0, 0.0] * 4
    for result in (one, two):
        assert [row[0] for row in result["rewards"]] == accuracy
        assert [row[1] for row in result["rewards"]] == pytest.approx(length, abs=1e-6)
        assert len(result["numbers"]) == 4
        for at, again in result["resumed"].items():
            for step, row in enumerate(result["numbers"]):
                assert again[step] == pytest.approx(row, rel=1e-4, abs=1e-5), (result["processes"], at, step)
    for alone, together in zip(one["numbers"], two["numbers"], strict=True):
        assert together == pytest.approx(alone, rel=1e-3, abs=1e-4)
    assert [row[3] < 1e-4 for row in one["numbers"]] == [True, False, True, False]
