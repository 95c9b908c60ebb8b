"""Programs that try to use more than they may. The harmless attempt always comes first."""

import dataclasses
import os
import subprocess
import sys
import textwrap

import pytest

from .attempts import TRY, attempts


def test_a_fork_bomb_makes_nothing(sandbox, limits, short, run):
    # A counted loop: were the filter not there, it would make ten children that end at once.
    counted = "import os\nmade = 0\nfor _ in range(10):\n    try:\n        made += os.fork() > 0 or os._exit(0)\n"
    counted += "    except OSError:\n        pass\nprint(made)"
    assert run(sandbox, counted, limits) == ("0\n", "0")
    bomb = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    assert run(sandbox, bomb, short)[1] in ("timed_out", "137")


def test_the_temporary_folder_is_small_and_goes_away(sandbox, limits, run):
    program = TRY + textwrap.dedent(
        """
        folder = os.environ["HOME"]
        open(folder + "/small", "w").write("kept")
        print(open(folder + "/small").read())
        def fill(size):
            for number in range(40):
                with open(f"{folder}/part{number}", "wb") as file:
                    file.write(bytes(size))
        attempt(fill, 256 << 10)      # many files: the folder is full
        attempt(fill, 3 << 20)        # one file over the limit of a file
        """
    )
    printed, _ = run(sandbox, program, dataclasses.replace(limits, scratch_mb=2))
    assert printed == "kept\nno OSError\nno OSError\n"
    assert not os.path.exists("/" + "tmp/small")


def test_memory_is_limited(sandbox, limits, run):
    program = attempts("bytearray(600 << 20)", "[bytearray(1 << 20) for _ in range(600)]", "'x' * (1 << 33)")
    assert run(sandbox, program, limits) == ("no MemoryError\n" * 3, "0")


def test_limits_cannot_be_raised(sandbox, limits, run):
    names = ("AS", "CPU", "FSIZE", "NOFILE", "NPROC", "CORE")
    unlimited = "resource.RLIM_INFINITY"
    lines = [f"resource.setrlimit(resource.RLIMIT_{name}, ({unlimited}, {unlimited}))" for name in names]
    lines += [f"resource.prlimit(1, resource.RLIMIT_AS, ({unlimited}, {unlimited}))", "bytearray(600 << 20)"]
    printed, _ = run(sandbox, attempts(*lines), limits)
    assert "OUT" not in printed and printed.count("no ") == 8


def test_endless_output_is_cut(sandbox, limits, run):
    small = dataclasses.replace(limits, output_kb=64)
    printed, ending = run(sandbox, "while True:\n    print('x' * 1000)", small)
    assert ending == "too_much_output" and len(printed) <= 64 * 1024


@pytest.mark.parametrize(
    "program",
    [
        "import time\ntime.sleep(60)",
        "while True:\n    pass",
        "import os, time\nos.close(1)\nos.close(2)\ntime.sleep(60)",
        "import signal\nfor number in range(1, 32):\n    try:\n        signal.signal(number, signal.SIG_IGN)\n"
        "    except (OSError, ValueError):\n        pass\nwhile True:\n    pass",
        "import atexit, time\natexit.register(time.sleep, 60)",
        "print(9 ** 9 ** 9)",
    ],
    ids=["sleep", "loop", "closed_output", "ignored_signals", "at_exit", "long_power"],
)
def test_time_ends_every_program(sandbox, short, run, program):
    assert run(sandbox, program, short) == ("", "timed_out")


def test_the_sandbox_ends_with_the_process_that_started_it(sandbox, limits):
    program = (
        "import os, time\n"
        "from trl_reasoning.rewards.code import Bubblewrap, Limits\n"
        f"with Bubblewrap().start('stdin', Limits(seconds={limits.seconds})) as process:\n"
        '    message = b\'{"program": "import time; time.sleep(60)"}\'\n'
        "    process.stdin.write(len(message).to_bytes(4, 'big') + message)\n"
        "    process.stdin.flush()\n    time.sleep(0.5)\n    print('started', flush=True)\n    os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert done.stdout == "started\n", done.stderr  # that nothing is left is seen when `limits` ends
