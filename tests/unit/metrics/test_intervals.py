import math

import pytest

from trl_reasoning.metrics import accuracy_interval, mean_interval


Z = 1.959963984540054


def wilson(successes, trials):
    """Wilson's interval from its closed form."""
    p = successes / trials
    center = (p + Z**2 / (2 * trials)) / (1 + Z**2 / trials)
    half = Z / (1 + Z**2 / trials) * math.sqrt(p * (1 - p) / trials + Z**2 / (4 * trials**2))
    return center - half, center + half


@pytest.mark.parametrize(("right", "problems"), [(7, 10), (0, 20), (20, 20), (1, 1), (312, 1319)])
def test_one_sample_is_wilson(right, problems):
    values = [1.0] * right + [0.0] * (problems - right)
    assert accuracy_interval(values, 1) == pytest.approx(wilson(right, problems), abs=1e-9)


def test_several_samples_are_clustered_by_problem():
    # means 0, 0.5, 1, 0.5: mean 0.5, s = sqrt(0.5 / 3) = 0.408248, s / sqrt(4) = 0.204124, t(3, 0.975) = 3.182446
    low, high = accuracy_interval([0.0, 0.5, 1.0, 0.5], 2)
    assert (low, high) == (0.0, 1.0)  # 0.5 -+ 0.649614, cut
    # 40 problems of the same four means: s = 0.358057, s / sqrt(40) = 0.056614, t(39, 0.975) = 2.022691
    low, high = accuracy_interval([0.0, 0.5, 1.0, 0.5] * 10, 2)
    assert (low, high) == pytest.approx((0.5 - 0.114513, 0.5 + 0.114513), abs=2e-6)


def test_more_samples_of_the_same_problems_do_not_narrow_it():
    assert accuracy_interval([0.0, 0.5, 1.0, 0.5], 2) == accuracy_interval([0.0, 0.5, 1.0, 0.5], 200)


def test_no_spread_is_wilson_over_problems():
    assert accuracy_interval([1.0] * 10, 4) == pytest.approx(wilson(10, 10), abs=1e-9)
    assert accuracy_interval([0.5] * 10, 4) == pytest.approx(wilson(5, 10), abs=1e-9)
    # 0.25 * 10 = 2.5 right problems: the low end of 2 and the high end of 3
    low, high = accuracy_interval([0.25] * 10, 4)
    assert (low, high) == pytest.approx((wilson(2, 10)[0], wilson(3, 10)[1]), abs=1e-9)
    assert accuracy_interval([0.75], 4) == pytest.approx((wilson(0, 1)[0], wilson(1, 1)[1]), abs=1e-9)


@pytest.mark.parametrize(
    ("values", "samples", "message"),
    [
        ([], 1, "at least one problem"),
        ([1.0], 0, "at least 1, got 0"),
        ([1.0, 0.5], 1, "problem 1 must be 0 or 1, got 0.5"),
        ([1.5], 4, r"problem 0 must be in \[0, 1\], got 1.5"),
        ([float("nan")], 4, "problem 0"),
    ],
)
def test_impossible_values_raise(values, samples, message):
    with pytest.raises(ValueError, match=message):
        accuracy_interval(values, samples)


def test_the_interval_of_any_mean_is_students():
    # Mean 2, standard deviation 1, standard error 0.5; t(0.975, 3) = 3.18245.
    values = [2 - math.sqrt(1.5), 2.0, 2.0, 2 + math.sqrt(1.5)]
    assert mean_interval(values) == pytest.approx((2 - 1.591223, 2 + 1.591223), abs=1e-5)
    with pytest.raises(ValueError, match="at least two values, got 1"):
        mean_interval([0.5])
