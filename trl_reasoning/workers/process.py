"""
What runs inside a worker: a keeper that imports once, and a forked server that works and may be killed any time.

The kernel ends a server that works too long (interval timers without a handler, so that they also end a computation
inside C) or denies it memory; the keeper then forks the next one within milliseconds, its modules already loaded.
"""

import gc
import importlib
import json
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable
from functools import reduce
from typing import Any


# Exit status of a server that has answered and wants to be replaced.
RETIRED = 75
HEADER = struct.Struct("!Q")


def encode(message: Any) -> bytes:
    """A message as bytes. JSON and not pickle: neither side can be made to run anything by what it reads."""
    body = json.dumps(message).encode("ascii")
    return HEADER.pack(len(body)) + body


def keep() -> None:
    """Import the modules named on the command line, then keep one server alive until the owner hangs up."""
    connection = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        for module in json.loads(sys.argv[1])["preload"]:
            importlib.import_module(module)
    except BaseException as error:
        connection.sendall(encode({"broken": f"{type(error).__name__}: {error}"}))
        return
    # Keeps the garbage collector of the servers from copying the pages that they share with the keeper.
    gc.freeze()
    while True:
        server = os.fork()
        if server == 0:
            _serve(connection)
        code = os.waitstatus_to_exitcode(os.waitpid(server, 0)[1])
        if code == 0:
            return
        if code != RETIRED:
            try:
                connection.sendall(encode({"died": code}))
            except OSError:
                return


def _serve(connection: socket.socket) -> None:
    """Work on one item after another; never returns."""
    for timer in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(timer, signal.SIG_DFL)
    base = _address_space()
    while request := _receive(connection):
        # Before the clock starts: finding the function and saying so.
        function = find_function(request["module"], request["name"])
        memory = request["memory"]
        connection.sendall(encode({"started": True}))
        reply = _work(function, request, base + memory)
        connection.sendall(reply)
        # What an item leaves behind must not be missing to the next ones.
        if reply == _OUT_OF_MEMORY or _address_space() > base + memory // 2:
            os._exit(RETIRED)
    os._exit(0)


def _work(function: Callable[..., Any], request: dict[str, Any], limit: int) -> bytes:
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_PROF, request["cpu_seconds"] or 0)
    signal.setitimer(signal.ITIMER_REAL, request["seconds"])
    try:
        reply = encode({"value": function(*request["item"])})
    except MemoryError:
        reply = _OUT_OF_MEMORY
    except BaseException as error:
        reply = _failure(error)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_PROF, 0)
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return reply


_OUT_OF_MEMORY = encode({"out_of_memory": True})


def _failure(error: BaseException) -> bytes:
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:
        # The text of an exception is code of its own, which may fail for the very input that made it.
        text = type(error).__name__
    return encode({"failed": text})


def find_function(module: str, name: str) -> Callable[..., Any]:
    """A function by its module and qualified name."""
    return reduce(getattr, name.split("."), importlib.import_module(module))  # type: ignore[return-value]


def _receive(connection: socket.socket) -> dict[str, Any] | None:
    """The next request, or `None` when the owner hung up."""
    try:
        header = connection.recv(HEADER.size, socket.MSG_WAITALL)
        if len(header) < HEADER.size:
            return None
        (length,) = HEADER.unpack(header)
        body = connection.recv(length, socket.MSG_WAITALL)
    except ConnectionError:
        return None
    return json.loads(body) if len(body) == length else None


def _address_space() -> int:
    """Bytes of address space in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
