"""Calls with a limit on their time and memory."""

import selectors
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .pool import Worker, current_pool
from .process import encode, find_function


# The worker's own timer ends an item; the owner steps in where the function changed that timer.
GRACE_SECONDS = 1.0
MAX_STARTS = 3


@dataclass(frozen=True)
class Outcome:
    """What became of one item of [`run_limited`].

    Args:
        status (`str`):
            `"done"`, `"timed_out"`, `"out_of_memory"` or `"failed"` (an exception, or the worker died).
        value (`Any`):
            What the function returned, as JSON has it; `None` unless done.
        error (`str` or `None`):
            What went wrong, `None` when done.
    """

    status: Literal["done", "timed_out", "out_of_memory", "failed"]
    value: Any = None
    error: str | None = None


def run_limited(
    function: Callable[..., Any],
    items: Iterable[Sequence[Any]],
    *,
    seconds: float,
    cpu_seconds: float | None = None,
    memory_mb: int = 512,
    preload: Collection[str] = (),
) -> list[Outcome]:
    """
    Call a function on each item in worker processes that are killed when an item takes too long or too much.

    May be called from any thread, from several at once, inside a running event loop (which waits meanwhile; or through
    `asyncio.to_thread`), in forked and daemonic processes, and in scripts without a `__main__` guard. Each process has
    workers of its own, started when first needed: the number of `TRL_REASONING_WORKERS`, else one for each core that
    the process may use, divided by the processes of a distributed run on this machine, and at most 4. They end with
    their owner, however it ends, an item in work within its time limit. A worker sees no GPU. Linux only.

    Args:
        function (`Callable`):
            A function of an importable module (not of the user's script).
        items (`Iterable[Sequence]`):
            Positional arguments of each call: plain data as of JSON (strings, numbers, booleans, `None`, lists and
            dictionaries with string keys). Tuples arrive as lists.
        seconds (`float`):
            Time limit of one item, from when its work starts, however long it waited and its worker's start took.
        cpu_seconds (`float`, *optional*):
            Limit of its computing time, which a busy machine does not eat up; by default there is none.
        memory_mb (`int`, *optional*, defaults to `512`):
            Memory that an item may take on top of what the worker holds after its imports, in MiB.
        preload (`Collection[str]`, *optional*):
            Modules that the function imports when called: loaded with the worker, before any clock starts.

    Returns:
        `list[Outcome]`: one for each item, in their order.

    Raises:
        ValueError: when the function cannot be imported by name, an item is not plain data, or a limit is not
            positive.
        RuntimeError: when workers cannot be started.

    Example:
    ```python
    >>> import math, time
    >>> run_limited(math.sqrt, [(16,), (-1,)], seconds=5)[0]
    Outcome(status='done', value=4.0, error=None)
    >>> [outcome.status for outcome in run_limited(time.sleep, [(0,), (60,)], seconds=0.5)]
    ['done', 'timed_out']

    ```
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not isinstance(module, str) or module == "__main__" or "<" in name:
        raise ValueError(f"function: expected a function of an importable module, got {function!r}")
    if not all(limit > 0 for limit in (seconds, memory_mb, 1 if cpu_seconds is None else cpu_seconds)):
        raise ValueError(
            f"seconds, cpu_seconds, memory_mb: expected positive numbers, got {seconds!r}, {cpu_seconds!r} and "
            f"{memory_mb!r}"
        )
    if find_function(module, name) is not function:
        raise ValueError(f"function: expected the one that {module}.{name} is, got {function!r}")
    limits = {"module": module, "name": name, "seconds": seconds, "cpu_seconds": cpu_seconds}
    limits["memory"] = memory_mb * 2**20
    try:
        requests = [encode({**limits, "item": list(item)}) for item in items]
    except TypeError as error:
        raise ValueError(f"items: expected plain data, got something else: {error}") from error
    return _Run(requests, seconds, {module, *preload}).outcomes()


class _Run:
    """One call of [`run_limited`]: gives each free worker one item at a time."""

    def __init__(self, requests: list[bytes], seconds: float, preload: set[str]):
        self.requests = requests
        self.seconds = seconds
        self.preload = preload
        self.pool = current_pool()
        self.waiting = deque(range(len(requests)))
        self.busy: set[Worker] = set()
        self.found: dict[int, Outcome] = {}
        self.starts: Counter[int] = Counter()
        self.selector = selectors.DefaultSelector()

    def outcomes(self) -> list[Outcome]:
        with self.selector:
            try:
                while self.waiting or self.busy:
                    self._hand_out()
                    self._collect()
            finally:
                # Interrupted in the middle of an item: its answer would be taken for that of the next.
                for worker in self.busy:
                    self.pool.discard(worker)
        return [self.found[index] for index in range(len(self.requests))]

    def _hand_out(self) -> None:
        while self.waiting and (worker := self.pool.take(self.preload, block=not self.busy)):
            self.busy.add(worker)
            index = self.waiting.popleft()
            self.selector.register(worker.connection, selectors.EVENT_READ, worker)
            try:
                worker.begin(index, self.requests[index])
            except OSError:
                self._lose(worker)

    def _collect(self) -> None:
        wait = min((worker.deadline for worker in self.busy), default=0.0) - time.monotonic()
        for key, _ in self.selector.select(max(0.0, wait)):
            worker: Worker = key.data
            try:
                messages = worker.messages()
            except (EOFError, OSError):
                self._lose(worker)
                continue
            for message in messages:
                # A server killed while it was idle is reported first, and ends the worker with what it says next.
                if worker in self.busy:
                    self._read(worker, message)
        now = time.monotonic()
        for worker in [worker for worker in self.busy if worker.deadline < now]:
            self._lose(worker)

    def _read(self, worker: Worker, message: dict[str, Any]) -> None:
        if "broken" in message:
            raise RuntimeError(f"workers cannot load {', '.join(sorted(worker.preload))}: {message['broken']}")
        if "started" in message:
            worker.is_started = True
            worker.deadline = time.monotonic() + self.seconds + GRACE_SECONDS
        elif not worker.is_started:
            self._lose(worker)
        else:
            self.found[worker.index] = self._outcome(message)
            self._release(worker)
            self.pool.give(worker)

    def _outcome(self, message: dict[str, Any]) -> Outcome:
        if "value" in message:
            return Outcome("done", message["value"])
        if "out_of_memory" in message:
            return Outcome("out_of_memory", error="more memory than the limit")
        if "failed" in message:
            return Outcome("failed", error=message["failed"])
        code = message["died"]
        if code in (-signal.SIGALRM, -signal.SIGPROF):
            return self._timed_out()
        cause = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return Outcome("failed", error=f"the worker died: {cause}")

    def _timed_out(self) -> Outcome:
        return Outcome("timed_out", error="more time than the limit")

    def _lose(self, worker: Worker) -> None:
        """End a worker that is gone or late. It costs the item that it worked on; one not yet begun waits again."""
        index = worker.index
        self._release(worker)
        self.pool.discard(worker)
        if worker.is_started:
            is_late = worker.deadline < time.monotonic()
            self.found[index] = self._timed_out() if is_late else Outcome("failed", error="the worker was killed")
            return
        self.starts[index] += 1
        if self.starts[index] == MAX_STARTS:
            raise RuntimeError(f"{MAX_STARTS} workers ended before they began to work")
        self.waiting.appendleft(index)

    def _release(self, worker: Worker) -> None:
        self.selector.unregister(worker.connection)
        self.busy.discard(worker)
