"""Advantages of groups and of steps, against numbers worked by hand."""

import pytest
import torch

from trl_reasoning.losses.advantages import group_advantages, normalize_steps, process_advantages, spread_steps


NAN = float("nan")
# rewards: population, sample, sample + 1e-4 (TRL), no division (Dr. GRPO), leave one out (RLOO)
TABLE = [
    ([1, 0, 0, 1], [1, -1, -1, 1], [0.866025, -0.866025, -0.866025, 0.866025],
     [0.865875, -0.865875, -0.865875, 0.865875], [0.5, -0.5, -0.5, 0.5],
     [0.666667, -0.666667, -0.666667, 0.666667]),
    ([1, 0, 0, 0, 0], [2] + [-0.5] * 4, [1.788854] + [-0.447214] * 4, [1.788454] + [-0.447114] * 4,
     [0.8] + [-0.2] * 4, [1] + [-0.25] * 4),
    ([2, 1, 0.5, 0.5], [1.632993, 0, -0.816497, -0.816497], [1.414214, 0, -0.707107, -0.707107],
     [1.414014, 0, -0.707007, -0.707007], [1, 0, -0.5, -0.5], [1.333333, 0, -0.666667, -0.666667]),
    ([1] + [0] * 7, [2.645751] + [-0.377964] * 7, [2.474874] + [-0.353553] * 7, [2.474174] + [-0.353453] * 7,
     [0.875] + [-0.125] * 7, [1] + [-0.142857] * 7),
    ([1, 1, 1, 1], *[[0] * 4] * 5),
]  # fmt: skip
SETTINGS = [
    {"std": "population", "epsilon": 0.0},
    {"std": "sample", "epsilon": 0.0},
    {"std": "sample"},
    {"std": None},
    {"std": None, "leave_one_out": True},
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row[0]))
@pytest.mark.parametrize("column", range(5), ids=["population", "sample", "trl", "dr_grpo", "rloo"])
def test_the_table(row, column):
    rewards = torch.tensor([float(value) for value in row[0]])
    found = group_advantages(rewards, len(rewards), **SETTINGS[column])
    assert found.tolist() == pytest.approx(row[column + 1], abs=1e-6)


def test_groups_are_apart_and_a_missing_reward_stays_out():
    rewards = torch.tensor([1.0, 0.0, NAN, 5.0, 3.0, 4.0])
    assert group_advantages(rewards, 3, std=None).tolist() == [0.5, -0.5, 0.0, 1.0, -1.0, 0.0]
    # The others of the first completion are the second alone.
    assert group_advantages(rewards, 3, std=None, leave_one_out=True).tolist() == [1.0, -1.0, 0.0, 1.5, -1.5, 0.0]
    assert group_advantages(torch.tensor([NAN, NAN]), 2).tolist() == [0.0, 0.0]


# Two completions: steps 0.8 at the second token and 0.6 at the fourth; 0.2 at the third.
REWARDS = torch.tensor([[0.8, 0.6], [0.2, NAN]])
ENDS = torch.tensor([[1, 3], [2, -1]])


@pytest.mark.parametrize(
    ("std", "first", "second", "third"),
    [("population", 1.069045, 0.267261, -1.336306), ("sample", 0.872872, 0.218218, -1.091089)],
)
def test_process_supervision(std, first, second, third):
    steps = normalize_steps(REWARDS, 2, std=std, epsilon=0.0)
    assert steps.flatten().tolist() == pytest.approx([first, second, third, 0.0], abs=1e-6)
    tokens = process_advantages(REWARDS, ENDS, 4, 2, std=std, epsilon=0.0)
    assert tokens[0].tolist() == pytest.approx([first + second] * 2 + [second] * 2, abs=1e-6)
    assert tokens[1].tolist() == pytest.approx([third] * 3 + [0.0], abs=1e-6)


def test_the_default_is_the_sample_deviation_plus_1e_4():
    scale = 0.30550505
    expected = [0.26666667 / (scale + 1e-4), 0.06666667 / (scale + 1e-4), -0.33333333 / (scale + 1e-4)]
    assert normalize_steps(REWARDS, 2).flatten()[:3].tolist() == pytest.approx(expected, abs=1e-6)
    assert normalize_steps(REWARDS, 2, std=None).flatten()[:3].tolist() == pytest.approx(
        [0.266667, 0.066667, -0.333333], abs=1e-6
    )


def test_steps_without_a_spread_give_exactly_nothing():
    equal = torch.full((2, 3), 0.1)  # 0.1 is not its own mean in float32
    assert normalize_steps(equal, 2).tolist() == [[0.0] * 3] * 2
    assert normalize_steps(equal, 2, std=None).tolist() == [[0.0] * 3] * 2


def test_one_step_in_the_whole_group_gives_nothing():
    rewards = torch.tensor([[0.7, NAN], [NAN, NAN]])
    assert process_advantages(rewards, torch.tensor([[2, -1], [-1, -1]]), 4, 2).tolist() == [[0.0] * 4] * 2


def test_a_completion_without_a_step_gets_nothing_and_does_not_count():
    rewards = torch.tensor([[1.0, 0.0], [NAN, NAN]])
    ends = torch.tensor([[0, 2], [-1, -1]])
    tokens = process_advantages(rewards, ends, 4, 2, std="population", epsilon=0.0)
    assert tokens.tolist() == [[0.0, -1.0, -1.0, 0.0], [0.0] * 4]


def test_no_step_at_all():
    rewards = torch.full((2, 0), NAN)
    assert process_advantages(rewards, torch.zeros(2, 0, dtype=torch.long), 3, 2).tolist() == [[0.0] * 3] * 2


def test_two_steps_that_end_in_one_token_add_up():
    assert spread_steps(torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([[1, 1, 2]]), 4).tolist() == [
        [7.0, 7.0, 4.0, 0.0]
    ]


def test_statistics_are_those_of_each_group():
    rewards = torch.tensor([[1.0], [0.0], [10.0], [30.0]])
    assert normalize_steps(rewards, 2, std="population", epsilon=0.0).flatten().tolist() == [1.0, -1.0, -1.0, 1.0]


def test_unknown_deviation():
    with pytest.raises(ValueError, match="^std: expected one of"):
        group_advantages(torch.zeros(2), 2, std="biased")
