import dataclasses
import pickle

import pytest

from trl_reasoning.config.rewards import make_rewards
from trl_reasoning.rewards import REWARDS
from trl_reasoning.rewards.code import make_code_tests_reward, read_asserts, run_asserts

from .problems import PROBLEMS, STDIN


def fenced(code: str) -> str:
    return f"<think>Let me see.</think>\n```python\n{code}\n```"


def score(reward, rows, codes, **kwargs):
    """Score one program a row."""
    names = {name for row in rows for name in row} - {"right", "wrong"}
    columns = {name: [row.get(name) for row in rows] for name in names}
    completions = [fenced(code) for code in codes]
    return reward([""] * len(codes), completions, [[1]] * len(codes), **columns, **kwargs)


@pytest.fixture(autouse=True)
def needs_a_sandbox(sandbox):
    """Every test of this file runs programs."""


@pytest.mark.parametrize("credit", ["strict", "partial"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_right_and_wrong_programs(name, credit):
    problem = PROBLEMS[name]
    codes = [problem["right"], *problem["wrong"]]
    shares = [1.0, *problem["wrong"].values()]
    expected = shares if credit == "partial" else [float(share == 1) for share in shares]
    assert score(make_code_tests_reward(credit=credit), [problem] * len(codes), codes) == pytest.approx(expected)


@pytest.mark.parametrize("credit", ["strict", "partial"])
def test_programs_that_read_and_print(credit):
    codes = [STDIN["right"], *STDIN["wrong"]]
    shares = [1.0, *STDIN["wrong"].values()]
    expected = shares if credit == "partial" else [float(share == 1) for share in shares]
    reward = make_code_tests_reward(kind="stdin", credit=credit)
    assert score(reward, [STDIN] * len(codes), codes) == pytest.approx(expected)


def test_a_batch_keeps_its_order_and_says_what_came_of_it():
    problem = PROBLEMS["list_of_asserts"]
    broken = {**problem, "tests": ["assert add(1 =="]}
    unsendable = {**problem, "tests": ["assert add(len, 1) == 2"]}
    raising = {**problem, "test_setup": "1 / 0"}
    rows = [problem, broken, problem, problem, problem, unsendable, raising]
    loop = "def add(a, b):\n    while True:\n        pass"
    texts = [fenced(problem["right"])] * 2 + ["I cannot.", fenced("def add(a, b): return 0"), fenced(loop)]
    texts += [fenced(problem["right"])] * 2
    metrics, extra = [], {}
    scores = make_code_tests_reward(seconds=1)(
        [""] * 7,
        texts,
        [[1]] * 7,
        tests=[row["tests"] for row in rows],
        test_setup=[row.get("test_setup") for row in rows],
        log_metric=lambda name, value: metrics.append((name, value)),
        log_extra=extra.__setitem__,
    )
    assert scores == [1.0, None, 0.0, 0.0, 0.0, None, None]
    statuses = ["passed", "unreadable_tests", "no_code", "failed", "timed_out", "unreadable_tests", "unreadable_tests"]
    assert extra == {"code_status": statuses}
    for status in set(statuses):
        values = [value for name, value in metrics if name == f"code/{status}"]
        assert sum(values) == statuses.count(status) and len(values) == 7


def test_a_program_that_ends_early_fails_the_rest():
    """The denominator is the row's."""
    tests = [f"assert f({number}) == {number}" for number in range(4)]
    reward = make_code_tests_reward(credit="partial")
    codes = [
        "import os\ndef f(x):\n    if x == 1: os._exit(0)\n    return x",
        "def f(x):\n    if x == 1: exit()\n    return x",
    ]
    assert score(reward, [{"tests": tests}] * 2, codes) == [0.25, 0.75]
    loop = "def f(x):\n    while x == 2:\n        pass\n    return x"
    assert score(make_code_tests_reward(credit="partial", seconds=1), [{"tests": tests}], [loop]) == [0.5]
    loops = {"tests": "for n in range(9):\n    assert f(n) == n\nassert f(1) == 1"}
    assert score(reward, [loops], ["def f(x):\n    return x if x < 8 else 1 / 0"]) == [0.5]
    assert score(reward, [loops], ["import os\ndef f(x):\n    return x if x < 8 else os._exit(0)"]) == [0.0]


def test_a_prompt_that_opens_the_thought():
    text = "It is a sum.</think>```python\ndef add(a, b):\n    return a + b\n```"
    reward = make_code_tests_reward()
    tests = [["assert add(1, 2) == 3"]] * 2
    scores = reward(
        [""] * 2,
        [text, "```python\ndef add(a, b): return a + b\n```"],
        [[1]] * 2,
        tests=tests,
        thought_opened=[True] * 2,
    )
    assert scores == [1.0, 0.0]


def test_arguments_and_results_have_a_size(sandbox, limits):
    small = dataclasses.replace(limits, output_kb=8)
    program = "def f(x): return x * 4000 if x == 'a' else x"
    long = run_asserts(program, read_asserts(["assert f('b' * 9000)"]), small, sandbox, partial=False)
    assert long.status == "unreadable_tests" and "allowed are 8192" in long.detail
    tests = read_asserts(["assert f('a') == 'a' * 4000", "assert f('b' * 8000)", "assert f('b') == 'b'"])
    assert run_asserts(program, tests, small, sandbox, partial=False).status == "passed"
    program = "def f(x): return x * 9000 if x == 'a' else x"
    assert run_asserts(program, tests, small, sandbox, partial=True).share == 0.0


def test_what_one_program_does_does_not_reach_the_next(sandbox, limits):
    tests = read_asserts(["assert f(1) == 1", "assert f(1) == 2"])
    counter = "calls = 0\ndef f(x):\n    global calls\n    calls += 1\n    return calls"
    for _ in range(2):
        assert run_asserts(counter, tests, limits, sandbox, partial=False).status == "passed"


def test_numbers_within_a_tolerance():
    row = {"tests": [{"input": "", "output": "0.333333"}]}
    reward = make_code_tests_reward(kind="stdin", tolerance=1e-5)
    assert score(reward, [row] * 2, ["print(1 / 3)", "print(0.34)"]) == [1.0, 0.0]


def test_it_is_picklable_and_known_to_recipes():
    reward = pickle.loads(pickle.dumps(make_code_tests_reward(seconds=3)))
    assert reward.limits.seconds == 3
    assert score(reward, [PROBLEMS["in_place"]], [PROBLEMS["in_place"]["right"]]) == [1.0]
    [made] = make_rewards([{"name": "code_tests", "kind": "stdin", "credit": "partial", "weight": 2}])
    assert (made.columns, made.weight, made.function.__name__) == (("tests",), 2.0, "code_tests_reward")
    assert REWARDS["code_tests"] is make_code_tests_reward


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kind": "unittest"}, "kind: expected one of asserts, stdin"),
        ({"credit": "half"}, "credit: expected one of strict, partial"),
        ({"seconds": 0}, "seconds: expected a number from 0.1"),
        ({"memory_mb": 8}, "memory_mb: expected a number from 64"),
        ({"scratch_mb": -1}, "scratch_mb: expected"),
        ({"output_kb": 0}, "output_kb: expected"),
        ({"tolerance": 0.1}, "tolerance: expected"),
        ({"kind": "stdin", "tolerance": 2.0}, "tolerance: expected"),
        ({"workers": 0}, "workers: expected at least 1"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        make_code_tests_reward(**parameters)
