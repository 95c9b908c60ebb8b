"""Reward for the form: one thought, then an answer."""

from collections.abc import Sequence
from typing import Any

from ..text import split_thought
from ._reward import Completion, Reward, read_rows


def make_format_reward() -> Reward:
    """
    Make the format reward: 1 for exactly one thought followed by a non-empty answer, else 0.

    A prompt that already wrote the opening tag (column `thought_opened`) expects a completion without it. An empty
    thought has the right form.

    Returns:
        [`Reward`]: needs no column.

    Reference: format reward of DeepSeek-R1 (https://huggingface.co/papers/2501.12948), section 2.2.2.

    Example:
    ```python
    >>> reward = make_format_reward()
    >>> completions = ["<think>9-5</think>4", "9-5</think>4"]
    >>> reward(["?", "?"], completions, [[1], [1]])
    [1.0, 0.0]
    >>> reward(["?", "?"], completions, [[1], [1]], thought_opened=[True, True])
    [0.0, 1.0]

    ```
    """
    return _FormatReward()


class _FormatReward:
    __name__ = "format_reward"
    columns: tuple[str, ...] = ()

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        *,
        thought_opened: Sequence[bool | None] | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        texts, opened = read_rows(completions, thought_opened)
        return [float(split_thought(text, opened=is_open).valid) for text, is_open in zip(texts, opened, strict=True)]
