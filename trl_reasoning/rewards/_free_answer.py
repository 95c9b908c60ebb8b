"""Answers that are free text (a board, a list of moves, an expression), and the log of how they were judged."""

import re
from collections.abc import Sequence
from typing import get_args

from ..answers.extract import marked_answer
from ..answers.verdict import Status, Verdict
from ..text import split_thought
from ._reward import LogExtra, LogMetric


_ANSWER_TAGS = re.compile(r"<answer>((?:(?!</?answer>).)*)</answer>", re.DOTALL)
_FENCE = re.compile(r"```[^\n`]*\n((?:(?!```).)*?)\n?```", re.DOTALL)
_LATEX_TEXT = re.compile(r"\\(?:text|mathrm|texttt)\{([^{}]*)\}")


def find_free_answer(text: str, *, opened: bool = False) -> str | None:
    r"""
    Find an answer that need not be one value: several lines, a list, an expression.

    Of the visible part of the completion (what follows the thought) it is the content of the last `<answer>` tags,
    else all of it; in that the last box, where there is one; a text that is wholly one fenced block gives the block's
    content. An unclosed tag or box is cut text and gives no answer. Blanks around it do not count, blanks inside do.

    Args:
        text (`str`):
            Completion with think tags.
        opened (`bool`, *optional*, defaults to `False`):
            Whether the prompt already ended inside the thought.

    Returns:
        `str` or `None`

    Example:

    ```python
    >>> find_free_answer("<think>3*8</think>So:\n<answer>\n3*8\n</answer>")
    '3*8'
    >>> find_free_answer(r"<think>3*8</think>It is $\boxed{3*8}$.")
    '3*8'
    >>> find_free_answer("<think>3*8") is None
    True

    ```
    """
    visible = split_thought(text, opened=opened).answer
    tagged = _ANSWER_TAGS.findall(visible)
    if not tagged and "<answer>" in visible:
        return None
    answer = tagged[-1] if tagged else visible
    if "\\boxed" in answer or "\\fbox" in answer:
        answer = marked_answer(answer) or ""
        if whole := _LATEX_TEXT.fullmatch(answer):
            answer = whole[1]
    if fenced := _FENCE.fullmatch(answer.strip()):
        answer = fenced[1]
    return answer.strip() or None


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
