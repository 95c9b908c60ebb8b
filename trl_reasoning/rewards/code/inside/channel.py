"""Messages over pipes: four bytes of length, then JSON."""

import json
import os
import struct
from typing import Any


class ClosedError(Exception):
    """The other side is gone, or sent what is no message."""


def send(sink: int, message: Any, most: int | None = None) -> None:
    """Send a message; raises `ClosedError` where nobody reads, `ValueError` where it has more than `most` bytes."""
    data = json.dumps(message, separators=(",", ":")).encode()
    if most is not None and len(data) > most:
        raise ValueError(f"{len(data)} bytes, allowed are {most}")
    data = struct.pack(">I", len(data)) + data
    try:
        while data:
            data = data[os.write(sink, data) :]
    except OSError as error:
        raise ClosedError("nobody reads") from error


def receive(source: int, most: int) -> Any:
    """Receive a message of at most `most` bytes; raises `ClosedError` at the end and for anything else."""
    (length,) = struct.unpack(">I", _read(source, 4))
    if length > most:
        raise ClosedError(f"a message of {length} bytes, allowed are {most}")
    try:
        return json.loads(_read(source, length))
    # What the other side sends is the model's choice: nothing of it may stop this process.
    except (ValueError, RecursionError, MemoryError) as error:
        raise ClosedError("not a message") from error


def _read(source: int, length: int) -> bytes:
    parts = []
    while length:
        part = os.read(source, min(length, 1 << 20))
        if not part:
            raise ClosedError("the end")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
