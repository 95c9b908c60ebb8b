"""Two processes on the CPU train as one does with the same global batch."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from trl_reasoning.config import accelerate_command


WORKER = Path(__file__).with_name("two_process_worker.py")


def run(what: str, processes: int, folder: Path) -> dict:
    out = folder / f"{what}{processes}.json"
    launch = [*accelerate_command("cpu" if processes == 1 else "cpu_2"), "--main_process_port", "0"]
    command = [*launch, str(WORKER), what, str(folder / f"run{processes}"), str(out)]
    environment = {**os.environ, "TRL_EXPERIMENTAL_SILENCE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(out.read_text())
    assert result["processes"] == processes
    return result


def test_sft_has_the_same_losses(tmp_path):
    one, two = run("sft", 1, tmp_path), run("sft", 2, tmp_path)
    assert len(one["losses"]) == 3
    assert two["losses"] == pytest.approx(one["losses"], abs=2e-4)


def test_policy_has_the_same_losses_and_gradients_on_fixed_rollouts(tmp_path):
    one, two = run("fixed", 1, tmp_path), run("fixed", 2, tmp_path)
    assert two["rewards"] == pytest.approx(one["rewards"], abs=1e-6)
    assert two["losses"] == pytest.approx(one["losses"], abs=1e-5)
    for alone, together in zip(one["gradients"], two["gradients"], strict=True):
        assert together == pytest.approx(alone, rel=1e-3, abs=1e-5)
    assert max(max(step) for step in one["gradients"]) > 1e-3


@pytest.mark.parametrize("rewards", ["", "_uneven"])
def test_policy_takes_trls_steps_in_two_processes(tmp_path, rewards):
    """The packed update against TRL's: with `uneven` rewards, one process has fewer rows with a gradient, or none."""
    ours, theirs = run(f"fixed{rewards}", 2, tmp_path), run(f"trl{rewards}", 2, tmp_path)
    assert ours["losses"] == pytest.approx(theirs["losses"], abs=1e-6)
    for our_step, their_step in zip(ours["gradients"], theirs["gradients"], strict=True):
        assert our_step == pytest.approx(their_step, rel=1e-4, abs=1e-6)
    assert max(theirs["gradients"][0]) > 1e-3
    assert max(theirs["gradients"][1]) == 0.0 if rewards else max(theirs["gradients"][1]) > 1e-3


def test_policy_sees_the_same_prompts_when_sampling(tmp_path):
    one, two = run("sampled", 1, tmp_path), run("sampled", 2, tmp_path)
    (alone,) = one["prompts"]
    first, second = two["prompts"]
    batch, half = 8, 4
    together = []
    for step in range(3):
        together += first[step * half : (step + 1) * half] + second[step * half : (step + 1) * half]
    assert len(alone) == 3 * batch
    assert together == alone
