"""Both distillations in two processes: the numbers of one process, one store, and exact resume."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from trl_reasoning.config import accelerate_command


WORKER = Path(__file__).with_name("distillation_worker.py")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> list[dict]:
    """The same runs in one process and in two."""
    found = []
    for processes, name in ((1, "cpu"), (2, "cpu_2")):
        folder = tmp_path_factory.mktemp(name)
        command = [*accelerate_command(name), "--main_process_port", "0", str(WORKER), str(folder)]
        environment = {**os.environ, "TRL_EXPERIMENTAL_SILENCE": "1", "XDG_CACHE_HOME": str(folder)}
        done = subprocess.run(
            [*command, str(folder / "out.json")], capture_output=True, text=True, env=environment, timeout=300
        )
        assert done.returncode == 0, done.stderr[-3000:]
        found.append(json.loads((folder / "out.json").read_text()))
        assert found[-1]["processes"] == processes
        assert len(list((folder / "store").glob("*.parquet"))) == 1
    return found


@pytest.mark.parametrize("way", ["given", "stored"])
def test_the_same_numbers(results, way):
    one, two = (result[way] for result in results)
    assert len(one) == len(two) == 3
    # Without the entropy, a mean of means over micro-batches, into which other rows are shuffled.
    for (*alone, _, tokens), (*together, _, same) in zip(one, two, strict=True):
        assert together == pytest.approx(alone, rel=2e-3)
        assert same == tokens


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("way", ["sampled", "stored"])
def test_resume_is_exact(results, processes, way):
    result = results[processes - 1]
    assert len(result[f"{way} resumed"]) == 3  # the log goes on from the checkpoint's
    for straight, resumed in zip(result[way], result[f"{way} resumed"], strict=True):
        assert resumed[:3] == pytest.approx(straight[:3], rel=1e-4)
