"""Multiple choice: which letter a gold is, and which one an answer chooses."""

import re

from .normalize import read_value


_GOLD = re.compile(r"(?:\(([A-Z])\)|([A-J]))\.?\Z")
_ANY_GOLD = re.compile(r"\(?([A-Z])\)?\.?\Z")
_ANSWER = re.compile(
    r"(?:(?:option|choice|answer|选项?)\s*)?\(?([a-z])\)?(?:\s*[.):](?P<text>.*))?\Z", re.DOTALL | re.I
)
# These letters alone, without a bracket or a capital, are numbers: Euler's, or the imaginary unit.
_NUMBERS = ("e", "i")
# A second letter beside the first is a hedge.
_SECOND = re.compile(r"\A\s*[A-Z][).:]?\s*\Z|\(\s*[A-Z]\s*\)|(?:\b(?:and|or)\b|[,/&;])\s*\(?[A-Z]\)?(?![A-Za-z])")


def gold_choice(gold: str, *, any_letter: bool = False) -> str | None:
    """
    The letter of a multiple choice gold, or `None`.

    Args:
        gold (`str`):
            Gold answer, not yet cleaned.
        any_letter (`bool`, *optional*, defaults to `False`):
            Whether every bare capital is a choice. Else A to J are: later ones are more often names of numbers. A
            letter in brackets always is one.

    Returns:
        `str` or `None`

    Example:
    ```python
    >>> gold_choice("(C)"), gold_choice("X"), gold_choice("X", any_letter=True)
    ('C', None, 'X')

    ```
    """
    match = (_ANY_GOLD if any_letter else _GOLD).match(read_value(gold).text)
    return next(letter for letter in match.groups() if letter) if match else None


def chosen_letter(answer: str) -> str | None:
    r"""
    The letter that an answer chooses: alone, in brackets, or with the text of the option after it.

    Example:
    ```python
    >>> chosen_letter(r"\textbf{(B)}~5"), chosen_letter("Option b"), chosen_letter("(B) or (C)"), chosen_letter("Bob")
    ('B', 'B', None, None)

    ```
    """
    cleaned = read_value(answer).text
    match = _ANSWER.match(cleaned)
    if match is None or cleaned in _NUMBERS or _SECOND.search(match["text"] or ""):
        return None
    return match[1].upper()
