"""Reward for a right final answer."""

from collections.abc import Sequence
from typing import Any, get_args

from ..answers import check_kind, verify
from ..answers.verdict import Status
from ._reward import Completion, LogExtra, LogMetric, Reward, read_rows


def make_accuracy_reward(kind: str = "auto") -> Reward:
    r"""
    Make the accuracy reward: 1 for a right final answer, 0 for a wrong or unreadable one or a check that timed out,
    `None` where the gold answer cannot be read, so that the sample leaves the group's statistics.

    Per sample it logs 0 or 1 to each of `answers/right`, `answers/wrong`, `answers/unparsed`, `answers/timed_out` and
    `answers/unreadable_gold`, and the completion's tokens to `length/right` or `length/wrong`.

    Args:
        kind (`str`, *optional*, defaults to `"auto"`):
            What the gold is, see [`trl_reasoning.answers.verify`].

    Returns:
        [`Reward`]: needs the column `solution`.

    Raises:
        ValueError: when `kind` is unknown.

    Reference: rule-based accuracy reward of DeepSeek-R1 (https://huggingface.co/papers/2501.12948), section 2.2.2.

    Example:
    ```python
    >>> reward = make_accuracy_reward()
    >>> completions = [r"<think>9-5</think>\boxed{4}", "I do not know."]
    >>> reward(["9-5=?"] * 2, completions, [[1, 2], [1]], solution=["4", "4"])
    [1.0, 0.0]

    ```
    """
    return _AccuracyReward(kind)


class _AccuracyReward:
    # A class with its settings rather than a closure: closures cannot be pickled.
    __name__ = "accuracy_reward"
    columns: tuple[str, ...] = ("solution",)

    def __init__(self, kind: str):
        self.kind = check_kind(kind)

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
        texts, opened = read_rows(completions, thought_opened)
        verdicts = [
            verify(text, gold, kind=self.kind, opened=is_open)
            for text, gold, is_open in zip(texts, solution, opened, strict=True)
        ]
        if log_metric is not None:
            for verdict, ids in zip(verdicts, completion_ids, strict=True):
                for status in get_args(Status):
                    log_metric(f"answers/{status}", float(verdict.status == status))
                if verdict.score is not None:
                    log_metric("length/right" if verdict.is_right else "length/wrong", float(len(ids)))
        if log_extra is not None:
            log_extra("verdict", [verdict.status for verdict in verdicts])
            log_extra("extracted", [verdict.extracted for verdict in verdicts])
        return [verdict.score for verdict in verdicts]
