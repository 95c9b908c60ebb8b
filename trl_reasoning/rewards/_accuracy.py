"""Reward for a right final answer."""

import math
from collections.abc import Sequence
from typing import Any

from ..answers import check_kind
from ._reward import Completion, LogExtra, LogMetric, Reward
from ._verdicts import log_verdicts, read_verdicts
from .routing import unrouted


def make_accuracy_reward(
    kind: str = "auto",
    right: float = 1.0,
    wrong: float = 0.0,
    unparsed: float | None = None,
    timed_out: float | None = None,
) -> Reward:
    r"""
    Make the accuracy reward: a value for each verdict, by default 1 for a right final answer and 0 for any other.

    `None` where the gold answer cannot be read, so that the sample leaves the group's statistics. Values known from
    papers: 1 and 0 (DeepSeek-R1, equal weight with `format`), 10 and 0 (Tulu 3), 1 and -1.

    Per sample it logs 0 or 1 to each of `answers/right`, `answers/wrong`, `answers/unparsed`, `answers/timed_out` and
    `answers/unreadable_gold`, and the completion's tokens to `length/right` or `length/wrong`, whatever the values.

    Args:
        kind (`str`, *optional*, defaults to `"auto"`):
            What the gold is, see [`trl_reasoning.answers.verify`].
        right (`float`, *optional*, defaults to `1.0`):
            Value of a right answer, above all others.
        wrong (`float`, *optional*, defaults to `0.0`):
            Value of a wrong answer.
        unparsed (`float`, *optional*):
            Value where no answer is found; that of `wrong` by default. Above `wrong` it pays for not answering.
        timed_out (`float`, *optional*):
            Value where the check was given up; that of `wrong` by default.

    Returns:
        [`Reward`]: needs the column `solution`.

    Raises:
        ValueError: when `kind` is unknown, or a value is not finite or not below `right`.

    Reference: rule-based accuracy reward of DeepSeek-R1 (https://huggingface.co/papers/2501.12948), section 2.2.2;
    values of Tulu 3 (https://huggingface.co/papers/2411.15124), section 6.

    Example:
    ```python
    >>> completions = [r"<think>9-5</think>\boxed{4}", r"\boxed{5}", "I do not know."]
    >>> rows = {"completion_ids": [[1, 2], [1], [1]], "solution": ["4"] * 3}
    >>> make_accuracy_reward()(["9-5=?"] * 3, completions, **rows)
    [1.0, 0.0, 0.0]
    >>> make_accuracy_reward(right=10, wrong=-1, unparsed=-2)(["9-5=?"] * 3, completions, **rows)
    [10.0, -1.0, -2.0]

    ```
    """
    return AccuracyReward(kind, right, wrong, unparsed, timed_out)


class AccuracyReward:
    """
    See [`make_accuracy_reward`]. A class with its settings rather than a closure, which could not be pickled.

    Attributes:
        gap (`float`):
            What a right answer earns above the best of the others, above 0.
        threshold (`float`):
            Halfway between the two: a reward above it is a right answer.
    """

    __name__ = "accuracy_reward"
    columns: tuple[str, ...] = ("solution",)

    def __init__(self, kind: str, right: float, wrong: float, unparsed: float | None, timed_out: float | None):
        self.kind = check_kind(kind)
        self.values: dict[str, float] = {
            "right": float(right),
            "wrong": float(wrong),
            "unparsed": float(wrong if unparsed is None else unparsed),
            "timed_out": float(wrong if timed_out is None else timed_out),
        }
        for name, value in self.values.items():
            if not math.isfinite(value):
                raise ValueError(f"{name}: expected a finite number, got {value}")
            if name != "right" and value >= right:
                raise ValueError(f"{name}: expected less than right ({right:g}), got {value:g}")
        best_other = max(value for name, value in self.values.items() if name != "right")
        self.gap = right - best_other
        self.threshold = best_other + 0.5 * self.gap

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        *,
        solution: Sequence[str | None],
        thought_opened: Sequence[bool | None] | None = None,
        log_metric: LogMetric | None = None,
        log_extra: LogExtra | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        verdicts = read_verdicts(completions, solution, thought_opened, kind=self.kind)
        log_verdicts(verdicts, completion_ids, log_metric, log_extra)
        return [self.values.get(verdict.status) for verdict in verdicts]


def accuracy_gap(reward: Any) -> float:
    """
    What a right answer earns above any other, before the weight: of an accuracy reward, also of one for some rows.

    Args:
        reward (`Any`):
            A reward function; 1 for any but an accuracy reward.

    Returns:
        `float`

    Example:
    ```python
    >>> accuracy_gap(make_accuracy_reward()), accuracy_gap(make_accuracy_reward(right=10, unparsed=2))
    (1.0, 8.0)

    ```
    """
    found = unrouted(reward)
    return found.gap if isinstance(found, AccuracyReward) else 1.0


def right_above(reward: Any) -> float:
    """
    The value above which a reward, before its weight, says that an answer is right.

    Args:
        reward (`Any`):
            A reward function; 0.5 for any that does not state its `threshold`, as `accuracy` and `cosine_length` do.

    Returns:
        `float`

    Example:
    ```python
    >>> right_above(make_accuracy_reward()), right_above(make_accuracy_reward(right=10))
    (0.5, 5.0)

    ```
    """
    return getattr(unrouted(reward), "threshold", 0.5)
