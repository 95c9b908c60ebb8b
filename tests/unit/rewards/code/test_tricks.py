"""Programs that try to pass tests without solving them. Each gets nothing and leaves nothing behind."""

import pytest

from trl_reasoning.rewards.code import read_asserts, read_stdin, run_asserts, run_stdin


# The expected values are nowhere in the program's sandbox, so none of these can know them.
TESTS = [
    "assert solve(3) == 8128",
    "assert solve(4) == 'lantern'",
    "values = [3, 1, 2]\nassert solve(values) is None and values == [1, 2, 3]",
]
ALWAYS_EQUAL = """
class Any{base}:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __bool__(self): return True
    def __instancecheck__(self, other): return True
    def __class_getitem__(cls, item): return cls
"""
TRICKS = {
    "os_exit": "import os\nos._exit(0)",
    "os_exit_in_call": "import os\ndef solve(x): os._exit(0)",
    "sys_exit": "import sys\nsys.exit(0)",
    "system_exit_in_call": "def solve(x): raise SystemExit(0)",
    "keyboard_interrupt": "def solve(x): raise KeyboardInterrupt",
    "always_equal": ALWAYS_EQUAL.format(base="") + "def solve(x): return Any()",
    "always_equal_int": ALWAYS_EQUAL.format(base="(int)") + "def solve(x): return Any(5)",
    "always_equal_str": ALWAYS_EQUAL.format(base="(str)") + "def solve(x): return Any('a')",
    "always_equal_list": ALWAYS_EQUAL.format(base="(list)") + "def solve(x): return Any([1])",
    "always_equal_float": ALWAYS_EQUAL.format(base="(float)") + "def solve(x): return Any(1.5)",
    "type_lie": "class Lie:\n    __class__ = int\n    def __eq__(self, o): return True\ndef solve(x): return Lie()",
    "patched_builtins": "import builtins\nfor name in ('AssertionError', 'Exception', 'isinstance', 'len'):\n"
    "    setattr(builtins, name, lambda *a, **k: True)\ndef solve(x): return 1",
    "no_assertion_error": "import builtins\ndel builtins.AssertionError\ndef solve(x): return 1",
    "patched_unittest": "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\ndef solve(x): return 1",
    "marker": "import sys\nprint('held 0\\nheld 1\\nitem 0\\nitem 1\\nitem 2\\nend')\nsys.stdout.flush()\n"
    "def solve(x):\n    print('passed')\n    return 1",
    "marker_everywhere": "import os\nfor n in range(64):\n"
    "    try: os.write(n, b'held 0\\nheld 1\\nitem 0\\nitem 1\\nend\\n')\n    except OSError: pass\n"
    "def solve(x): return 1",
    "forged_replies": "import os, struct\nreply = b'{\"value\":1}'\n"
    "for n in range(3, 64):\n    try: os.write(n, (struct.pack('>I', len(reply)) + reply) * 20)\n"
    "    except OSError: pass\ndef solve(x): return 1",
    "forged_error": 'import os, struct\nreply = b\'{"error":["__import__","os"]}\'\n'
    "for n in range(3, 64):\n    try: os.write(n, (struct.pack('>I', len(reply)) + reply) * 20)\n"
    "    except OSError: pass\ndef solve(x): return 1",
    "huge_frame": "import os\nfor n in range(3, 64):\n    try: os.write(n, b'\\xff' * 4096)\n    except OSError: pass",
    "frames": "import sys\ndef solve(x):\n    frame = sys._getframe()\n    found = []\n    while frame:\n"
    "        found += [v for v in {**frame.f_globals, **frame.f_locals}.values() if v in (8128, 'lantern')]\n"
    "        frame = frame.f_back\n    return found[0] if found else None",
    "gc": "import gc\ndef solve(x):\n    for item in gc.get_objects():\n"
    "        if isinstance(item, dict) and 'items' in item:\n"
    "            return item['items']",
    "ctypes": "import ctypes\ndef solve(x):\n"
    "    ctypes.cast(id(x), ctypes.POINTER(ctypes.c_long))[2] = 8128\n    return x",
    "changed_ints": "import ctypes\nfor n in range(3, 9):\n"
    "    ctypes.cast(id(n), ctypes.POINTER(ctypes.c_int))[6] = 8128\n"
    "def solve(x): return x",
    "crash": "import ctypes\ndef solve(x): return ctypes.string_at(0)",
    "delete_tests": "import os, shutil, sys\nfor folder in ('/box', '.', '/dev'):\n"
    "    shutil.rmtree(folder, ignore_errors=True)\n"
    "def solve(x): return 1",
    "kill_all": "import os\ndef solve(x):\n    for pid in (1, os.getppid(), -1, 0):\n        try: os.kill(pid, 9)\n"
    "        except OSError: pass\n    return 1",
    "huge_int": "def solve(x): return 1 << (1 << 24)",
    "huge_list": "def solve(x): return [0] * 10 ** 6",
    "deep_list": "def solve(x):\n    found = []\n    for _ in range(10 ** 5): found = [found]\n    return found",
    "cycle": "def solve(x):\n    found = []\n    found.append(found)\n    return found",
    "cycle_in_argument": "def solve(x):\n    if isinstance(x, list): x.append(x)\n    return None",
    "lying_iterator": "class L(list):\n    def __iter__(self): return iter(range(10 ** 9))\ndef solve(x): return L()",
    "error_with_code": "class E(Exception):\n    def __str__(self): raise SystemExit\ndef solve(x): raise E",
    "named_like_builtin": "class AssertionError(Exception): pass\ndef solve(x): raise AssertionError('held 0')",
    "generator": "def solve(x): yield 8128",
    "double_fork": "import os\ntry:\n    if os.fork() == 0 and os.fork() == 0: os.setsid()\nexcept OSError: pass\n"
    "def solve(x): return 1",
    "late_thread": "import threading, time\ndef solve(x):\n"
    "    try: threading.Thread(target=time.sleep, args=(60,)).start()\n"
    "    except RuntimeError: pass\n    return 1",
}
STUCK = {
    "colliding_keys": "def solve(x): return {i * (2 ** 61 - 1): 0 for i in range(20000)}",
    "sleep_in_call": "import time\ndef solve(x): time.sleep(60)",
    "sleep_at_load": "import time\ntime.sleep(60)",
    "no_reply": "import os, time\nfor n in range(3, 64):\n"
    "    try: os.close(n)\n    except OSError: pass\ntime.sleep(60)",
    "dribble": "import os, time\nfor n in range(3, 64):\n    try: os.write(n, b'\\x00\\x00\\xff\\xff')\n"
    "    except OSError: pass\ntime.sleep(60)",
    "signals": "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)",
}


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_passes_no_test(sandbox, limits, name):
    outcome = run_asserts(TRICKS[name], read_asserts(TESTS), limits, sandbox, partial=True)
    assert (outcome.status, outcome.share) == ("failed", 0.0)


