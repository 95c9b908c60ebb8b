"""PPO in two processes is PPO in one with the same global batch: both gradients, whitening, pretraining mix."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from trl_reasoning.config import accelerate_command


WORKER = Path(__file__).with_name("ppo_worker.py")


def run(what: str, processes: int, folder: Path) -> dict:
    out = folder / f"{what}{processes}.json"
    launch = [*accelerate_command("cpu" if processes == 1 else "cpu_2"), "--main_process_port", "0"]
    command = [*launch, str(WORKER), what, str(folder / f"run{processes}"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(out.read_text())
    assert result["processes"] == processes
    return result


@pytest.mark.parametrize("what", ["full", "shared", "lora"])
def test_two_processes_train_as_one(tmp_path, what):
    one, two = run(what, 1, tmp_path), run(what, 2, tmp_path)
    for name in ("value_loss", "ptx_loss", "objective/kl", "returns", "explained"):
        assert two[name] == pytest.approx(one[name], rel=1e-3, abs=1e-5), name
    assert two["names"] == one["names"]
    for alone, together in zip(one["gradients"], two["gradients"], strict=True):
        assert together == pytest.approx(alone, rel=2e-3, abs=1e-5)
    of_value = [norm for name, norm in zip(one["names"], one["gradients"][-1], strict=True) if "value" in name]
    assert of_value and max(of_value) > 1e-3
