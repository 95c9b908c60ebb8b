"""A reward for the right answer that falls with its length along a cosine."""

import math
from collections.abc import Sequence
from typing import Any

from ..answers import check_kind
from ._reward import Completion, Reward
from ._verdicts import read_verdicts


def make_cosine_length_reward(
    max_length: int,
    right_short: float = 1.0,
    right_long: float = 0.5,
    wrong_short: float = -1.0,
    wrong_long: float = -0.5,
    overlong: float | None = None,
    kind: str = "auto",
) -> Reward:
    r"""
    Make the cosine reward: a short right answer is worth most, a short wrong one least.

    $$r = v_L + \frac{1}{2}(v_0 - v_L)\left(1 + \cos\frac{\pi \min(n, L)}{L}\right)$$

    for a completion of $n$ tokens and the maximum $L$, with $(v_0, v_L)$ = (`right_short`, `right_long`) for a right
    answer and (`wrong_short`, `wrong_long`) for every other: wrong, without a readable answer, or given up by the
    checker. Beyond the maximum the value stays that of the maximum, the cosine does not turn back. The tokens are
    those of the completion that the trainer learns from: the end token counts where there is one, padding does not.

    It holds the accuracy reward in itself: use it instead of `accuracy`, not beside it. Since a long wrong answer
    loses less than a short one, a model may fill a wrong answer up with words; `overlong` and the `repetition` reward
    are the paper's remedies.

    Args:
        max_length (`int`):
            Tokens L at which the end of the range is reached, at least 1; at most the trainer's
            `max_completion_length`.
        right_short (`float`, *optional*, defaults to `1.0`):
            Reward of a right answer of no length.
        right_long (`float`, *optional*, defaults to `0.5`):
            Reward of a right answer at the maximum, from 0 to `right_short` and above `wrong_long`.
        wrong_short (`float`, *optional*, defaults to `-1.0`):
            Reward of a wrong answer of no length, at most `wrong_long`: a wrong answer is never paid for being short.
        wrong_long (`float`, *optional*, defaults to `-0.5`):
            Reward of a wrong answer at the maximum, at most 0: a wrong answer is never paid.
        overlong (`float`, *optional*):
            Reward of a completion of `max_length` tokens or more, right or wrong, at most `wrong_long`. Without it
            the cosine's end counts.
        kind (`str`, *optional*, defaults to `"auto"`):
            What the gold is, see [`trl_reasoning.answers.verify`].

    Returns:
        [`Reward`]: needs the column `solution`; `None` where the gold answer cannot be read.

    Raises:
        ValueError: when a parameter is outside its range or `kind` is unknown.

    Reference: "Demystifying Long Chain-of-Thought Reasoning in LLMs" (https://huggingface.co/papers/2502.03373),
    appendix C.1.

    Example:
    ```python
    >>> reward = make_cosine_length_reward(max_length=100)
    >>> ids = [[1] * tokens for tokens in (50, 100, 150, 50)]
    >>> values = reward(["9-5=?"] * 4, [r"\boxed{4}"] * 3 + [r"\boxed{5}"], ids, solution=["4"] * 4)
    >>> [round(value, 6) for value in values]
    [0.75, 0.5, 0.5, -0.75]

    ```
    """
    return _CosineLengthReward(max_length, (right_short, right_long), (wrong_short, wrong_long), overlong, kind)


class _CosineLengthReward:
    __name__ = "cosine_length_reward"
    columns: tuple[str, ...] = ("solution",)

    def __init__(
        self,
        max_length: int,
        right: tuple[float, float],
        wrong: tuple[float, float],
        overlong: float | None,
        kind: str,
    ):
        if max_length < 1:
            raise ValueError(f"max_length: expected at least 1 token, got {max_length}")
        for name, value in zip(
            ("right_short", "right_long", "wrong_short", "wrong_long"), (*right, *wrong), strict=True
        ):
            if not math.isfinite(value):
                raise ValueError(f"{name}: expected a finite number, got {value}")
        if wrong[1] > 0:
            raise ValueError(f"wrong_long: expected at most 0, as a wrong answer is never paid, got {wrong[1]:g}")
        if wrong[0] > wrong[1]:
            raise ValueError(
                f"wrong_short: expected at most wrong_long ({wrong[1]:g}), or a wrong answer would be paid for being "
                f"short, got {wrong[0]:g}"
            )
        if right[1] < 0 or right[1] <= wrong[1]:
            raise ValueError(
                f"right_long: expected at least 0 and above wrong_long ({wrong[1]:g}), or a long right answer would "
                f"be worth no more than a wrong one, got {right[1]:g}"
            )
        if right[0] < right[1]:
            raise ValueError(f"right_short: expected at least right_long ({right[1]:g}), got {right[0]:g}")
        if overlong is not None and not -math.inf < overlong <= wrong[1]:
            raise ValueError(f"overlong: expected at most wrong_long ({wrong[1]:g}) and finite, got {overlong:g}")
        self.max_length = max_length
        self.right = right
        self.wrong = wrong
        self.overlong = overlong
        self.kind = check_kind(kind)
        self.threshold = 0.5 * (right[1] + wrong[1])  # a value above it is one of a right answer

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        *,
        solution: Sequence[str | None],
        thought_opened: Sequence[bool | None] | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        verdicts = read_verdicts(completions, solution, thought_opened, kind=self.kind)
        return [
            None if verdict.score is None else self._score(len(ids), verdict.is_right)
            for verdict, ids in zip(verdicts, completion_ids, strict=True)
        ]

    def _score(self, length: int, is_right: bool) -> float:
        if self.overlong is not None and length >= self.max_length:
            return self.overlong
        short, long = self.right if is_right else self.wrong
        share = min(length, self.max_length) / self.max_length
        return long + 0.5 * (short - long) * (1.0 + math.cos(math.pi * share))
