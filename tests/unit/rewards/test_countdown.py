import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trl_reasoning.rewards import check_countdown, make_countdown_reward


def score(answer, target, nums, **parameters):
    reward = make_countdown_reward(**parameters)
    return reward(["?"], [f"<think>1</think><answer>{answer}</answer>"], [[1]], target=[target], nums=[nums])[0]


@pytest.mark.parametrize(
    ("answer", "nums", "outcome"),
    [
        ("(7 - 3) * 6", [3, 6, 7], "right"),
        ("6*(7-3)", [3, 6, 7], "right"),
        ("8/(3-8/3)", [3, 3, 8, 8], "right"),  # needs fractions: 3 - 8/3 = 1/3
        ("(7-3)*6 = 24", [3, 6, 7], "right"),
        ("24 = (7-3)*6", [3, 6, 7], "right"),
        ("[7-3]×6", [3, 6, 7], "right"),
        (r"(7-3) \times 6", [3, 6, 7], "right"),
        (r"\left(7-3\right)\cdot 6", [3, 6, 7], "right"),
        ("48÷2", [2, 48], "right"),
        ("-3+27", [3, 27], "right"),  # a minus in front is 27 - 3
        ("(((((24)))))", [24], "right"),
        ("7+3*6", [3, 6, 7], "wrong_value"),  # 25
        ("3*8", [3, 6, 7], "wrong_numbers"),
        ("12*2", [1, 2, 2], "wrong_numbers"),  # 1 and 2 joined
        ("6*4", [6, 2, 2], "wrong_numbers"),
        ("3*3+7+8", [3, 7, 8], "wrong_numbers"),  # 3 twice
        ("03*8", [3, 8], "wrong_numbers"),
        ("3.0*8", [3, 8], "wrong_numbers"),
        ("24", [3, 6, 7], "wrong_numbers"),
        ("= 24", [3, 8], "unreadable"),
        ("24 =", [3, 8], "unreadable"),
        ("3*8=24=24", [3, 8], "unreadable"),
        ("3*8=25", [3, 8], "unreadable"),  # says something false
        ("3*8 = 12*2", [3, 8], "unreadable"),
        ("2**3*3", [2, 3, 3], "unreadable"),
        ("2^3*3", [2, 3, 3], "unreadable"),
        ("4!", [4], "unreadable"),
        ("(5-1)!", [1, 5], "unreadable"),
        ("3(8)", [3, 8], "unreadable"),
        ("3 8", [3, 8], "unreadable"),
        ("٣*٨", [3, 8], "unreadable"),
        ("３*8", [3, 8], "unreadable"),
        ("3*8\n# 99", [3, 8], "unreadable"),
        ("24/(1-1)", [1, 1, 24], "unreadable"),
        ("3e0*8", [3, 8], "unreadable"),
        ("int(3*8)", [3, 8], "unreadable"),
        ("3*8 or 24", [3, 8], "unreadable"),
        ("sum([3,8])", [3, 8], "unreadable"),
        ("3//1*8", [1, 3, 8], "unreadable"),
        ("49%25", [25, 49], "unreadable"),
        ("__import__('os').system('true')", [3, 8], "unreadable"),
        ("", [3, 8], "unreadable"),
        ("(3*8", [3, 8], "unreadable"),
        ("3*8)", [3, 8], "unreadable"),
        ("+" * 2000 + "3", [3], "unreadable"),
        ("9" * 3000, [3], "unreadable"),
    ],
)
def test_outcomes(answer, nums, outcome):
    assert check_countdown(answer, 24, nums) == outcome


def test_a_thousand_parentheses_are_no_recursion():
    assert check_countdown("(" * 990 + "3*8" + ")" * 990, 24, [3, 8]) == "right"
    assert check_countdown("(" * 1000 + "3*8" + ")" * 999, 24, [3, 8]) == "unreadable"


def test_some_of_the_numbers():
    assert check_countdown("3*8", 24, [3, 8, 100], "some") == "right"
    assert check_countdown("3*8", 24, [3, 8, 100], "all") == "wrong_numbers"
    assert check_countdown("8*8-40", 24, [8, 40], "some") == "wrong_numbers"


def test_the_value_is_exact():
    assert check_countdown("1/3", 0.333333333333, [1, 3]) == "wrong_value"
    assert check_countdown("1/4", 0.25, [1, 4]) == "right"
    assert check_countdown("5-8", "-3", ["5", "8.0"]) == "right"


def test_credit_and_rows_that_cannot_be_judged():
    assert score("3*8", 24, [3, 8]) == 1.0
    assert score("3+8", 24, [3, 8]) == 0.0
    assert score("3+8", 24, [3, 8], form=0.1) == 0.1
    assert score("12+12", 24, [3, 8], form=0.1) == 0.0
    assert score("no idea", 24, [3, 8], form=0.1) == 0.0
    for target, nums in [(None, [3, 8]), (24, None), ("1e999999999", [3, 8]), (24, ["x"]), ("twenty", [3])]:
        assert score("3*8", target, nums) is None


def test_only_the_visible_answer_counts():
    reward = make_countdown_reward()
    completions = [
        "<think>3*8</think>",
        "<think>3*8",
        "3*8</think>I do not know",
        r"<think>?</think>It is \boxed{3*8}.",
        "<think>?</think>3*8",
        "<answer>3+8</answer><answer>3*8</answer>",
        "<answer>3*8</answer><answer>3+8</answer>",
        "<answer>3*8",
        [{"role": "assistant", "content": "<think>?</think>\n<answer>\n3 * 8\n</answer>"}],
    ]
    count = len(completions)
    found = reward(["?"] * count, completions, [[1]] * count, target=[24] * count, nums=[[3, 8]] * count)
    assert found == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0]
    opened = [True, True]
    assert reward(["?"] * 2, ["3*8", "a</think>3*8"], [[1]] * 2, target=[24] * 2, nums=[[3, 8]] * 2,
                  thought_opened=opened) == [0.0, 1.0]  # fmt: skip


def test_it_logs_the_statuses():
    logged = {}
    reward = make_countdown_reward()
    reward(
        ["?"] * 4,
        ["3*8", "3+8", "?", "3*8"],
        [[1]] * 4,
        target=[24, 24, 24, None],
        nums=[[3, 8]] * 4,
        log_metric=lambda name, value: logged.setdefault(name, []).append(value),
    )
    assert logged["answers/right"] == [1, 0, 0, 0]
    assert logged["answers/wrong"] == [0, 1, 0, 0]
    assert logged["answers/unparsed"] == [0, 0, 1, 0]
    assert logged["answers/unreadable_gold"] == [0, 0, 0, 1]


def test_parameters():
    assert pickle.loads(pickle.dumps(make_countdown_reward("some"))).use == "some"
    with pytest.raises(ValueError, match="use: expected one of all, some, got 'any'"):
        make_countdown_reward("any")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="form: expected"):
        make_countdown_reward(form=1.0)


@settings(deadline=None, max_examples=150)
@given(st.text(alphabet="0123456789+-*/()^!=. ×", max_size=30) | st.text(max_size=30))
def test_any_text_is_judged(text):
    assert check_countdown(text, 24, [3, 8]) in ("right", "wrong_value", "wrong_numbers", "unreadable")


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(1, 99), min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_an_expression_that_python_evaluates_to_the_target_is_right(nums, random):
    text = str(nums[0])
    for number in nums[1:]:
        text = f"({text} {random.choice('+-*')} {number})"
    target = eval(text)  # the test's own text
    assert check_countdown(text, target, nums) == "right"
    assert check_countdown(text, target + 1, nums) == "wrong_value"
