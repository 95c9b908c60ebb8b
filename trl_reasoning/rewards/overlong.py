"""DAPO's soft overlong punishment: nothing up to a length, then less and less, then -1."""

from collections.abc import Sequence
from typing import Any

from ._reward import Completion, Reward


def make_soft_overlong_reward(max_length: int, cache: int) -> Reward:
    r"""
    Make the soft overlong punishment, in [-1, 0]; it never pays for being short.

    $$r = \begin{cases} 0 & n \le L - C \\ \frac{(L - C) - n}{C} & L - C < n \le L \\ -1 & n > L \end{cases}$$

    for a completion of $n$ tokens, the maximum $L$ and the cache $C$. With `cache=0` it is 0 up to the maximum and -1
    beyond. The tokens are those of the completion that the trainer learns from: the end token counts where the
    completion has one, padding does not. A completion cannot be longer than the trainer's `max_completion_length`, so
    set `max_length` to that at most; a cut completion then has exactly -1.

    Args:
        max_length (`int`):
            Tokens L from which on a completion gets the whole punishment, at least 1.
        cache (`int`):
            Tokens C before it over which the punishment grows, in [0, `max_length`].

    Returns:
        [`Reward`]: needs no column.

    Raises:
        ValueError: when a parameter is outside its range.

    Reference: DAPO (https://huggingface.co/papers/2503.14476), equation 13.

    Example:
    ```python
    >>> reward = make_soft_overlong_reward(max_length=100, cache=20)
    >>> reward(["?"] * 4, [""] * 4, [[1] * tokens for tokens in (80, 90, 100, 101)])
    [0.0, -0.5, -1.0, -1.0]

    ```
    """
    return SoftOverlongReward(max_length, cache)


class SoftOverlongReward:
    """See [`make_soft_overlong_reward`]."""

    __name__ = "soft_overlong_reward"
    columns: tuple[str, ...] = ()

    def __init__(self, max_length: int, cache: int):
        if max_length < 1:
            raise ValueError(f"max_length: expected at least 1 token, got {max_length}")
        if not 0 <= cache <= max_length:
            raise ValueError(f"cache: expected 0 to max_length ({max_length}) tokens, got {cache}")
        self.max_length = max_length
        self.cache = cache

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        **kwargs: Any,
    ) -> list[float | None]:
        return [self._score(len(ids)) for ids in completion_ids]

    def _score(self, length: int) -> float:
        free = self.max_length - self.cache
        if length <= free:
            return 0.0
        return -1.0 if length > self.max_length else (free - length) / self.cache
