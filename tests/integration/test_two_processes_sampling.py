"""Two processes on the CPU draw the same prompts as one, and go on from a checkpoint with the same ones."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from trl_reasoning.config import accelerate_command


WORKER = Path(__file__).with_name("two_process_sampling_worker.py")


def run(sampling: str, processes: int, folder: Path) -> dict:
    out = folder / f"{processes}.json"
    launch = [*accelerate_command("cpu" if processes == 1 else "cpu_2"), "--main_process_port", "0"]
    command = [*launch, str(WORKER), sampling, str(folder / f"run{processes}"), str(out)]
    environment = {**os.environ, "TRL_EXPERIMENTAL_SILENCE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(out.read_text())
    assert result["processes"] == processes
    return result


@pytest.mark.parametrize("sampling", ["prioritized", "curriculum"])
def test_draws_and_rates(sampling, tmp_path):
    one, two = run(sampling, 1, tmp_path), run(sampling, 2, tmp_path)
    (alone,) = one["straight"]
    first, second = two["straight"]
    assert first["state"] == second["state"]
    # Each process has the half of every batch, and the rewards do not depend on how it is split.
    together = [left + right for left, right in zip(first["prompts"], second["prompts"], strict=True)]
    assert together == alone["prompts"]
    assert first["state"] == alone["state"]
    assert len(together) == 7
    assert 0 < sum(first["state"]["successes"]) < sum(first["state"]["trials"])

    # From a checkpoint inside the epoch of five batches, and from the one at its end.
    for stop in (3, 5):
        for after, whole in zip(two[f"resumed{stop}"], two["straight"], strict=True):
            assert after["prompts"] == whole["prompts"][stop:]
            assert after["state"] == whole["state"]
            assert after["losses"] == pytest.approx(whole["losses"], abs=1e-5)
