"""The first thing that runs in a sandbox: limits, a private channel, and then one of the programs of this folder."""

import builtins
import json
import math
import os
import resource
import sys


def start() -> None:
    """Read the command line (`program`, then the limits as JSON), set the limits and run the program."""
    program, limits = sys.argv[2], json.loads(sys.argv[3])
    sys.argv = [""]
    set_limits(limits)
    # Python is started without `site`, which makes these.
    builtins.exit = builtins.quit = sys.exit  # type: ignore[assignment]
    if limits["packages"]:
        sys.path.append(limits["packages"])
    most = limits["output_kb"] * 1024
    if program == "stdin":
        from .stdin_program import run

        run()
    elif program == "program":
        from .program import serve

        serve(*_private_channel(), most)
    else:
        from .asserts import judge

        job, events = _private_channel()
        judge(job, events, limits["calls"], limits["replies"], most)


def set_limits(limits: dict) -> None:
    """Set the resource limits of this process; soft and hard ones, so that they cannot be raised again."""
    memory = limits["memory_mb"] << 20
    seconds = math.ceil(limits["seconds"])
    for name, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, limits["scratch_mb"] << 20),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_NPROC, 1),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        # Deep recursion in C (regular expressions, parsers) needs more than the usual 8 MiB.
        (resource.RLIMIT_STACK, memory // 4),
    ):
        hard = resource.getrlimit(name)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (value, value))


def _private_channel() -> tuple[int, int]:
    """Take standard input and output away from the program: what it prints must not mix with the channel."""
    source, sink = os.dup(0), os.dup(1)
    for number, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        nothing = os.open(os.devnull, flags)
        os.dup2(nothing, number)
        os.close(nothing)
    return source, sink
