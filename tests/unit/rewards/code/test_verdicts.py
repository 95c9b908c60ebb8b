"""Verdicts where a program could make the tests look broken or held, and where a sandbox differs from plain Python."""

import os
import subprocess
import sys

import pytest

from trl_reasoning.rewards.code import (
    Limits,
    UnreadableTestsError,
    build_program,
    read_asserts,
    read_stdin,
    run_asserts,
    run_stdin,
)


@pytest.mark.parametrize(
    ("program", "test"),
    [
        # A result that the tests pass on, and that is too large or too deep to be sent.
        ("def f(x): return 'a' * ((1 << 20) - 20)", "assert f(f(1)) == 1"),
        ("def f(x):\n    x = 1\n    for _ in range(99): x = [x]\n    return x", "assert f([f(1)]) == 1"),
        ("def f(x):\n    x.append('a' * ((1 << 20) - 100))", "x = []\nf(x)\nassert f(x) == 1"),
        ("def f(x): raise ModuleNotFoundError('no module')", "assert f(1) == 2"),
        ("def f(x): raise ModuleNotFoundError('no module')", "import math\ny = f(1)\nassert y == 2"),
    ],
)
def test_a_program_cannot_make_its_tests_unreadable(sandbox, limits, program, test):
    outcome = run_asserts(program, read_asserts([test]), limits, sandbox, partial=True)
    assert (outcome.status, outcome.share) == ("failed", 0.0)


@pytest.mark.parametrize(
    ("program", "test"),
    [
        # `map` ends where its function raises this, and then everything that was compared is equal.
        ("def f(x): raise StopIteration", "assert all(map(lambda c: f(c[0]) == c[1], [(1, 2), (3, 4)]))"),
        (
            "def f(x): raise StopIteration",
            "for found, y in zip(map(f, [1, 2]), [3, 4]):\n    assert found == y",
        ),
        ("import os\ndef f(x): os._exit(0)", "held = False\ntry:\n    f(1)\nexcept:\n    held = True\nassert held"),
    ],
)
def test_a_test_that_was_not_made_is_not_passed(sandbox, limits, program, test):
    for partial in (False, True):
        outcome = run_asserts(program, read_asserts([test]), limits, sandbox, partial=partial)
        assert (outcome.status, outcome.share) == ("failed", 0.0)


@pytest.mark.parametrize(
    ("program", "test"),
    [
        (
            "def f(x): raise StopIteration('end')",
            "try:\n    f(1)\nexcept StopIteration as e:\n    assert str(e)",
        ),
        ("def f(x): return {}[x]", "try:\n    f('a')\nexcept KeyError as e:\n    assert e.args == ('a',)"),
        ("def f(x): return {}[x]", "try:\n    f('a')\nexcept KeyError as e:\n    assert str(e) == \"'a'\""),
        ("def f(x):\n    try:\n        exit()\n    except SystemExit:\n        return x", "assert f(1) == 1"),
    ],
)
def test_programs_that_pass_in_plain_python_pass(sandbox, limits, program, test):
    namespace = {"exit": sys.exit}
    exec(program, namespace)
    exec(test, namespace)
    assert run_asserts(program, read_asserts([test]), limits, sandbox, partial=False).status == "passed"


@pytest.mark.parametrize("end", ["exit()", "quit()", "exit(0)", "import sys\nsys.exit()"])
def test_a_program_may_end_itself(sandbox, limits, end):
    tests = read_stdin([{"input": "6 7", "output": "42"}])
    program = f"a, b = map(int, input().split())\nprint(a * b)\n{end}\nprint('not here')"
    assert run_stdin(program, tests, limits, sandbox, partial=False).status == "passed"


def test_a_module_that_only_the_tests_import_is_their_fault(sandbox, limits):
    check = "import no_such_module\ndef check(candidate):\n    assert candidate(1) == 1"
    outcome = run_asserts("def f(x): return x", read_asserts(check, None, "f"), limits, sandbox, partial=True)
    assert outcome.status == "unreadable_tests" and "no_such_module" in outcome.detail
    program = "import no_such_module\ndef f(x): return x"
    assert run_asserts(program, read_asserts(["assert f(1) == 1"]), limits, sandbox, partial=True).status == "failed"


@pytest.mark.parametrize(
    "test",
    [
        "try:\n    f(1)\nexcept TooSmall:\n    pass",
        "try:\n    f(1)\nexcept (ValueError, TooSmall):\n    pass",
        "assert isinstance(f(1), Stack)",
        "assert issubclass(type(f(1)), (int, Stack))",
    ],
)
def test_classes_of_the_program_cannot_be_tested(test):
    with pytest.raises(UnreadableTestsError, match="use a class of the program"):
        read_asserts([test])


def test_a_long_program_needs_no_large_results(sandbox, limits):
    small = Limits(seconds=limits.seconds, output_kb=1)
    program = "# " + "x" * 5000 + "\ndef f(x): return x"
    assert run_asserts(program, read_asserts(["assert f(1) == 1"]), small, sandbox, partial=False).status == "passed"


@pytest.mark.parametrize("body", ["def f(x: Tree) -> Tree:\n    return x", "    return x"])
def test_future_imports_stand_first(body):
    code = f"from __future__ import annotations\n{body}"
    prompt = 'import math\n\ndef f(x):\n    """Gives x."""\n'
    namespace = {}
    exec(build_program(code, prompt, "f"), namespace)
    assert namespace["f"](2) == 2 and namespace["math"]


@pytest.mark.parametrize("closed", [(0,), (0, 2), (0, 1)])
def test_a_host_without_standard_streams(sandbox, closed, tmp_path):
    """Their numbers go to the next files that are opened, and a program gets its own streams there."""
    result = tmp_path / "result"
    program = (
        "from trl_reasoning.rewards.code import *\n"
        "tests, pairs = read_asserts(['assert f(1) == 1']), read_stdin([{'input': '1', 'output': '1'}])\n"
        "backend, limits = find_backend(), Limits()\n"
        "first = run_asserts('def f(x): return x', tests, limits, backend, partial=False)\n"
        "second = run_stdin('print(input())', pairs, limits, backend, partial=False)\n"
        f"open({str(result)!r}, 'w').write(first.status + ' ' + second.status)"
    )
    start = f"import os, sys\nfor n in {closed}: os.close(n)\n"
    start += "os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])"
    subprocess.run([sys.executable, "-c", start, program], timeout=60, cwd=os.getcwd())
    assert result.read_text() == "passed passed"
