"""The choice between a sandbox and none, and what a plain subprocess does limit."""

import dataclasses
import os
import stat
import subprocess
import sys

import pytest

from trl_reasoning.errors import UserError
from trl_reasoning.rewards.code import (
    Bubblewrap,
    PlainSubprocess,
    bubblewrap_problem,
    find_backend,
    make_code_tests_reward,
    read_asserts,
    run_asserts,
)


TESTS = read_asserts(["assert f(2) == 4", "assert f(3) == 9"])


@pytest.fixture
def path(tmp_path, monkeypatch):
    """An empty folder of programs; `bwrap` is looked for again."""
    monkeypatch.setenv("PATH", str(tmp_path))
    bubblewrap_problem.cache_clear()
    yield tmp_path
    bubblewrap_problem.cache_clear()


def fake_bwrap(path, script: str) -> None:
    file = path / "bwrap"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IEXEC)


def test_without_bubblewrap_both_ways_out_are_named(path):
    reward = make_code_tests_reward()
    with pytest.raises(UserError, match=r"`bwrap`\) is not installed.*package `bubblewrap`.*allow_unsandboxed: true"):
        reward.check_ready()
    assert isinstance(find_backend(allow_unsandboxed=True), PlainSubprocess)
    make_code_tests_reward(allow_unsandboxed=True).check_ready()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'bwrap: No permissions to create new namespace' >&2; exit 1", "kernel.unprivileged_userns_clone"),
        ("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "namespaces cannot be made here"),
        ("echo 'bwrap: Unknown option --size' >&2; exit 1", "version 0.8 or newer"),
        ("exit 3", "exit status 3"),
        ("echo 41", "cannot build a sandbox"),
    ],
)
def test_a_bubblewrap_that_does_not_work_says_why(path, script, message):
    fake_bwrap(path, script)
    with pytest.raises(UserError, match=message) as raised:
        find_backend()
    assert "allow_unsandboxed: true" in str(raised.value)


def test_bubblewrap_is_chosen_where_it_works(sandbox):
    assert isinstance(find_backend(), Bubblewrap)
    assert isinstance(find_backend(allow_unsandboxed=True), Bubblewrap)


def test_a_plain_subprocess_gives_the_same_verdicts(limits):
    programs = {
        "def f(x): return x * x": "passed",
        "def f(x): return x + 2": "failed",
        "import os\nos._exit(0)": "failed",
        "import sys\ndef f(x): sys.exit(0)": "failed",
        "class E:\n    def __eq__(self, other): return True\ndef f(x): return E()": "failed",
        "print('held 0\\nheld 1\\nitem 0\\nitem 1\\nend')\ndef f(x): return 0": "failed",
    }
    for program, status in programs.items():
        assert run_asserts(program, TESTS, limits, PlainSubprocess(), partial=False).status == status, program


def test_a_plain_subprocess_is_limited(limits, short, run, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    plain = PlainSubprocess()
    program = "import os\nprint(os.environ.get('SECRET_TOKEN'), os.environ['HOME'] == os.getcwd(), input())"
    assert run(plain, program, limits, "word") == ("None True word\n", "0")
    memory = "try:\n    bytearray(600 << 20)\nexcept MemoryError:\n    print('no')"
    assert run(plain, memory, limits) == ("no\n", "0")
    file = "try:\n    with open('part', 'wb') as file: file.write(bytes(2 << 20))\nexcept OSError:\n    print('no')"
    assert run(plain, file, dataclasses.replace(limits, scratch_mb=1)) == ("no\n", "0")
    assert run(plain, "while True: print('x' * 999)", limits)[1] == "too_much_output"
    assert run(plain, "import time\ntime.sleep(60)", short) == ("", "timed_out")


def test_children_of_a_plain_subprocess_end_with_it(short, run):
    """Those that stay in its session; `short` looks for what is left."""
    program = "import os, time\nif os.fork() == 0:\n    time.sleep(60)\nprint('parent ends', flush=True)"
    if os.geteuid() != 0:
        pytest.skip("a user's process may not fork under the limits")
    printed, ending = run(PlainSubprocess(), program, short)
    assert printed.startswith("parent ends") and ending in ("timed_out", "0")


def test_nobody_else_can_make_processes_either(sandbox, tmp_path):
    """As a user: the sandbox works, and the filter holds there as well."""
    python = "/usr/bin/python3"
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user; as a user the other tests show the same")
    package = os.path.dirname(os.path.dirname(sys.modules["trl_reasoning"].__file__ or ""))
    program = (
        f"import sys; sys.path.insert(0, {package!r})\n"
        "from trl_reasoning.rewards.code import *\n"
        "print(bubblewrap_problem())\n"
        "tests = read_asserts(['assert f(1) == 1', 'assert f(2) == \"no\"'])\n"
        "code = 'import os\\ndef f(x):\\n    if x == 1: return x\\n    try: os.fork()\\n'\n"
        "code += '    except OSError: return \"no\"'\n"
        "print(run_asserts(code, tests, Limits(), Bubblewrap(), partial=False))\n"
    )
    done = subprocess.run(
        [python, "-c", program],
        capture_output=True,
        text=True,
        user=65533,
        group=65533,
        extra_groups=[],
        cwd="/",
        timeout=60,
    )
    if done.returncode != 0 and ("ModuleNotFoundError" in done.stderr or "SyntaxError" in done.stderr):
        pytest.skip(f"another user's {python} cannot read this package here")
    assert done.stdout == "None\nOutcome(status='passed', share=1.0, detail='')\n", done.stderr
