"""Confidence intervals of an accuracy and of any mean."""

import math
import statistics
from collections.abc import Sequence


CONFIDENCE = 0.95


def accuracy_interval(per_problem: Sequence[float], samples_per_problem: int) -> tuple[float, float]:
    r"""
    95 % confidence interval of the mean accuracy over problems.

    With one sample a problem it is Wilson's score interval. Several samples of one problem are not independent, so
    then the problems are the clusters: $\bar x \pm t_{0.975,\,P-1}\, s / \sqrt{P}$ over the means of the $P$ problems,
    with their sample standard deviation $s$, cut to [0, 1]. Where all problems have the same mean (or there is only
    one) that width would be 0, and Wilson's interval on the number of problems takes its place.

    Args:
        per_problem (`Sequence[float]`):
            Mean correctness of each problem, in [0, 1] (0 or 1 with one sample).
        samples_per_problem (`int`):
            Samples a problem, at least 1.

    Returns:
        `tuple[float, float]`: low and high end.

    Raises:
        ValueError: when there is no problem, a value is outside [0, 1], or a single sample is neither 0 nor 1.

    Reference: E. B. Wilson, "Probable inference, the law of succession, and statistical inference" (1927);
    E. Miller, "Adding error bars to evals" (https://huggingface.co/papers/2411.00640), section 2.2.

    Example:
    ```python
    >>> low, high = accuracy_interval([1, 1, 1, 0, 1, 0, 1, 1, 0, 1], samples_per_problem=1)
    >>> round(low, 4), round(high, 4)
    (0.3968, 0.8922)

    ```
    """
    if not per_problem:
        raise ValueError("accuracy_interval needs at least one problem")
    if samples_per_problem < 1:
        raise ValueError(f"samples_per_problem must be at least 1, got {samples_per_problem}")
    for index, value in enumerate(per_problem):
        if not 0 <= value <= 1 or (samples_per_problem == 1 and value not in (0, 1)):
            expected = "0 or 1" if samples_per_problem == 1 else "in [0, 1]"
            raise ValueError(f"accuracy of problem {index} must be {expected}, got {value}")
    problems = len(per_problem)
    mean = statistics.fmean(per_problem)
    spread = statistics.stdev(per_problem) if problems > 1 else 0.0
    if samples_per_problem == 1 or spread == 0:
        return _wilson(mean * problems, problems)

    low, high = mean_interval(per_problem)
    return max(0.0, low), min(1.0, high)


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    r"""
    Student's 95 % confidence interval of a mean, $\bar x \pm t_{0.975,\,N-1}\, s / \sqrt{N}$.

    Args:
        values (`Sequence[float]`):
            Independent values, at least two.

    Returns:
        `tuple[float, float]`: low and high end.

    Raises:
        ValueError: when there are fewer than two values.

    Example:
    ```python
    >>> low, high = mean_interval([1.0, 2.0, 3.0])
    >>> round(low, 4), round(high, 4)
    (-0.4841, 4.4841)

    ```
    """
    if len(values) < 2:
        raise ValueError(f"mean_interval needs at least two values, got {len(values)}")
    from scipy.stats import t

    mean, spread = statistics.fmean(values), statistics.stdev(values)
    half_width = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * spread / math.sqrt(len(values))
    return mean - half_width, mean + half_width


def _wilson(successes: float, trials: int) -> tuple[float, float]:
    """Wilson's interval; a count between two whole ones gets the ends of both, so that it is covered."""
    from scipy.stats import binomtest

    # Rounding takes away what floating point added to a whole count.
    successes = round(successes, 9)
    fewer, more = (
        binomtest(count, trials).proportion_ci(CONFIDENCE, method="wilson")
        for count in (math.floor(successes), math.ceil(successes))
    )
    return float(fewer.low), float(more.high)
