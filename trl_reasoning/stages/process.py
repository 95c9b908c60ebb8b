"""One stage in a process of its own: its log, its progress line, and signals that reach it."""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, Any


if TYPE_CHECKING:
    import psutil


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Outcome:
    """
    How a stage's process ended.

    Args:
        returncode (`int`):
            The process's exit code, negative for the signal that killed it.
        seconds (`float`):
            Wall time in seconds.
        signal (`int`, *optional*):
            Number of the first signal that was passed on; the stage was asked to stop.
    """

    returncode: int
    seconds: float
    signal: int | None = None

    @property
    def exit_code(self) -> int:
        """What a program that did nothing else exits with: 128 plus the signal's number after a signal."""
        return self.returncode if self.signal is None else 128 + self.signal


class _SignalRelay:
    """
    While it is active, signals for this process go to the stage's process group.

    The first one asks the stage to save and stop, a second one ends it at once. accelerate's launcher dies of the
    first one although its workers are still saving, so `wait` waits for them, too.
    """

    def __init__(self, announce: Callable[[str], None]) -> None:
        self.announce = announce
        self.process: subprocess.Popen[bytes] | None = None
        self.received: int | None = None
        self._workers: list[psutil.Process] = []
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "_SignalRelay":
        self._previous = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            self._send(signal.SIGKILL)
            return
        self.received = number
        self.announce("stopping: the stage saves first; the same again ends it at once")
        self._pass_on()

    def _pass_on(self) -> None:
        import psutil

        if self.process is None:  # the signal came before the process; `start` passes it on
            return
        try:
            self._workers = psutil.Process(self.process.pid).children()
        except psutil.NoSuchProcess:  # it ended by itself in the meantime
            return
        self._send(self.received or signal.SIGTERM)

    def _send(self, number: int) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):  # the whole group has ended
                os.killpg(self.process.pid, number)

    def start(self, command: Sequence[str], log: IO[bytes] | None) -> None:
        """Start the command in a process group of its own, with its output in a log or where ours goes."""
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=None if log is None else subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        if self.received is not None:
            self._pass_on()

    def wait(self, every: Callable[[], None], interval: float) -> int:
        """Call `every` each `interval` seconds until the process and its workers have ended; returns the exit code."""
        assert self.process is not None
        while self.process.poll() is None or any(_is_alive(worker) for worker in self._workers):
            every()
            time.sleep(interval)
        return self.process.returncode


def _is_alive(process: "psutil.Process") -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def run_process(
    command: Sequence[str],
    log: Path,
    *,
    on_progress: Callable[[str], None],
    announce: Callable[[str], None],
    interval: float = 0.2,
) -> Outcome:
    """
    Run a command with its output appended to a log file.

    Args:
        command (`Sequence[str]`):
            Program and arguments; started in the current folder, in a process group of its own.
        log (`Path`):
            File for the output and the errors.
        on_progress (`Callable[[str], None]`):
            Called every `interval` seconds with the log's last line.
        announce (`Callable[[str], None]`):
            Called with a message for the person at the terminal.
        interval (`float`, *optional*, defaults to `0.2`):
            Seconds between two looks at the process.

    Returns:
        `Outcome`: exit code, wall time, and the signal that stopped it.
    """
    started = time.monotonic()
    with open(log, "ab") as stream:
        stream.write(f"$ {shlex.join(command)}\n".encode())
        stream.flush()
        with _SignalRelay(announce) as relay:
            relay.start(command, stream)
            returncode = relay.wait(lambda: on_progress(_progress(log)), interval)
    return Outcome(returncode, time.monotonic() - started, relay.received)


def _progress(log: Path) -> str:
    """The log's last line; before the first output that is the command itself."""
    line = last_lines(log, 1)
    return "starting" if line.startswith("$ ") else line


def run_attached(command: Sequence[str], *, announce: Callable[[str], None]) -> Outcome:
    """
    Run a command with its output where ours goes; signals reach it as in [`run_process`].

    Args:
        command (`Sequence[str]`):
            Program and arguments.
        announce (`Callable[[str], None]`):
            Called with a message for the person at the terminal.

    Returns:
        `Outcome`: exit code, wall time, and the signal that stopped it.
    """
    started = time.monotonic()
    with _SignalRelay(announce) as relay:
        relay.start(command, None)
        returncode = relay.wait(lambda: None, 0.1)
    return Outcome(returncode, time.monotonic() - started, relay.received)


def last_lines(log: Path, count: int) -> str:
    """
    The last lines of a log that hold text; a progress bar's states count as lines.

    Args:
        log (`Path`):
            The file; only its last 16 kB are read.
        count (`int`):
            Number of lines.

    Returns:
        `str`: the lines, joined by newlines.
    """
    with open(log, "rb") as stream:
        stream.seek(max(0, log.stat().st_size - 16_384))
        text = stream.read().decode(errors="replace")
    lines = [line.rstrip() for line in re.split(r"[\r\n]+", text) if line.strip()]
    return "\n".join(lines[-count:])
