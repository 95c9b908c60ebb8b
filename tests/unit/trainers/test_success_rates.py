"""Success rates and priorities, against numbers worked by hand."""

import math
from collections import Counter

import pytest
import torch

from trl_reasoning.trainers._success_rates import SuccessRates, draw_distinct, priorities


def probabilities(*rates: float, floor: float = 0.0) -> list[float]:
    return priorities(torch.tensor(rates, dtype=torch.float64), floor).tolist()


def test_priorities_are_proportional_to_one_minus_the_rate():
    # 0.1, 0.5, 0.9 and 0 over their sum 1.5
    assert probabilities(0.9, 0.5, 0.1, 1.0) == pytest.approx([0.066667, 0.333333, 0.6, 0.0], abs=1e-6)


def test_unseen_rows_have_the_greatest_priority():
    rates = SuccessRates(rows=3, decay=0.5)
    rates.update(torch.tensor([0, 0]), torch.tensor([1.0, 0.0]), threshold=0.5)
    assert rates.rates.tolist() == [0.5, 0.0, 0.0]
    assert rates.seen.tolist() == [True, False, False]
    assert priorities(rates.rates).tolist() == pytest.approx([0.2, 0.4, 0.4])


def test_all_rows_solved_means_uniform():
    assert probabilities(1.0, 1.0, 1.0, 1.0) == [0.25, 0.25, 0.25, 0.25]


def test_the_floor_keeps_solved_rows_in_the_draw():
    # weights 0.2, 0.5, 0.2: the rates 0.9 and 1 are below the floor's weight
    assert probabilities(0.9, 0.5, 1.0, floor=0.2) == pytest.approx([2 / 9, 5 / 9, 2 / 9])


@pytest.mark.parametrize(
    ("decay", "expected"),
    [
        (1.0, 4 / 7),  # all completions: 1 + 1 + 2 of 2 + 1 + 4
        (0.0, 2 / 4),  # the last visit alone
        (0.5, 2.75 / 5.0),  # (0.25 * 1 + 0.5 * 1 + 2) / (0.25 * 2 + 0.5 * 1 + 4)
    ],
)
def test_rates_over_three_visits(decay, expected):
    rates = SuccessRates(rows=2, decay=decay)
    for rewards in ([1.0, 0.0], [1.0], [1.0, 1.0, 0.0, 0.0]):
        rates.update(torch.ones(len(rewards), dtype=torch.long), torch.tensor(rewards), threshold=0.5)
    assert rates.rates.tolist() == pytest.approx([0.0, expected])


def test_rows_of_one_batch_are_told_apart():
    rates = SuccessRates(rows=4, decay=1.0)
    rates.update(torch.tensor([3, 1, 3, 1, 3]), torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0]), threshold=0.5)
    assert rates.rates.tolist() == pytest.approx([0.0, 1 / 2, 0.0, 2 / 3])


def test_the_threshold_itself_is_no_success():
    rates = SuccessRates(rows=1, decay=1.0)
    rates.update(torch.tensor([0, 0, 0]), torch.tensor([0.5, 0.6, 0.4]), threshold=0.5)
    assert rates.rates.tolist() == pytest.approx([1 / 3])


def test_rewards_that_do_not_apply_are_not_counted():
    rates = SuccessRates(rows=2, decay=0.0)
    rates.update(torch.tensor([0, 0, 1]), torch.tensor([1.0, math.nan, math.nan]), threshold=0.5)
    assert rates.rates.tolist() == [1.0, 0.0]
    assert rates.seen.tolist() == [True, False]
    rates.update(torch.tensor([0, 0]), torch.tensor([math.nan, math.nan]), threshold=0.5)
    assert rates.rates.tolist() == [1.0, 0.0]  # no visit: nothing decays


def test_draws_follow_the_probabilities():
    wanted = priorities(torch.tensor([0.9, 0.5, 0.1, 1.0], dtype=torch.float64))
    generator = torch.Generator().manual_seed(0)
    count = Counter(draw_distinct(wanted, 1, generator)[0] for _ in range(6000))
    # three standard deviations of a share near 0.6 over 6000 draws: 0.019
    assert [count[row] / 6000 for row in range(4)] == pytest.approx([1 / 15, 1 / 3, 0.6, 0.0], abs=0.02)


def test_a_draw_of_two_renormalises_after_the_first():
    wanted = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
    generator = torch.Generator().manual_seed(1)
    count = Counter(tuple(draw_distinct(wanted, 2, generator)) for _ in range(6000))
    # P(0 then 1) = 1/2 * 1/2; P(1 then 0) = 1/4 * 2/3; P(1 then 2) = 1/4 * 1/3
    shares = [count[pair] / 6000 for pair in ((0, 1), (1, 0), (1, 2))]
    assert shares == pytest.approx([1 / 4, 1 / 6, 1 / 12], abs=0.02)


def test_rows_without_priority_fill_what_is_left():
    wanted = priorities(torch.tensor([1.0, 0.0, 1.0, 0.5], dtype=torch.float64))
    for seed in range(20):
        drawn = draw_distinct(wanted, 3, torch.Generator().manual_seed(seed))
        assert set(drawn[:2]) == {1, 3}
        assert drawn[2] in (0, 2)


def test_one_seed_gives_one_draw():
    wanted = priorities(torch.linspace(0, 1, 50, dtype=torch.float64))
    draws = [draw_distinct(wanted, 20, torch.Generator().manual_seed(3)) for _ in range(2)]
    assert draws[0] == draws[1]
    assert len(set(draws[0])) == 20
