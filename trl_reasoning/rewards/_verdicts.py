"""The verdicts of a batch as the rewards that check answers read them."""

from collections.abc import Sequence

from ..answers import Verdict, verify_batch
from ._reward import Completion, read_rows


def read_verdicts(
    completions: Sequence[Completion],
    solution: Sequence[str | None],
    thought_opened: Sequence[bool | None] | None,
    *,
    kind: str = "auto",
) -> list[Verdict]:
    """
    Check the answer of each completion, the expensive comparisons of the batch together.

    Args:
        completions (`list[str]` or `list[list[dict]]`):
            Plain or conversational completions.
        solution (`list[str | None]`):
            The gold answers.
        thought_opened (`list[bool]` or `None`):
            Whether each prompt ended inside the thought.
        kind (`str`, *optional*, defaults to `"auto"`):
            What the golds are, see [`trl_reasoning.answers.verify`].

    Returns:
        `list[Verdict]`
    """
    texts, opened = read_rows(completions, thought_opened)
    return verify_batch(texts, solution, kind=kind, opened=opened)
