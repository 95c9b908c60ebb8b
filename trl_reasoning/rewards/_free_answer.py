"""Answers that are free text: a board, a list of moves, an expression."""

import re

from ..answers.extract import marked_answer, tagged_answer
from ..text import ANSWER_OPEN, visible_answer


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
    visible = visible_answer(text, opened=opened)
    tagged = tagged_answer(visible)
    if tagged is None and ANSWER_OPEN in visible:
        return None
    answer = visible if tagged is None else tagged
    if "\\boxed" in answer or "\\fbox" in answer:
        answer = marked_answer(answer) or ""
        if whole := _LATEX_TEXT.fullmatch(answer):
            answer = whole[1]
    if fenced := _FENCE.fullmatch(answer.strip()):
        answer = fenced[1]
    return answer.strip() or None
