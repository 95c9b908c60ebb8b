"""Whether a program printed what was expected."""

import math
import re


_NUMBER = re.compile(r"[+-]?(\d{1,300}(\.\d{0,300})?|\.\d{1,300})([eE][+-]?\d{1,3})?")


def is_same_output(printed: str, expected: str, *, tolerance: float = 0.0) -> bool:
    """
    Compare a program's output with the expected one.

    Blanks at the ends of lines and empty lines at the end do not count; everything else does.

    Args:
        printed (`str`):
            What the program printed.
        expected (`str`):
            The expected output.
        tolerance (`float`, *optional*, defaults to `0.0`):
            With a positive number, words of a line that both are decimal numbers are equal within this absolute or
            relative difference, and blanks between words count as one.

    Returns:
        `bool`

    Example:
    ```python
    >>> is_same_output("3 \\n0.5\\n\\n", "3\\n0.5")
    True
    >>> is_same_output("0.5000001", "0.5"), is_same_output("0.5000001", "0.5", tolerance=1e-6)
    (False, True)

    ```
    """
    ours, theirs = _lines(printed), _lines(expected)
    if ours == theirs:
        return True
    if tolerance <= 0 or len(ours) != len(theirs):
        return False
    return all(_is_near(line, other, tolerance) for line, other in zip(ours, theirs, strict=True))


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _is_near(line: str, other: str, tolerance: float) -> bool:
    words, expected = line.split(), other.split()
    return len(words) == len(expected) and all(
        word == right or _is_near_number(word, right, tolerance) for word, right in zip(words, expected, strict=True)
    )


def _is_near_number(word: str, right: str, tolerance: float) -> bool:
    if not _NUMBER.fullmatch(word) or not _NUMBER.fullmatch(right):
        return False
    ours, theirs = float(word), float(right)  # "1e999" is infinite, and so is what else is too large
    return math.isfinite(ours) and math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)