@pytest.mark.parametrize("name", STUCK)
def test_a_program_that_hangs_is_out_of_time(sandbox, short, name):
    outcome = run_asserts(STUCK[name], read_asserts(TESTS), short, sandbox, partial=True)
    assert (outcome.status, outcome.share) == ("timed_out", 0.0)


def test_the_right_program_passes_them(sandbox, limits):
    program = "def solve(x):\n    if isinstance(x, list): return x.sort()\n    return {3: 8128, 4: 'lantern'}[x]"
    assert run_asserts(program, read_asserts(TESTS), limits, sandbox, partial=False).status == "passed"


@pytest.mark.parametrize(
    "program",
    [
        "import os\nos._exit(0)",
        "import sys\nprint('passed')\nsys.exit(0)",
        "import gc\nprint([o for o in gc.get_objects() if isinstance(o, dict) and 'outputs' in o])",
        "import sys\nprint(sys.argv, sys.stdin.read())",
        "while True: print(42)",
        "print(42)\nimport os\nos._exit(1)",
        "print(42, end='\\x00')",
        "print('41\\r42')",
    ],
)
def test_a_trick_prints_no_answer(sandbox, limits, program):
    outcome = run_stdin(program, read_stdin([{"input": "6 7", "output": "42"}]), limits, sandbox, partial=True)
    assert (outcome.status, outcome.share) == ("failed", 0.0)
