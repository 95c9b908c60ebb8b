import json
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from trl_reasoning.rewards.code import Bubblewrap, Limits, bubblewrap_problem
from trl_reasoning.rewards.code.exchange import exchange


def marked_processes(mark: str) -> list[str]:
    """Command lines with the mark: a sandbox's processes carry the limits in theirs, and forked ones keep it."""
    found = []
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        if mark in line and process.pid != psutil.Process().pid:
            found.append(line)
    return found


@contextmanager
def watched(seconds: float) -> Iterator[Limits]:
    """Limits whose time nobody else has, so that their processes can be found; none may be left afterwards."""
    limits = Limits(seconds=seconds + random.random() / 8)
    mark = f'"seconds": {limits.seconds}'
    before = set(Path(tempfile.gettempdir()).glob("code_tests_*"))
    yield limits
    end = time.monotonic() + 5
    while marked_processes(mark) and time.monotonic() < end:
        time.sleep(0.02)
    assert marked_processes(mark) == []
    assert set(Path(tempfile.gettempdir()).glob("code_tests_*")) <= before


@pytest.fixture
def limits():
    with watched(5) as found:
        yield found


@pytest.fixture
def short():
    """For programs that use up their time."""
    with watched(0.6) as found:
        yield found


@pytest.fixture
def sandbox():
    problem = bubblewrap_problem()
    if problem is not None:
        pytest.skip(f"needs a working bubblewrap: {problem}")
    return Bubblewrap()


@pytest.fixture
def run():
    """Run a program that prints, and give its output and how it ended."""

    def run_program(backend, source: str, limits: Limits, given: str = "") -> tuple[str, str]:
        message = json.dumps({"program": source}).encode()
        data = len(message).to_bytes(4, "big") + message + given.encode()
        with backend.start("stdin", limits) as process:
            deadline = time.monotonic() + limits.seconds
            printed, ending = exchange(process, data, deadline=deadline, most=limits.output_kb * 1024)
            if ending == "ended":
                try:
                    ending = str(process.wait(max(0.01, deadline - time.monotonic())))
                except subprocess.TimeoutExpired:
                    ending = "timed_out"
        return printed.decode(errors="replace"), ending

    return run_program
