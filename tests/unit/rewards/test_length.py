"""Kimi k1.5's length reward on numbers worked out by hand, and what it may never do."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trl_reasoning.rewards import (
    REWARDS,
    check_length_weight,
    kimi_length_rewards,
    length_judge,
    make_kimi_length_reward,
)
from trl_reasoning.rewards.routing import make_routed_reward


RIGHT, WRONG = r"\boxed{4}", r"\boxed{5}"


@pytest.mark.parametrize(
    ("lengths", "right", "expected"),
    [
        ([100, 150, 200, 250, 300], [1, 1, 0, 0, 1], [0.5, 0.25, 0.0, -0.25, -0.5]),
        ([120, 480, 300, 120, 840], [1, 0, 1, 0, 0], [0.5, 0.0, 0.25, 0.0, -0.5]),
        ([10, 20, 30, 40, 50], [0, 0, 0, 0, 0], [0.0, 0.0, 0.0, -0.25, -0.5]),
        ([10, 20, 30, 40, 50], [1, 1, 1, 1, 1], [0.5, 0.25, 0.0, -0.25, -0.5]),
        ([100, 200, 300], [1, 0, 1], [0.5, 0.0, -0.5]),
        ([100, 200, 300], [0, 1, 0], [0.0, 0.0, -0.5]),
        ([7, 7, 7], [1, 0, 1], [0.0, 0.0, 0.0]),
        ([7], [1], [0.0]),
        ([], [], []),
    ],
)
def test_worked_numbers(lengths, right, expected):
    assert kimi_length_rewards(lengths, [bool(value) for value in right]) == pytest.approx(expected)


def test_totals():
    right = [True, False, True, False, False]
    rewards = kimi_length_rewards([120, 480, 300, 120, 840], right)
    totals = [float(is_right) + 0.5 * reward for is_right, reward in zip(right, rewards, strict=True)]
    assert totals == pytest.approx([1.25, 0.0, 1.125, 0.0, -0.25])
    mean = sum(totals) / 5
    assert [total - mean for total in totals] == pytest.approx([0.825, -0.425, 0.7, -0.425, -0.675])


def test_what_cannot_be_judged_sets_no_limit():
    assert kimi_length_rewards([1, 10, 20, 99], [None, True, True, None]) == [None, 0.5, -0.5, None]
    assert kimi_length_rewards([1, 2], [None, None]) == [None, None]


@given(
    st.lists(st.tuples(st.integers(1, 100_000), st.booleans()), min_size=1, max_size=16),
    st.floats(0.0, 2.0, exclude_max=True),
)
def test_every_right_answer_ranks_above_every_wrong_one(group, weight):
    lengths, right = zip(*group, strict=True)
    rewards = kimi_length_rewards(lengths, right)
    totals = {True: [], False: []}
    for is_right, reward in zip(right, rewards, strict=True):
        totals[is_right].append(float(is_right) + weight * reward)
    assert min(totals[True], default=1.0) > max(totals[False], default=0.0)


@given(st.lists(st.tuples(st.integers(1, 1000), st.booleans()), min_size=2, max_size=16))
def test_among_right_answers_shorter_is_better_and_wrong_ones_are_never_paid(group):
    lengths, right = zip(*group, strict=True)
    rewards = kimi_length_rewards(lengths, right)
    rows = zip(lengths, right, rewards, strict=True)
    of_right = sorted((length, -reward) for length, is_right, reward in rows if is_right)
    assert [reward for _, reward in of_right] == sorted(reward for _, reward in of_right)
    assert all(reward <= 0 for is_right, reward in zip(right, rewards, strict=True) if not is_right)
    assert all(-0.5 <= reward <= 0.5 for reward in rewards)


@pytest.mark.parametrize(("weight", "of_accuracy"), [(0.0, 1.0), (0.5, 1.0), (1.99, 1.0), (3.9, 2.0)])
def test_weights_that_keep_the_order(weight, of_accuracy):
    check_length_weight(weight, of_accuracy)


@pytest.mark.parametrize(("weight", "of_accuracy", "named"), [(2.0, 1.0, "2"), (-0.1, 1.0, "2"), (1.0, 0.5, "1")])
def test_weights_that_do_not_are_refused(weight, of_accuracy, named):
    with pytest.raises(ValueError, match=rf"^reward_weights: kimi_length .* below {named} .*got {weight:g}"):
        check_length_weight(weight, of_accuracy)


def test_groups_are_problems_and_not_the_batch():
    reward = make_kimi_length_reward()
    prompts = [[{"role": "user", "content": question}] for question in ("2+2", "2+2", "9-5", "9-5")]
    completions = [RIGHT, RIGHT, WRONG, RIGHT]
    ids = [[1] * 10, [1] * 20, [1] * 100, [1] * 300]
    assert reward(prompts, completions, ids, solution=["4"] * 4, trainer_state=None) == [0.5, -0.5, 0.0, -0.5]


def test_tokens_count_and_not_characters():
    completions = [RIGHT + " " * 500, RIGHT]
    assert make_kimi_length_reward()(["?"] * 2, completions, [[1], [1, 2]], solution=["4"] * 2) == [0.5, -0.5]


def test_unreadable_gold_is_not_applicable():
    reward = make_kimi_length_reward()
    assert reward(["a", "a"], [RIGHT, RIGHT], [[1], [1, 2]], solution=[None, None]) == [None, None]
    assert reward.judge(["a"] * 3, [RIGHT, WRONG, RIGHT], [[1]] * 3, solution=["4", "4", None]) == [True, False, None]


def test_the_thought_may_have_been_opened_by_the_prompt():
    completions = [r"\boxed{4}</think>5", r"no</think>\boxed{4}"]
    values = make_kimi_length_reward().judge(
        ["?"] * 2, completions, [[1]] * 2, solution=["4"] * 2, thought_opened=[True, True]
    )
    assert values == [False, True]


def test_kind_is_checked_and_kept():
    assert pickle.loads(pickle.dumps(make_kimi_length_reward("number"))).kind == "number"
    with pytest.raises(ValueError, match=r"got 'numbr'. Did you mean `number`\?"):
        make_kimi_length_reward("numbr")


def test_the_judge_of_a_reward_for_some_rows():
    reward = make_kimi_length_reward()
    assert length_judge(reward) == reward.judge
    assert length_judge(REWARDS["accuracy"]()) is None
    judge = length_judge(make_routed_reward(reward, "scenario", ["math"]))
    values = judge(
        ["?"] * 3, [RIGHT, RIGHT, WRONG], [[1]] * 3, solution=["4", None, "4"], scenario=["math", "chat", "math"]
    )
    assert values == [True, None, False]
