"""A group in two processes: pooled step rewards, the renewed reference, the iteration's samples."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from trl_reasoning.config import accelerate_command


WORKER = Path(__file__).with_name("two_process_steps_worker.py")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> list[dict]:
    """The same runs in one process and in two."""
    found = []
    for processes, name in ((1, "cpu"), (2, "cpu_2")):
        folder = tmp_path_factory.mktemp(name)
        command = [
            *accelerate_command(name),
            "--main_process_port",
            "0",
            str(WORKER),
            str(folder),
            str(folder / "out.json"),
        ]
        environment = {**os.environ, "TRL_EXPERIMENTAL_SILENCE": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        found.append(json.loads((folder / "out.json").read_text()))
        assert found[-1]["processes"] == processes
    return found


def test_the_same_gradients(results):
    one, two = (result["straight"] for result in results)
    # Four completions with 3, 2, 1 and 6 steps, which the first process has five of.
    assert one["counts"] == two["counts"] == [3.0] * 5
    assert one["zero_std"] == two["zero_std"] == [0.0] * 5
    for alone, together in zip(one["gradients"], two["gradients"], strict=True):
        assert together == pytest.approx(alone, rel=1e-3, abs=1e-5)
    assert max(max(step) for step in one["gradients"]) > 1e-3


def test_the_same_reference(results):
    one, two = (result["straight"] for result in results)
    assert two["kl"] == pytest.approx(one["kl"], rel=1e-2, abs=1e-7)
    assert [value < 1e-9 for value in one["kl"]] == [True, False, True, False, True]


@pytest.mark.parametrize("processes", [1, 2])
def test_resume_is_exact(results, processes):
    straight, resumed = results[processes - 1]["straight"], results[processes - 1]["resumed"]
    assert resumed["kl"] == straight["kl"]  # the log goes on from the checkpoint's
    assert resumed["gradients"] == straight["gradients"][3:]


def test_every_process_gets_the_samples_of_all(results):
    (alone,) = results[0]["straight"]["calls"]
    first, second = results[1]["straight"]["calls"]
    assert first == second
    assert [len(samples) for samples, _ in alone] == [len(samples) for samples, _ in first] == [8, 8]
    assert [sorted(samples) for samples, _ in alone] == [sorted(samples) for samples, _ in first]
    assert [len(history) for _, history in first] == [0, 6]
    # Resumed at step 3, the last iteration is whole.
    for result in results:
        assert [calls[-1] for calls in result["resumed"]["calls"]] == [
            calls[-1] for calls in result["straight"]["calls"]
        ]
