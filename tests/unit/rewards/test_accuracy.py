"""The values of the accuracy reward, and who has to know them."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trl_reasoning.rewards import REWARDS, accuracy_gap, make_accuracy_reward, make_routed_reward, right_above


RIGHT, WRONG, NONE, TOO_LARGE = r"\boxed{4}", r"\boxed{5}", "no idea", r"\boxed{9^{9^{9}}}"
BATCH = [RIGHT, WRONG, NONE, TOO_LARGE, RIGHT]
GOLDS = ["4", "4", "4", "4", None]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, [1.0, 0.0, 0.0, 0.0, None]),
        ({"right": 10, "wrong": 0}, [10.0, 0.0, 0.0, 0.0, None]),  # Tulu 3
        ({"wrong": -1}, [1.0, -1.0, -1.0, -1.0, None]),
        ({"wrong": -1, "unparsed": -2, "timed_out": 0}, [1.0, -1.0, -2.0, 0.0, None]),
    ],
)
def test_values_by_verdict(values, expected):
    logged = {}
    assert (
        make_accuracy_reward(**values)(
            ["?"] * 5,
            BATCH,
            [[1]] * 5,
            solution=GOLDS,
            log_metric=lambda name, value: logged.setdefault(name, []).append(value),
        )
        == expected
    )
    # The shares are those of verdicts, whatever the values.
    assert logged["answers/right"] == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert logged["answers/unreadable_gold"] == [0.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"right": 0}, r"^wrong: expected less than right \(0\), got 0"),
        ({"wrong": 2}, r"^wrong: expected less than right \(1\), got 2"),
        ({"unparsed": 1.5}, r"^unparsed: expected less than right \(1\), got 1.5"),
        ({"timed_out": 1}, r"^timed_out: expected less than right \(1\), got 1"),
        ({"right": float("inf")}, "^right: expected a finite number, got inf"),
        ({"wrong": float("nan")}, "^wrong: expected a finite number, got nan"),
    ],
)
def test_values_that_pay_for_what_is_not_right_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        make_accuracy_reward(**values)


@given(
    st.lists(st.sampled_from(list(zip(BATCH, GOLDS, strict=True))), max_size=6),
    st.floats(-5, 5),
    st.floats(0.01, 20),
    st.randoms(use_true_random=False),
)
@settings(max_examples=25, deadline=None)
def test_bounds_order_and_permutation(rows, wrong, gap, random):
    reward = make_accuracy_reward(right=wrong + gap, wrong=wrong)

    def score(rows):
        texts, golds = [row[0] for row in rows], [row[1] for row in rows]
        return reward(["?"] * len(rows), texts, [[1]] * len(rows), solution=golds)

    values = score(rows)
    assert all(value is None or value in (wrong, wrong + gap) for value in values)
    is_right = [None if value is None else value > right_above(reward) for value in values]
    assert is_right == [None if gold is None else text == RIGHT for text, gold in rows]
    order = random.sample(range(len(rows)), len(rows))
    assert score([rows[index] for index in order]) == [values[index] for index in order]


def test_gap_and_threshold_of_a_table_also_behind_a_route():
    reward = make_accuracy_reward(right=10, wrong=-1, unparsed=2)
    routed = make_routed_reward(reward, "scenario", ["math"])
    for found in (reward, routed, pickle.loads(pickle.dumps(reward))):
        assert (accuracy_gap(found), right_above(found)) == (8.0, 6.0)
    for other in (REWARDS["format"](), len):
        assert (accuracy_gap(other), right_above(other)) == (1.0, 0.5)


def test_the_cosine_reward_says_what_is_right_too():
    reward = REWARDS["cosine_length"](max_length=10)
    values = reward(["?"] * 2, [RIGHT, WRONG], [[1] * 10] * 2, solution=["4", "4"])
    assert [value > right_above(reward) for value in values] == [True, False]
