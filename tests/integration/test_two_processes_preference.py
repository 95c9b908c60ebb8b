"""The preference methods on pairs that two processes share: the numbers of one process."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from trl_reasoning.config import accelerate_command


WORKER = Path(__file__).with_name("preference_worker.py")
# TRL sums these over the tokens of each process's own padded rows, or averages ratios of sums.
TOLERANCE = {"rel": 1e-3, "abs": 1e-4}


def run(processes: int, folder: Path) -> dict:
    out = folder / f"{processes}.json"
    launch = [*accelerate_command("cpu" if processes == 1 else "cpu_2"), "--main_process_port", "0"]
    command = [*launch, str(WORKER), str(folder / f"run{processes}"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ}, timeout=300)
    assert done.returncode == 0, done.stderr[-9000:]
    result = json.loads(out.read_text())
    assert result["processes"] == processes
    return result["logs"]


def test_pairs_shared_by_two_processes(tmp_path):
    one, two = run(1, tmp_path), run(2, tmp_path)
    assert one.keys() == two.keys()
    for name, rows in one.items():
        for alone, together in zip(rows, two[name], strict=True):
            assert together.keys() == alone.keys()
            assert together == pytest.approx(alone, **TOLERANCE), name
    assert one["ln_dpo"] == [pytest.approx(row, **TOLERANCE) for row in one["reference beside the policy"]]
    assert one["simpo"][0]["lengths/difference"] != 0.0
