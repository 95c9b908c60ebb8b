"""What a reward is, and how the rows that TRL hands to it are read."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..text import completion_text


Completion = str | list[dict[str, Any]]
LogMetric = Callable[[str, float], None]
LogExtra = Callable[[str, list[Any]], None]


class Reward(Protocol):
    """
    A reward function for TRL: picklable, one number (or `None` where it does not apply) per completion.

    Attributes:
        columns (`tuple[str, ...]`):
            Dataset columns that it needs; they arrive as keyword arguments.
    """

    __name__: str
    columns: tuple[str, ...]

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        **kwargs: Any,
    ) -> list[float | None]: ...


def read_rows(
    completions: Sequence[Completion], thought_opened: Sequence[bool | None] | None
) -> tuple[list[str], list[bool]]:
    """
    Give the text of each completion, and whether its prompt ended inside the thought.

    Args:
        completions (`list[str]` or `list[list[dict]]`):
            Plain or conversational completions.
        thought_opened (`list[bool]` or `None`):
            The dataset's column; `None` means that no prompt opens a thought.

    Returns:
        `tuple[list[str], list[bool]]`
    """
    opened = [False] * len(completions) if thought_opened is None else [bool(value) for value in thought_opened]
    texts = [
        completion_text(completion, opened=is_open) for completion, is_open in zip(completions, opened, strict=True)
    ]
    return texts, opened
