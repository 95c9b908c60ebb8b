"""Whether a gold answer can be compared with anything."""

import re

from .choices import gold_choice
from .equations import sides_of
from .formula import read
from .formula_text import rename_capitals, with_clear_fractions
from .intervals import read_set
from .items import split_items
from .matrices import read_matrix
from .normalize import Value, read_value
from .rational import rational
from .symbolic import UnreadableError, check_formula
from .words import LONG_WORD, is_formula, is_words


# What is left of `\frac`, `\binom` or `\right` when a plain string literal turned the escape into one character.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\t(?:ext|imes|frac|an|heta|o\b)|\r(?:ight|angle|ho)")


def has_control_character(text: str) -> bool:
    r"""
    Whether a text holds control characters, most often a command that lost its backslash.

    Example:
    ```python
    >>> has_control_character("\frac12"), has_control_character(r"\frac12")
    (True, False)

    ```
    """
    return _CONTROL.search(text) is not None


def is_readable_answer(answer: str, kind: str = "auto") -> bool:
    """
    Say whether an extracted gold can be read.

    Args:
        answer (`str`):
            Gold answer without its mark, not yet cleaned.
        kind (`str`, *optional*, defaults to `"auto"`):
            As in [`verify`].

    Returns:
        `bool`

    Raises:
        TooLargeError, TimeLimitError: when it is too large to say.

    Example:
    ```python
    >>> is_readable_answer("x < 3"), is_readable_answer("14. Both pumps fill it.")
    (True, False)

    ```
    """
    value = read_value(answer)
    if kind == "number":
        return rational(value.text) is not None
    if kind == "choice":
        return gold_choice(answer, any_letter=True) is not None
    return kind == "text" or gold_choice(answer) is not None or is_words(answer) or _is_readable(value)


def _is_readable(value: Value) -> bool:
    items = split_items(value.text)
    if items:
        return all(is_words(item) or _is_readable(read_value(item)) for item in items.values)
    if rational(value.text) is not None or read_set(value.text) is not None:
        return True
    matrix = read_matrix(value.text)
    if matrix:
        return all(_is_readable(read_value(cell)) for row in matrix for cell in row)
    if not is_formula(value.text):
        # Clock times and patterns with dots are compared as strings; prose is not.
        return LONG_WORD.search(value.text) is None
    text = with_clear_fractions(value.text)
    if all(read(side) is not None for side in sides_of(text)):
        return True
    try:
        check_formula(rename_capitals(text, text)[0])
    except UnreadableError:
        return False
    return True
