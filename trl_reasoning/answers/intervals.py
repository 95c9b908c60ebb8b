"""Sets of real numbers: intervals, their unions, inequalities in one letter. Exact where the ends are rational."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from .equations import is_name
from .items import EMPTY, split_at_top, split_items
from .rational import rational


_UNION = re.compile(r"\s*(?:\\cup|\\lor|\\vee|(?<![\\A-Za-z])or)(?![A-Za-z])\s*")
_RELATION = re.compile(r"\s*(?P<sign><|>|\\le(?![A-Za-z])|\\ge(?![A-Za-z])|\\ne(?![A-Za-z]))\s*")
_IN = re.compile(r"(?P<name>\S+)\s*\\in(?![A-Za-z])\s*(?P<set>.+)\Z")
_REALS = re.compile(
    r"(?:\\mathbb\s*\{?\s*R\s*\}?|\\R|all real numbers)"
    r"(?:\s*(?:\\setminus|\\backslash|-|\\)\s*(?P<without>\\\{.*\\\}))?\Z"
)
_INFINITY = re.compile(r"[+-]?\s*\\infty\Z")
_MIRRORED = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}
_MARK = re.compile(r"[<>]|\\(?:le|ge|ne|cup|mathbb|R|setminus)(?![A-Za-z])|all real")
_MAX_PIECES = 50


@dataclass(frozen=True)
class Piece:
    """A piece from `low` to `high`, texts of numbers or of infinity, and whether it holds its ends."""

    low: str
    high: str
    has_low: bool
    has_high: bool


def has_set_mark(text: str) -> bool:
    """Whether a cleaned text can only be read as a set of numbers (an interval alone may be a point as well)."""
    return _MARK.search(text) is not None


def read_set(text: str) -> tuple[str, list[Piece]] | None:
    r"""
    Read a set of real numbers.

    Args:
        text (`str`):
            Cleaned text.

    Returns:
        `tuple[str, list[Piece]]` or `None`: the letter of the inequalities (or an empty string) and the pieces; `None`
        when it is no such set.

    Example:
    ```python
    >>> read_set("0 < x")
    ('x', [Piece(low='0', high='\\infty', has_low=False, has_high=False)])
    >>> read_set("x+y > 1") is None
    True

    ```
    """
    names, pieces = set(), []
    for part in split_at_top(text, _UNION):
        found = _read_part(part)
        if found is None:
            return None
        names.add(found[0])
        pieces += found[1]
    names.discard("")
    return (next(iter(names), ""), pieces) if len(names) <= 1 and 0 < len(pieces) <= _MAX_PIECES else None


def is_same_set(first: list[Piece], second: list[Piece], is_equal: Callable[[str, str], bool]) -> bool:
    """
    Say whether two lists of pieces are the same set of numbers.

    Args:
        first, second (`list[Piece]`):
            Pieces of [`read_set`].
        is_equal (`Callable[[str, str], bool]`):
            Compares two ends that are not both rational.

    Returns:
        `bool`
    """
    exact = [[_exact(piece) for piece in pieces] for pieces in (first, second)]
    if None not in exact[0] + exact[1]:
        return _merged(exact[0]) == _merged(exact[1])
    rest = list(second)
    for piece in first:
        match = next((other for other in rest if _is_same_piece(piece, other, is_equal)), None)
        if match is None:
            return False
        rest.remove(match)
    return not rest


def _read_part(text: str) -> tuple[str, list[Piece]] | None:
    member = _IN.match(text)
    if member and is_name(member["name"]):
        found = read_set(member["set"])
        return found and (member["name"], found[1])
    reals = _REALS.match(text)
    if reals:
        without = split_items(reals["without"]) if reals["without"] else None
        return "", _without(without.values if without else [])
    if text == EMPTY:
        return None
    if _RELATION.search(text):
        return _read_inequality(text)
    items = split_items(text)
    if items is None:
        return None
    if text.startswith(r"\{"):
        return "", [Piece(value, value, True, True) for value in items.values]
    if len(items.values) != 2 or not items.brackets:
        return None
    low, high = items.values
    piece = Piece(low, high, items.brackets[0] == "[", items.brackets[1] == "]")
    return ("", [piece]) if _has_open_infinities(piece) else None


def _read_inequality(text: str) -> tuple[str, list[Piece]] | None:
    sides = split_at_top(text, _RELATION)
    signs = [match["sign"] for match in _RELATION.finditer(text)]
    if len(sides) != len(signs) + 1 or len(sides) > 3 or any(sign in side for side in sides for sign in ("=", ",")):
        return None
    if len(sides) == 3:
        if signs[0] in (">", r"\ge"):
            sides, signs = sides[::-1], [_MIRRORED.get(sign, "") for sign in signs[::-1]]
        if not is_name(sides[1]) or not {*signs} <= {"<", r"\le"}:
            return None
        return sides[1], [Piece(sides[0], sides[2], signs[0] == r"\le", signs[1] == r"\le")]
    is_mirrored = is_name(sides[1]) and (not is_name(sides[0]) or sides[1] < sides[0])
    if is_mirrored and signs[0] in _MIRRORED:
        sides, signs = sides[::-1], [_MIRRORED[signs[0]]]
    if not is_name(sides[0]):
        return None
    name, end, sign = *sides, signs[0]
    if sign == r"\ne":
        return name, _without([end])
    has_end = sign in (r"\le", r"\ge")
    if sign in (">", r"\ge"):
        return name, [Piece(end, r"\infty", has_end, False)]
    return name, [Piece(r"-\infty", end, False, has_end)]


def _without(values: list[str]) -> list[Piece]:
    """The real numbers without some of them; their order does not matter where they are rational."""
    ordered = sorted(values, key=lambda value: rational(value) or Fraction(0))
    ends = [r"-\infty", *ordered, r"\infty"]
    return [Piece(low, high, False, False) for low, high in pairwise(ends)]


def _has_open_infinities(piece: Piece) -> bool:
    ends = ((piece.low, piece.has_low), (piece.high, piece.has_high))
    return not any(has_end and _INFINITY.match(end) for end, has_end in ends)


def _exact(piece: Piece) -> tuple[Fraction | float, bool, Fraction | float, bool] | None:
    ends = []
    for end in (piece.low, piece.high):
        if _INFINITY.match(end):
            ends.append(float("-inf") if end.startswith("-") else float("inf"))
        else:
            ends.append(rational(end))
    return None if None in ends else (ends[0], piece.has_low, ends[1], piece.has_high)


def _merged(pieces: list) -> list[list]:
    """Pieces in order, joined where they touch; empty ones go."""
    joined: list[list] = []
    for low, has_low, high, has_high in sorted(pieces, key=lambda piece: (piece[0], not piece[1])):
        if low > high or (low == high and not (has_low and has_high)):
            continue
        if joined and (low < joined[-1][2] or (low == joined[-1][2] and (has_low or joined[-1][3]))):
            if high >= joined[-1][2]:
                joined[-1][3] = has_high or (joined[-1][3] and high == joined[-1][2])
                joined[-1][2] = high
        else:
            joined.append([low, has_low, high, has_high])
    return joined


def _is_same_piece(first: Piece, second: Piece, is_equal: Callable[[str, str], bool]) -> bool:
    if (first.has_low, first.has_high) != (second.has_low, second.has_high):
        return False
    return is_equal(first.low, second.low) and is_equal(first.high, second.high)
