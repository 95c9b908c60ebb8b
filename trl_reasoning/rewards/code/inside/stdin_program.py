"""A program that reads standard input and prints: run as `__main__`, as a judge of programming contests does."""

import os
import sys
import threading
import types

from .channel import receive


def run() -> None:
    """Run the program that stands before the input on standard input; what follows is the program's own input."""
    source = receive(0, 64 << 20)["program"]
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    # There are no threads in a sandbox. Contest programs run all in one thread to get a larger stack: run it here.
    threading.Thread.start = threading.Thread.run  # type: ignore[method-assign]
    threading.Thread.join = lambda self, timeout=None: None  # type: ignore[method-assign]
    try:
        exec(compile(source, "program.py", "exec"), module.__dict__)
    except SystemExit:
        raise
    except BaseException:
        sys.stdout.flush()
        os._exit(1)
