"""The cosine reward and the soft overlong punishment: worked numbers, and what they may never pay for."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trl_reasoning.rewards import make_cosine_length_reward, make_soft_overlong_reward


RIGHT, WRONG = r"\boxed{4}", r"\boxed{5}"


def overlong(lengths, **chosen):
    return make_soft_overlong_reward(**chosen)(["?"] * len(lengths), [""] * len(lengths), [[1] * n for n in lengths])


def cosine(texts, lengths, golds=None, **chosen):
    rows = len(texts)
    golds = ["4"] * rows if golds is None else golds
    return make_cosine_length_reward(**chosen)(["?"] * rows, texts, [[1] * n for n in lengths], solution=golds)


def test_soft_overlong_worked_numbers():
    assert overlong([0, 80, 90, 100, 101, 5000], max_length=100, cache=20) == [0.0, 0.0, -0.5, -1.0, -1.0, -1.0]
    assert overlong([100, 101], max_length=100, cache=0) == [0.0, -1.0]
    assert overlong([0, 50, 100], max_length=100, cache=100) == [0.0, -0.5, -1.0]


@given(st.integers(1, 200), st.data())
@settings(max_examples=40, deadline=None)
def test_soft_overlong_bounds_and_order(max_length, data):
    cache = data.draw(st.integers(0, max_length))
    lengths = data.draw(st.lists(st.integers(0, 300), min_size=1, max_size=8))
    values = overlong(lengths, max_length=max_length, cache=cache)
    assert all(-1.0 <= value <= 0.0 for value in values)
    by_length = [value for _, value in sorted(zip(lengths, values, strict=True))]
    assert by_length == overlong(sorted(lengths), max_length=max_length, cache=cache)
    assert by_length == sorted(by_length, reverse=True)


def test_cosine_worked_numbers():
    lengths = [0, 50, 100, 150]
    assert cosine([RIGHT] * 4, lengths, max_length=100) == pytest.approx([1.0, 0.75, 0.5, 0.5])
    assert cosine([WRONG] * 4, lengths, max_length=100) == pytest.approx([-1.0, -0.75, -0.5, -0.5])
    assert cosine(["no idea", r"\boxed{9^{9^{9}}}"], [50, 50], max_length=100) == pytest.approx([-0.75, -0.75])
    assert cosine([RIGHT, RIGHT], [50, 50], ["", None], max_length=100) == [None, None]


def test_cosine_with_the_values_of_its_paper():
    chosen = {
        "right_short": 2, "right_long": 1, "wrong_short": -10, "wrong_long": 0, "overlong": -10, "max_length": 100,
    }  # fmt: skip
    lengths = [0, 25, 99, 100, 300]
    share = [0.5 * (1 + math.cos(math.pi * length / 100)) for length in lengths[:3]]
    assert cosine([RIGHT] * 5, lengths, **chosen) == pytest.approx([*(1 + s for s in share), -10, -10])
    assert cosine([WRONG] * 5, lengths, **chosen) == pytest.approx([*(-10 * s for s in share), -10, -10])


@given(
    st.lists(st.tuples(st.integers(0, 200), st.booleans()), min_size=1, max_size=8),
    st.integers(1, 150),
    st.tuples(st.floats(-9, 0), st.floats(-9, 0)).map(sorted),
    st.tuples(st.floats(0.01, 9), st.floats(0.01, 9)).map(sorted),
)
@settings(max_examples=60, deadline=None)
def test_cosine_bounds_and_order(rows, max_length, wrong, right):
    chosen = {
        "max_length": max_length, "right_short": right[1], "right_long": right[0],
        "wrong_short": wrong[0], "wrong_long": wrong[1],
    }  # fmt: skip
    rows = sorted(rows)
    values = cosine([RIGHT if is_right else WRONG for _, is_right in rows], [length for length, _ in rows], **chosen)
    of_right = [value for value, (_, is_right) in zip(values, rows, strict=True) if is_right]
    of_wrong = [value for value, (_, is_right) in zip(values, rows, strict=True) if not is_right]
    assert all(right[0] - 1e-9 <= value <= right[1] + 1e-9 for value in of_right)
    assert all(wrong[0] - 1e-9 <= value <= wrong[1] + 1e-9 for value in of_wrong)
    assert of_right == sorted(of_right, reverse=True)  # a right answer is never paid for being long
    assert of_wrong == sorted(of_wrong)  # a wrong answer is never paid for being short
    assert min(of_right, default=9.0) > max(of_wrong, default=-9.0)
    backwards = cosine(
        [RIGHT if is_right else WRONG for _, is_right in rows[::-1]], [length for length, _ in rows[::-1]], **chosen
    )
    assert backwards == values[::-1]


def test_tokens_count_and_not_characters():
    padded = RIGHT + " " * 500
    assert cosine([padded, RIGHT], [10, 100], max_length=100)[0] > 0.97
    reward = make_soft_overlong_reward(max_length=100, cache=20)
    assert reward(["?"], ["x" * 1000], [[1]]) == [0.0]


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"max_length": 0}, "^max_length: expected at least 1 token, got 0"),
        ({"wrong_long": 0.5}, "^wrong_long: expected at most 0, as a wrong answer is never paid, got 0.5"),
        ({"wrong_short": 0.0}, r"^wrong_short: expected at most wrong_long \(-0.5\), or a wrong answer would be paid"),
        ({"right_long": -0.1}, r"^right_long: expected at least 0 and above wrong_long \(-0.5\)"),
        ({"right_long": 0, "wrong_long": 0}, r"^right_long: expected at least 0 and above wrong_long \(0\)"),
        ({"right_short": 0.4}, r"^right_short: expected at least right_long \(0.5\), got 0.4"),
        ({"overlong": 0.0}, r"^overlong: expected at most wrong_long \(-0.5\) and finite, got 0"),
        ({"overlong": float("-inf")}, r"^overlong: expected at most wrong_long \(-0.5\) and finite, got -inf"),
        ({"right_short": float("nan")}, "^right_short: expected a finite number, got nan"),
        ({"kind": "numbr"}, "Did you mean `number`"),
    ],
)
def test_ranges_that_pay_the_wrong_thing_are_refused(chosen, message):
    with pytest.raises(ValueError, match=message):
        make_cosine_length_reward(**{"max_length": 100, **chosen})


@pytest.mark.parametrize(
    ("max_length", "cache", "message"),
    [
        (0, 0, "^max_length: expected at least 1 token, got 0"),
        (10, 11, r"^cache: expected 0 to max_length \(10\) tokens, got 11"),
        (10, -1, "^cache: expected 0 to max_length"),
    ],
)
def test_soft_overlong_parameters(max_length, cache, message):
    with pytest.raises(ValueError, match=message):
        make_soft_overlong_reward(max_length, cache)
