"""One small pool of workers a process, shared by its threads."""

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

from .process import HEADER


WORKERS_VARIABLE = "TRL_REASONING_WORKERS"
MAX_DEFAULT_WORKERS = 4
START_SECONDS = 120.0
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])['path']; "
    "from trl_reasoning.workers.process import keep; keep()"
)


def worker_count() -> int:
    """Workers of a process: `TRL_REASONING_WORKERS`, else by its share of the cores, at most 4."""
    text = os.environ.get(WORKERS_VARIABLE)
    if text is None:
        ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        return max(1, min(MAX_DEFAULT_WORKERS, len(os.sched_getaffinity(0)) // ranks))
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{WORKERS_VARIABLE}: expected a number of at least 1, got {text!r}")
    return int(text)


def current_pool() -> "Pool":
    """The pool of this process, made when first asked for."""
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = Pool()
        return _pool


class Worker:
    """One worker process group and the connection to it."""

    def __init__(self, preload: set[str]):
        self.preload = frozenset(preload)
        self.connection, theirs = socket.socketpair()
        setup = json.dumps({"path": [path for path in sys.path if isinstance(path, str)], "preload": sorted(preload)})
        # One thread each: the pool is what runs in parallel. The same order of sets in every run.
        environment = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, setup],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **environment},
                # Ctrl-C in a terminal is for its owner, who ends it; and its servers are killed with it.
                start_new_session=True,
            )
        self.buffer = bytearray()
        # Of the item in work.
        self.index = -1
        self.is_started = False
        self.deadline = 0.0

    def begin(self, index: int, request: bytes) -> None:
        """Send an item; its clock starts with the worker's word that it has begun."""
        self.index, self.is_started = index, False
        self.deadline = time.monotonic() + START_SECONDS
        self.connection.settimeout(START_SECONDS)
        self.connection.sendall(request)

    def messages(self) -> list[dict[str, Any]]:
        """What has arrived, once the connection is readable; an `EOFError` when the worker is gone."""
        data = self.connection.recv(2**16)
        if not data:
            raise EOFError
        self.buffer += data
        found = []
        while len(self.buffer) >= HEADER.size:
            end = HEADER.size + HEADER.unpack_from(self.buffer)[0]
            if len(self.buffer) < end:
                break
            found.append(json.loads(self.buffer[HEADER.size : end]))
            del self.buffer[:end]
        return found

    def kill(self) -> None:
        """End the worker and whatever it started."""
        self.connection.close()
        if self.process.returncode is None:
            # Not reaped yet, so that the number cannot belong to another process group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def forget(self) -> None:
        """In a forked child: this worker is its parent's."""
        self.connection.close()
        self.process.returncode = 0


class Pool:
    """The workers of this process. A worker has one item at a time, so that nothing queues up inside."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.workers: set[Worker] = set()
        self.idle: list[Worker] = []
        self.preload: set[str] = set()
        self.size = worker_count()
        self.waiting = 0
        self.is_closed = False

    def take(self, preload: set[str], *, block: bool) -> Worker | None:
        """A worker with these modules; without `block`, `None` when none is free or another thread waits for one."""
        with self.condition:
            if block:
                self.waiting += 1
                try:
                    self.condition.wait_for(self._has_free)
                finally:
                    self.waiting -= 1
            elif self.waiting or not self._has_free():
                return None
            if self.is_closed:
                raise RuntimeError("no work can be done in workers while the interpreter shuts down")
            if self.idle:
                worker = self.idle.pop()
                if preload <= worker.preload:
                    return worker
                self._end(worker)
            self.preload |= preload
            worker = Worker(self.preload)
            self.workers.add(worker)
            return worker

    def give(self, worker: Worker) -> None:
        """Take a worker back that has done its item."""
        with self.condition:
            self.idle.append(worker)
            self.condition.notify()

    def discard(self, worker: Worker) -> None:
        """End a worker, whose place another may take."""
        with self.condition:
            self._end(worker)
            self.condition.notify()

    def close(self) -> None:
        """End all workers, for good."""
        with self.condition:
            self.is_closed = True
            for worker in tuple(self.workers):
                self._end(worker)
            self.idle.clear()
            self.condition.notify_all()

    def _has_free(self) -> bool:
        return bool(self.idle) or len(self.workers) < self.size or self.is_closed

    def _end(self, worker: Worker) -> None:
        self.workers.discard(worker)
        worker.kill()


_pool: Pool | None = None
_pool_lock = threading.Lock()


@atexit.register
def _close() -> None:
    if _pool is not None:
        _pool.close()


def _forget() -> None:
    """In a forked child: hang up, so that the workers end with their owner, and start with no pool and free locks."""
    global _pool, _pool_lock
    for worker in _pool.workers if _pool else ():
        worker.forget()
    _pool, _pool_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
