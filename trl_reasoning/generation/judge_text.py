"""The texts of a judge: what it is shown, made harmless, and the grade in what it wrote."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..text import THINK_CLOSE, THINK_OPEN
from .views import Conversation


if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# A line with a grade alone: `Grade: 7`, `**Grade:** 7.5/10`, `grade: [[7]]`.
_GRADE_LINE = re.compile(
    r"^\W*grade\W*?[:=]\W*?(?<![.,])(-?[0-9]+(?:\.[0-9]+)?)\s*(?:/\s*([0-9]+))?[^\w%]*$", re.IGNORECASE
)
# A longer line is prose, and the pattern would try all of its blanks.
_LONGEST_GRADE_LINE = 80


def read_grade(text: str, low: float, high: float) -> float | None:
    """
    The grade in a judge's reply: that of its last line that holds a grade alone.

    Args:
        text (`str`):
            The reply, without the judge's own thought.
        low (`float`):
            Least grade.
        high (`float`):
            Highest grade.

    Returns:
        `float` or `None`: `None` where no line has the form, or the last one names a grade outside the scale or a
        fraction of another number than `high`.

    Example:

    ```python
    >>> read_grade("The sum is right.\\n**Grade:** 7.5/10", 0, 10)
    7.5
    >>> read_grade("Grade: 7 or 8", 0, 10) is None
    True

    ```
    """
    for line in reversed(text.splitlines()):
        found = _GRADE_LINE.match(line.strip()) if len(line) <= _LONGEST_GRADE_LINE else None
        if found is not None:
            grade, total = float(found[1]), found[2]
            fits = low <= grade <= high and (total is None or float(total) == high)
            return grade if fits else None
    return None


def dialogue_text(prompt: Conversation) -> str:
    """
    What was asked, as text.

    Args:
        prompt (`str` or `list[dict]`):
            Plain text, or messages. System messages, which speak of the form of the answer, are left out; several
            others get their roles in front.

    Returns:
        `str`: the question.

    Example:

    ```python
    >>> dialogue_text([{"role": "system", "content": "Box it."}, {"role": "user", "content": "9-5?"}])
    '9-5?'

    ```
    """
    if isinstance(prompt, str):
        return prompt.strip()
    turns = [(turn["role"], _content(turn)) for turn in prompt if turn["role"] != "system"]
    if len(turns) == 1:
        return turns[0][1].strip()
    return "\n\n".join(f"{role}: {content.strip()}" for role, content in turns)


def plain_text(tokenizer: "PreTrainedTokenizerBase", text: str) -> str:
    """
    A text without the judge's control tokens, which would end its turn or begin another one.

    Args:
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The judge's.
        text (`str`):
            Any text.

    Returns:
        `str`: with a blank in the place of each control token, so that the parts around it form no new one.
    """
    pattern, before = _control_pattern(tokenizer), None
    while pattern is not None and text != before:
        before, text = text, pattern.sub(" ", text)
    return text


def shorten(tokenizer: "PreTrainedTokenizerBase", text: str, limit: int) -> tuple[str, int]:
    """
    A text of at most so many tokens: its first and its last half with a note between them.

    Args:
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The judge's.
        text (`str`):
            Any text.
        limit (`int`):
            Most tokens that are kept, at least 1. The note comes on top.

    Returns:
        `tuple[str, int]`: the text, and the number of tokens left out.
    """
    ids: Any = tokenizer(text, add_special_tokens=False)["input_ids"]
    left_out = len(ids) - limit
    if left_out <= 0:
        return text, 0
    head, tail = ids[: limit // 2], ids[len(ids) - (limit - limit // 2) :]
    # A character of several tokens that the cut goes through decodes to a replacement character.
    first, last = (plain_text(tokenizer, str(tokenizer.decode(part))).strip("\ufffd") for part in (head, tail))
    return f"{first}\n[... {left_out} tokens left out ...]\n{last}", left_out


@lru_cache(maxsize=8)
def _control_pattern(tokenizer: "PreTrainedTokenizerBase") -> re.Pattern[str] | None:
    """Special tokens, and added ones in brackets, which templates use as marks of turns even where not special."""
    added = tokenizer.added_tokens_decoder.values()
    names = {token.content for token in added if token.special or _is_bracketed(token.content)}
    names |= set(tokenizer.all_special_tokens)
    names = {name for name in names if name.strip() and name not in (THINK_OPEN, THINK_CLOSE)}
    # Longest first: of two tokens that begin alike the whole longer one goes.
    ordered = sorted(names, key=lambda name: (-len(name), name))
    return re.compile("|".join(map(re.escape, ordered))) if ordered else None


def _is_bracketed(text: str) -> bool:
    return len(text) > 2 and text[0] + text[-1] in ("<>", "[]")


def _content(turn: Mapping[str, Any]) -> str:
    content = turn.get("content") or ""
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
