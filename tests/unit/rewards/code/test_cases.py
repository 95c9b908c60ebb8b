import pytest

from trl_reasoning.rewards.code import UnreadableTestsError, read_asserts, read_stdin


CHECK = """def check(candidate):
    assert candidate(1) == 2
    for i in range(3):
        assert candidate(i) == i + 1
"""


def test_a_check_function_is_called_with_the_entry_point():
    tests = read_asserts(CHECK, None, "up")
    assert tests.entries == {"up": "up"}
    assert tests.items[0].endswith("check(up)")
    assert [unit.in_loop for unit in tests.units] == [False, True]


def test_a_check_function_that_is_called_already_is_left_alone():
    assert read_asserts(CHECK + "check(up)\n", None, "up").items[0].count("check(") == 2
    assert read_asserts(CHECK + "check(up)\n").entries == {"up": "up"}


def test_a_method_is_known_as_candidate():
    tests = read_asserts("def check(candidate):\n    assert candidate(1) == 2", None, "Solution().up")
    assert tests.entries == {"candidate": "Solution().up"}


def test_names_that_nobody_defines_are_functions_of_the_program():
    code = "import math\nlimit = 3\nassert first(limit) == max(second(1), math.floor(helper(2)))"
    assert read_asserts([code], "def helper(x): return x").entries == {"first": "first", "second": "second"}


def test_what_counts_as_a_test():
    tests = read_asserts(
        [
            "assert f(1)\nassert f(2)\nassert True, 'always'",
            "f(3)",
            "try:\n    f(-1)\n    assert False\nexcept ValueError:\n    pass",
            "def helper(x):\n    assert f(x)\nhelper(1)\nwhile f(0):\n    assert f(1)",
        ]
    )
    found = [(unit.item, unit.in_loop, unit.is_item) for unit in tests.units]
    assert found == [
        (0, False, False),
        (0, False, False),
        (1, False, True),
        (2, False, True),
        (3, True, False),
        (3, True, False),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["assert f(1 =="],), "test 0 is no Python code"),
        ((["assert f(1)"], "def broken("), "the setup is no Python code"),
        (([],), "expected Python code"),
        ((None,), "expected Python code"),
        (([1],), "expected Python code"),
        ((["assert 1 + 1 == 2"],), "call nothing of the program"),
        ((CHECK,), "needs an `entry_point`"),
        ((CHECK, None, "f(1)"), "expected `entry_point` like"),
        ((CHECK, None, "1 +"), "no Python name"),
        ((["s = Stack()\ns.push(1)\nassert s.pop() == 1"],), r"use `s.push`: only data comes back"),
        ((["assert Stack().size == 0"],), r"use `Stack\(\).size`"),
        ((["assert Stack.limit == 0"],), r"use `Stack.limit`"),
        ((["x\x00"],), "no Python code"),
    ],
)
def test_tests_that_cannot_be_run_are_refused(arguments, message):
    with pytest.raises(UnreadableTestsError, match=message):
        read_asserts(*arguments)


def test_methods_of_data_are_fine():
    assert read_asserts(["assert f(1).lower() == 'a'\nx = f(2)\nassert x.count(1) == 2"]).entries == {"f": "f"}


def test_inputs_and_outputs():
    pairs = (("1\n", "2\n"), ("3", "4"))
    assert read_stdin([{"input": "1\n", "output": "2\n"}, {"input": "3", "output": "4"}]).pairs == pairs
    assert read_stdin({"inputs": ["1\n", "3"], "outputs": ["2\n", "4"]}).pairs == pairs
    assert read_stdin('{"inputs": ["1\\n", "3"], "outputs": ["2\\n", "4"]}', tolerance=0.1).tolerance == 0.1


@pytest.mark.parametrize(
    "tests", [[], None, "", "{", "5", [{"input": "1"}], [{"input": 1, "output": 2}], {"inputs": ["1"], "outputs": []}]
)
def test_inputs_and_outputs_that_cannot_be_read_are_refused(tests):
    with pytest.raises(UnreadableTestsError, match="expected"):
        read_stdin(tests)
