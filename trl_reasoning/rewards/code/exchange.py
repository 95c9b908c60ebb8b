"""Talking to a started program: feed it, read what it prints, within a deadline and a size."""

import contextlib
import fcntl
import os
import selectors
import subprocess
import time
from typing import Literal


Ending = Literal["ended", "timed_out", "too_much_output"]


def exchange(process: "subprocess.Popen[bytes]", data: bytes, *, deadline: float, most: int) -> tuple[bytes, Ending]:
    """
    Write `data` to the program and read its output until it closes it.

    Neither a program that does not read nor one that prints without end holds this up, and at most `most` bytes are
    kept.

    Args:
        process (`subprocess.Popen`):
            Started with pipes for standard input and output.
        data (`bytes`):
            For its standard input, which is closed after it.
        deadline (`float`):
            As given by `time.monotonic`.
        most (`int`):
            Bytes of output.

    Returns:
        `tuple[bytes, str]`: the output up to the ending, and `"ended"`, `"timed_out"` or `"too_much_output"`.
    """
    assert process.stdin is not None and process.stdout is not None
    parts: list[bytes] = []
    size, left = 0, memoryview(data)
    sink, source = process.stdin, process.stdout
    os.set_blocking(sink.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(sink, selectors.EVENT_WRITE)
        selector.register(source, selectors.EVENT_READ)
        while True:
            rest = deadline - time.monotonic()
            if rest <= 0:
                return b"".join(parts), "timed_out"
            for key, _ in selector.select(rest):
                if key.fileobj is sink:
                    left = _written(sink.fileno(), left)
                    if not left:
                        selector.unregister(sink)
                        with contextlib.suppress(BrokenPipeError):
                            sink.close()
                    continue
                part = os.read(source.fileno(), 1 << 16)
                if not part:
                    return b"".join(parts), "ended"
                size += len(part)
                if size > most:
                    return b"".join(parts), "too_much_output"
                parts.append(part)


def open_pipe() -> tuple[int, int]:
    """A pipe whose ends are none of 0, 1 and 2: a program gets these anew, also where the host has closed its own."""
    source, sink = os.pipe()
    if min(source, sink) > 2:
        return source, sink
    try:
        return fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, 3), fcntl.fcntl(sink, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(source)
        os.close(sink)


def exit_status(process: "subprocess.Popen[bytes]", deadline: float) -> int | None:
    """The exit status of a program that closed its output, or None where it lives on until the deadline."""
    try:
        return process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None


def is_out_of_cpu_time(status: int | None) -> bool:
    """Whether an exit status is that of a process that the kernel ended for its CPU time (SIGKILL or SIGXCPU)."""
    return status in (128 + 9, 128 + 24, -9, -24)


def _written(number: int, data: memoryview) -> memoryview:
    """What is left of the data; nothing when nobody reads it any more."""
    try:
        return data[os.write(number, data) :]
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return data[:0]
