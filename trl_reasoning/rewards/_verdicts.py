"""The verdicts of a batch: read by the rewards that check answers, logged by all that judge them."""

from collections.abc import Sequence
from typing import get_args

from ..answers import Verdict, verify_batch
from ..answers.verdict import Status
from ._reward import Completion, LogExtra, LogMetric, read_rows


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


def log_verdicts(
    verdicts: Sequence[Verdict],
    completion_ids: Sequence[Sequence[int]],
    log_metric: LogMetric | None,
    log_extra: LogExtra | None,
) -> None:
    """Log the share of each status, the tokens of right and wrong completions, and the extracted answers."""
    if log_metric is not None:
        for verdict, ids in zip(verdicts, completion_ids, strict=True):
            for status in get_args(Status):
                log_metric(f"answers/{status}", float(verdict.status == status))
            if verdict.score is not None:
                log_metric("length/right" if verdict.is_right else "length/wrong", float(len(ids)))
    if log_extra is not None:
        log_extra("verdict", [verdict.status for verdict in verdicts])
        log_extra("extracted", [verdict.extracted for verdict in verdicts])
