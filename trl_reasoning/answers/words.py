"""Answers that are compared as text: names, words, clock times and patterns with dots."""

import re

from .normalize import read_value


_WORDS = re.compile(r"[^\W\d_]{2,}(?:['’ -]+[^\W\d_]+){0,5}\Z|[^\W\d_A-Za-z]+\Z")
_EQUAL_WORDS = re.compile(r"([A-Z]{2,})\s*=\s*([A-Z]{2,})\Z")
_CLOCK = re.compile(r"(?P<hour>\d{1,2})\s*:\s*(?P<minute>[0-5]\d)(?:\s*(?P<half>[ap])\.?\s*m\.?)?\Z", re.IGNORECASE)
# Patterns with dots, clock times, ratios, figures, and numbers side by side have no value to compute.
_ONLY_AS_TEXT = re.compile(
    r"\\ldots|\d\s*:\s*\d|\d\s+\d|\\approx|\\sim|[?&]|\\(?:[pb]?mod|angle|triangle)(?![A-Za-z])"
    r"|\.\d*\.|(?:\A|[-+*/(=,]|[^_]\{)\s*[A-Za-z]\d|\d[A-DF-Za-df-z]\d"  # x2 may be a square, a product or a name
)
LONG_WORD = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{4,}|__|[^\W\dA-Za-z_\u0370-\u03ff]")


def is_words(text: str) -> bool:
    """Whether an answer is a name or a few words, or says that two names are equal ("MR=MC")."""
    value = read_value(text)
    if value.unit is not None:
        return False
    return _WORDS.match(value.text) is not None or _EQUAL_WORDS.match(value.text) is not None


def is_formula(text: str) -> bool:
    """Whether a cleaned text may be given to the formula readers: no prose, dots, clock times or stray numbers."""
    return LONG_WORD.search(text) is None and _ONLY_AS_TEXT.search(text) is None


def as_text(text: str) -> str:
    """
    The form in which words are compared: without case, and the two sides of "MR = MC" in alphabetical order.

    Example:
    ```python
    >>> as_text("New  York."), as_text("MR=AC")
    ('new york', 'ac=mr')

    ```
    """
    cleaned = read_value(text).text
    equal = _EQUAL_WORDS.match(cleaned)
    if equal:
        cleaned = "=".join(sorted(equal.groups()))
    return " ".join(cleaned.casefold().split())


def clock_time(text: str) -> tuple[int, int, str] | None:
    """
    Hour, minute and "a", "p" or nothing of a cleaned clock time, or `None`.

    Example:
    ```python
    >>> clock_time("03:30 p.m."), clock_time("1:2")
    ((3, 30, 'p'), None)

    ```
    """
    match = _CLOCK.match(text)
    if match is None or int(match["hour"]) > 24:
        return None
    return int(match["hour"]), int(match["minute"]), (match["half"] or "").lower()
