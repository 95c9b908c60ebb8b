"""One program against its tests: asserts in a trusted process beside it, or its printed output compared outside."""

import json
import os
import time
from dataclasses import dataclass
from typing import Literal

from .backends import Backend
from .cases import AssertTests, StdinTests
from .exchange import exchange, exit_status, is_out_of_cpu_time, open_pipe
from .limits import Limits
from .output import is_same_output


Status = Literal["passed", "failed", "timed_out", "no_code", "unreadable_tests"]


@dataclass(frozen=True)
class Outcome:
    """
    What came of a program.

    Args:
        status (`str`):
            `"passed"` (all tests), `"failed"`, `"timed_out"`, `"no_code"` or `"unreadable_tests"`.
        share (`float`):
            Tests passed over all tests, in [0, 1].
        detail (`str`, *optional*, defaults to `""`):
            Why the tests could not be read.
    """

    status: Status
    share: float = 0.0
    detail: str = ""


def run_asserts(program: str, tests: AssertTests, limits: Limits, backend: Backend, *, partial: bool) -> Outcome:
    """
    Run a program and the tests that call it, each in a sandbox of its own.

    Args:
        program (`str`):
            The model's program.
        tests ([`AssertTests`]):
            The row's tests.
        limits ([`Limits`]):
            For each of the two; the time by the clock for both together.
        backend ([`Backend`]):
            Starts them.
        partial (`bool`):
            Whether to go on after an assert that failed, for the share of those that hold.

    Returns:
        [`Outcome`]
    """
    deadline = time.monotonic() + limits.clock_seconds
    job = {"program": program, "entries": tests.entries, "setup": tests.setup, "items": tests.items}
    call_source, call_sink = open_pipe()
    reply_source, reply_sink = open_pipe()
    open_ends = [call_source, call_sink, reply_source, reply_sink]
    try:
        with (
            backend.start("program", limits, stdin=call_source, stdout=reply_sink) as answering,
            backend.start("asserts", limits, channel=(call_sink, reply_source)) as judge,
        ):
            # Each end is open in one process alone, so that each side sees it when the other ends.
            while open_ends:
                os.close(open_ends.pop())
            events, ending = exchange(judge, _framed({**job, "stop": not partial}), deadline=deadline, most=1 << 20)
            lines = events.decode(errors="replace").splitlines()
            # Whoever ended before the tests did is asked why; the program lives on after them, as a rule.
            ended = answering if "gone" in lines else judge if "end" not in lines else None
            soon = min(deadline, time.monotonic() + 1)
            timed_out = ending == "timed_out" or (ended is not None and is_out_of_cpu_time(exit_status(ended, soon)))
    finally:
        while open_ends:
            os.close(open_ends.pop())
    return _read_events(lines, timed_out, tests)


def run_stdin(program: str, tests: StdinTests, limits: Limits, backend: Backend, *, partial: bool) -> Outcome:
    """
    Run a program once for each input, and compare what it prints.

    The first run that is out of time ends the series: the tests after it count as failed.

    Args:
        program (`str`):
            The model's program.
        tests ([`StdinTests`]):
            Inputs, expected outputs and the tolerance of numbers.
        limits ([`Limits`]):
            For each run.
        backend ([`Backend`]):
            Starts it.
        partial (`bool`):
            Whether to go on after a test that failed.

    Returns:
        [`Outcome`]
    """
    passed = 0
    ending = "ended"
    for given, expected in tests.pairs:
        deadline = time.monotonic() + limits.clock_seconds
        with backend.start("stdin", limits) as process:
            message = _framed({"program": program}) + given.encode(errors="replace")
            printed, ending = exchange(process, message, deadline=deadline, most=limits.output_kb * 1024)
            if ending == "ended":
                status = exit_status(process, deadline)
                is_late = status is None or is_out_of_cpu_time(status)
                ending = "timed_out" if is_late else "ended" if status == 0 else "stopped"
        text = printed.decode(errors="replace")
        is_right = ending == "ended" and is_same_output(text, expected, tolerance=tests.tolerance)
        passed += is_right
        if ending == "timed_out" or not (is_right or partial):
            break
    if passed == len(tests.pairs):
        return Outcome("passed", 1.0)
    return Outcome("timed_out" if ending == "timed_out" else "failed", passed / len(tests.pairs))


def _framed(message: object) -> bytes:
    data = json.dumps(message).encode()
    return len(data).to_bytes(4, "big") + data


def _read_events(lines: list[str], timed_out: bool, tests: AssertTests) -> Outcome:
    """The verdict of the tests' own process: see `judge` there for its lines."""
    unreadable = next((line for line in lines if line.startswith("unreadable ")), None)
    if unreadable is not None:
        return Outcome("unreadable_tests", detail=unreadable.removeprefix("unreadable "))
    seen = set(lines)
    whole_items = {number for number in range(len(tests.items)) if f"item {number}" in seen}
    failed = any(line.startswith("failed ") for line in lines)
    # A test with a bare `except` may hold when the program ended.
    if "end" in seen and "gone" not in seen and len(whole_items) == len(tests.items) and not failed:
        return Outcome("passed", 1.0)
    held = 0
    for number, unit in enumerate(tests.units):
        # An assert in a loop holds when the loop came to its end; an item without asserts when it did.
        is_whole = unit.item in whole_items or not (unit.in_loop or unit.is_item)
        held += is_whole and (unit.is_item or f"held {number}" in seen) and f"failed {number}" not in seen
    # An exception outside all asserts costs one, too.
    return Outcome("timed_out" if timed_out else "failed", min(held, len(tests.units) - 1) / len(tests.units))
