"""Chance that at least one of k samples is right."""

import math


def pass_at_k(n: int, c: int, k: int) -> float:
    r"""
    Unbiased estimate of pass@k from n samples of one problem of which c are right.

    $$ 1 - \binom{n-c}{k} \Big/ \binom{n}{k} $$

    Args:
        n (`int`):
            Samples drawn.
        c (`int`):
            Right samples, from 0 to `n`.
        k (`int`):
            Attempts allowed, from 1 to `n`.

    Returns:
        `float`: in [0, 1]; average it over problems.

    Raises:
        ValueError: when `n < k`, or `c` is outside [0, n].

    Reference: M. Chen et al., "Evaluating large language models trained on code"
    (https://huggingface.co/papers/2107.03374), equation 1.

    Example:
    ```python
    >>> round(pass_at_k(10, 3, 5), 6)
    0.916667

    ```
    """
    if not 1 <= k <= n:
        raise ValueError(f"pass@k needs 1 <= k <= n (no more attempts than samples drawn), got k={k} and n={n}")
    if not 0 <= c <= n:
        raise ValueError(f"the right samples must be between 0 and n={n}, got c={c}")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)
