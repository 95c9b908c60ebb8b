"""Reward for a program that passes its tests."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any, get_args

from .._reward import Completion, LogExtra, LogMetric, read_rows
from .answer import as_module, build_program, extract_code
from .backends import find_backend
from .cases import AssertTests, StdinTests, UnreadableTestsError, read_asserts, read_stdin
from .limits import Limits
from .runs import Outcome, Status, run_asserts, run_stdin


KINDS = ("asserts", "stdin")
CREDITS = ("strict", "partial")


def make_code_tests_reward(
    kind: str = "asserts",
    credit: str = "strict",
    seconds: float = 10.0,
    memory_mb: int = 512,
    scratch_mb: int = 0,
    output_kb: int = 1024,
    site_packages: bool = False,
    tolerance: float = 0.0,
    workers: int | None = None,
    allow_unsandboxed: bool = False,
) -> "CodeTestsReward":
    r"""
    Make the reward for code: the program in the completion is run against the row's tests.

    The program is the last complete ```` ```python ```` block of the visible answer. It is 1 where all tests pass, 0
    where the code is missing, fails or is out of time, and `None` where the row's tests cannot be run. With partial
    credit it is the share of tests that pass; what counts as one is every assert statement of the row (in a loop: held
    in all passes of a loop that ended), an item without one, or every input. The number is that of the row, so a
    program that ends early fails the rest.

    `asserts`: the tests run in a process of their own which the program's code never enters. Each call of the program
    goes to its sandbox as data and comes back as data (None, bool, int, float, complex, str, bytes, list, tuple, dict,
    set, frozenset), with changes of arguments in place and exceptions by name; a result of any other kind fails the
    call. `stdin`: the program runs once for each input, and its output is compared outside (blanks at the ends of
    lines and empty lines at the end do not count); its exit status must be 0.

    Programs run under bubblewrap: without network, processes, threads, environment or any file to write (but see
    `scratch_mb`).

    Per sample it logs 0 or 1 to each of `code/passed`, `code/failed`, `code/timed_out`, `code/no_code` and
    `code/unreadable_tests`.

    Args:
        kind (`str`, *optional*, defaults to `"asserts"`):
            What `tests` holds. `"asserts"`: Python code or a list of it, see [`read_asserts`]. `"stdin"`: inputs and
            outputs, see [`read_stdin`].
        credit (`str`, *optional*, defaults to `"strict"`):
            `"strict"` or `"partial"`.
        seconds (`float`, *optional*, defaults to `10.0`):
            CPU time for all asserts, or for each input, the start of Python included; twice as long by the clock.
        memory_mb (`int`, *optional*, defaults to `512`):
            Address space of a program in MiB.
        scratch_mb (`int`, *optional*, defaults to `0`):
            Size of a temporary folder in memory in MiB; with 0 there is none. See [`Limits`].
        output_kb (`int`, *optional*, defaults to `1024`):
            What a program may print for an input, and the size of a call or a result, in KiB.
        site_packages (`bool`, *optional*, defaults to `False`):
            Whether programs can import the packages of this environment; else the standard library alone.
        tolerance (`float`, *optional*, defaults to `0.0`):
            For stdin tests, absolute or relative difference of numbers that count as equal.
        workers (`int`, *optional*):
            Programs that run at a time; by default the CPUs that this process may use.
        allow_unsandboxed (`bool`, *optional*, defaults to `False`):
            Where there is no bubblewrap, run programs as plain subprocesses with resource limits. They can then read,
            write and connect as you can.

    Returns:
        [`CodeTestsReward`]: needs the column `tests`; reads `entry_point`, `code_prompt` (code that the prompt gives,
        put in front of the program and of the tests) and `test_setup` (code in front of the tests) where they are.

    Raises:
        ValueError: for a parameter outside its range.

    Reference: rule-based rewards by test cases in DeepSeek-R1 (https://huggingface.co/papers/2501.12948), section
    2.2.2.

    Example:
    ```python
    reward = make_code_tests_reward()
    completions = ["```python\ndef add(a, b):\n    return a + b\n```", "```python\ndef add(a, b):\n    return 5\n```"]
    reward(["Add."] * 2, completions, [[1], [1]], tests=[["assert add(1, 2) == 3"]] * 2)  # [1.0, 0.0]
    ```
    """
    if kind not in KINDS:
        raise ValueError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
    if credit not in CREDITS:
        raise ValueError(f"credit: expected one of {', '.join(CREDITS)}, got {credit!r}")
    if tolerance and (kind == "asserts" or not 0 < tolerance < 1):
        raise ValueError(f"tolerance: expected a number from 0 to 1, with kind stdin, got {tolerance}")
    if workers is not None and workers < 1:
        raise ValueError(f"workers: expected at least 1, got {workers}")
    limits = Limits(seconds, memory_mb, scratch_mb, output_kb, site_packages)
    return CodeTestsReward(kind, credit, limits, tolerance, workers, allow_unsandboxed)


class CodeTestsReward:
    """The reward of [`make_code_tests_reward`]."""

    __name__ = "code_tests_reward"
    columns: tuple[str, ...] = ("tests",)

    def __init__(
        self,
        kind: str,
        credit: str,
        limits: Limits,
        tolerance: float,
        workers: int | None,
        allow_unsandboxed: bool,
    ):
        self.kind = kind
        self.credit = credit
        self.limits = limits
        self.tolerance = tolerance
        self.workers = workers
        self.allow_unsandboxed = allow_unsandboxed

    def check_ready(self) -> None:
        """Raise a `UserError` where programs cannot be run as asked; for the start of a run."""
        find_backend(self.allow_unsandboxed)

    def unreadable_rows(self, rows: dict[str, Sequence[Any]]) -> list[tuple[int, str]]:
        """Row and reason of each row whose tests cannot be run, as far as their text shows it."""
        found = []
        for row, tests in enumerate(self._tests(rows["tests"], rows)):
            if isinstance(tests, UnreadableTestsError):
                found.append((row, str(tests)))
        return found

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        *,
        tests: Sequence[Any],
        thought_opened: Sequence[bool | None] | None = None,
        log_metric: LogMetric | None = None,
        log_extra: LogExtra | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        texts, opened = read_rows(completions, thought_opened)
        jobs = zip(
            texts,
            opened,
            self._tests(tests, kwargs),
            _column(kwargs, "code_prompt", len(texts)),
            _column(kwargs, "entry_point", len(texts)),
            strict=True,
        )
        with ThreadPoolExecutor(self.workers or len(os.sched_getaffinity(0))) as pool:
            outcomes = list(pool.map(lambda job: self._run(*job), jobs))
        if log_metric is not None:
            for outcome in outcomes:
                for status in get_args(Status):
                    log_metric(f"code/{status}", float(outcome.status == status))
        if log_extra is not None:
            log_extra("code_status", [outcome.status for outcome in outcomes])
        return [self._score(outcome) for outcome in outcomes]

    def _run(
        self,
        text: str,
        opened: bool,
        tests: AssertTests | StdinTests | UnreadableTestsError,
        code_prompt: str | None,
        entry_point: str | None,
    ) -> Outcome:
        if isinstance(tests, UnreadableTestsError):
            return Outcome("unreadable_tests", detail=str(tests))
        code = extract_code(text, opened=opened, continues=bool(code_prompt))
        if code is None:
            return Outcome("no_code")
        program = build_program(code, code_prompt, entry_point)
        backend = find_backend(self.allow_unsandboxed)
        partial = self.credit == "partial"
        if isinstance(tests, AssertTests):
            return run_asserts(program, tests, self.limits, backend, partial=partial)
        return run_stdin(program, tests, self.limits, backend, partial=partial)

    def _tests(
        self, tests: Sequence[Any], rows: dict[str, Any]
    ) -> Iterator[AssertTests | StdinTests | UnreadableTestsError]:
        columns = [_column(rows, name, len(tests)) for name in ("test_setup", "code_prompt", "entry_point")]
        for value, setup, code_prompt, entry_point in zip(tests, *columns, strict=True):
            try:
                if self.kind == "stdin":
                    yield read_stdin(value, tolerance=self.tolerance)
                else:
                    yield read_asserts(value, as_module(code_prompt or "") + (setup or ""), entry_point)
            except UnreadableTestsError as error:
                yield error

    def _score(self, outcome: Outcome) -> float | None:
        if outcome.status == "unreadable_tests":
            return None
        return outcome.share if self.credit == "partial" else float(outcome.status == "passed")


def _column(rows: dict[str, Any], name: str, length: int) -> Iterator[Any]:
    column = rows.get(name)
    return repeat(None, length) if column is None else iter(column)
