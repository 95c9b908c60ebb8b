"""Answers with several values: lists, sets, tuples."""

import re
from dataclasses import dataclass


_SEPARATOR = re.compile(r"[,;]?\s*(?<![\\A-Za-z])(?:and|or)(?![A-Za-z])\s*|[,;、]|\s*\\(?:lor|vee)(?![A-Za-z])\s*")
_PLUS_MINUS = re.compile(r"\\pm(?![A-Za-z])")
_OPENING, _CLOSING = "([{", ")]}"
EMPTY = r"\emptyset"


@dataclass(frozen=True)
class Items:
    """An answer with several values: a tuple or interval (brackets count, ordered) or a set or bare list."""

    values: list[str]
    brackets: str = ""


def split_items(text: str) -> Items | None:
    r"""
    Split a cleaned answer that holds several values.

    Example:
    ```python
    >>> split_items("(1, 7.5)")
    Items(values=['1', '7.5'], brackets='()')
    >>> split_items(r"\{3,1\}")
    Items(values=['3', '1'], brackets='')
    >>> split_items("5") is None
    True

    ```
    """
    if text == EMPTY:
        return Items([])
    if len(_PLUS_MINUS.findall(text)) == 1 and not split_at_top(text)[1:]:
        return Items([_PLUS_MINUS.sub(sign, text).lstrip("+ ") for sign in "+-"])
    if text.startswith(r"\{") and text.endswith(r"\}") and _closes_at(text[1:]) == len(text) - 2:
        return Items(split_at_top(text[2:-2]))
    if text[:1] in "([" and text[-1:] in ")]" and _closes_at(text) == len(text) - 1:
        values = split_at_top(text[1:-1])
        return Items(values, text[0] + text[-1]) if len(values) > 1 else None
    values = split_at_top(text)
    return Items(values) if len(values) > 1 else None


def split_at_top(text: str, separator: re.Pattern[str] = _SEPARATOR) -> list[str]:
    """Split outside all brackets, by default at commas, semicolons, "and" and "or"."""
    parts, depth, start, position = [], 0, 0, 0
    while position < len(text):
        if text[position] in _OPENING:
            depth += 1
        elif text[position] in _CLOSING:
            depth -= 1
        elif depth == 0 and (found := separator.match(text, position)):
            parts.append(text[start:position])
            position = start = found.end()
            continue
        position += 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _closes_at(text: str) -> int:
    """Index of the bracket that closes the first character; brackets of intervals need not be of one kind."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character in _OPENING) - (character in _CLOSING)
        if depth == 0:
            return position
    return -1
