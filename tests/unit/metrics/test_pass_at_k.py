from itertools import combinations

import pytest

from trl_reasoning.metrics import pass_at_k


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (10, 3, 1, 0.3),
        (10, 3, 5, 0.916667),
        (10, 3, 8, 1.0),
        (4, 1, 2, 0.5),
        (4, 0, 2, 0.0),
        (4, 3, 2, 1.0),
        (16, 4, 8, 0.961538),
        (8, 0, 4, 0.0),
        (1, 1, 1, 1.0),
    ],
)
def test_worked_numbers(n, c, k, expected):
    assert pass_at_k(n, c, k) == pytest.approx(expected, abs=5e-7)


def test_equals_the_share_of_subsets_with_a_right_sample():
    subsets = list(combinations([True] * 3 + [False] * 4, 3))
    assert pass_at_k(7, 3, 3) == pytest.approx(sum(any(subset) for subset in subsets) / len(subsets))


def test_mean_over_problems():
    assert sum(pass_at_k(10, c, 5) for c in (3, 0, 10)) / 3 == pytest.approx(0.638889, abs=5e-7)


def test_large_counts_stay_exact():
    assert pass_at_k(10_000, 1, 5_000) == pytest.approx(0.5)


@pytest.mark.parametrize(("n", "c", "k"), [(2, 1, 3), (4, 1, 0), (4, 5, 2), (4, -1, 2)])
def test_impossible_counts_raise(n, c, k):
    with pytest.raises(ValueError, match=rf"k={k} and n={n}|n={n}, got c={c}"):
        pass_at_k(n, c, k)
