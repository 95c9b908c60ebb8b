r"""
Equality of formulas without a computer algebra system: values at fixed points tell different formulas apart, an exact
normal form confirms equal ones. What neither settles is left to `symbolic`.
"""

import math
from collections.abc import Mapping

from .evaluation import Evaluation
from .exact import is_same
from .formula import read, symbols, walk
from .formula_reader import Node
from .polynomial import UnsureError


_DECISIVE = 1e-12
# Letters may stand for natural numbers (`n!`, `\cos n\pi`), so formulas that differ must differ at such.
_WHOLE = ((2, 3, 5, 4, 7, 6, 8, 9, 11, 10), (5, 2, 4, 6, 3, 8, 7, 10, 9, 11), (3, 6, 2, 5, 4, 7, 9, 8, 10, 11))
# For formulas such as \sqrt{1-x^2}, which have no value at any of those.
_BROKEN = ((0.3, 0.7, 0.45, 0.6, 0.2, 0.85), (0.65, 0.25, 0.4, 0.15, 0.55, 0.75))

Points = tuple[tuple[float, ...], ...]


def decide(answer: str, gold: str) -> bool | None:
    r"""
    Say whether two formulas are equal, where that is certain.

    They differ when they do so at each of the points at which both are defined (letters stand for positive integers).
    Where they agree, or no value can be computed, an exact form decides.

    Args:
        answer, gold (`str`):
            Formulas cleaned by `clean`.

    Returns:
        `bool` or `None`: `None` when it is not certain.

    Example:
    ```python
    >>> decide(r"\frac{1}{\sqrt{3}}", r"\frac{\sqrt{3}}{3}"), decide("x^2+2x-1", "(x+1)^2")
    (True, False)
    >>> decide(r"\sin 2x", r"2\sin x\cos x") is None
    True

    ```
    """
    first, second = read(answer), read(gold)
    if first is None or second is None:
        return None
    agree = _agree(first, second)
    if agree is False:
        return None if _may_be_a_unit(first, second) else False
    try:
        same = is_same(first, second)
    except (UnsureError, ArithmeticError, ValueError):
        return None
    if agree is None:
        # No values to be had, or a chance at one point: without roots and the like the forms alone decide.
        return same if _is_rational(first) and _is_rational(second) and not _may_be_a_unit(first, second) else None
    return same if same or not symbols(first) | symbols(second) else None


def _agree(first: Node, second: Node, fixed: Mapping[str, float] | None = None) -> bool | None:
    """Whether two formulas have the same value at all points, or different ones at all; `None` is neither."""
    found = _compare_at(_WHOLE, first, second, fixed or {}) or _compare_at(_BROKEN, first, second, fixed or {})
    return found.pop() if len(found) == 1 else None


def _compare_at(points: Points, first: Node, second: Node, fixed: Mapping[str, float]) -> set[bool]:
    """The outcomes at points at which both formulas have values; none when only one has, which may be a chance."""
    names = sorted(symbols(first) | symbols(second))
    # A logarithm without a base has base e or 10.
    bases = (1.0, math.log(10)) if any(part[:2] == ("f", "log") for part in (*walk(first), *walk(second))) else (1.0,)
    outcomes, count = set(), 0
    for point in points if names else points[:1]:
        letters = {name: point[number % len(point)] for number, name in enumerate(names)} | dict(fixed)
        try:
            outcomes |= {_is_near(Evaluation(letters, base, bool(names)), first, second) for base in bases}
            count += 1
        except (UnsureError, ArithmeticError, ValueError):
            continue
    return outcomes if count >= min(len(names) + 1, 2) else set()


def _is_rational(node: Node) -> bool:
    """Whether a formula has no roots, functions, powers with letters and the like."""
    for part in walk(node):
        if part[0] == "^" and any(inner[0] not in ("n", "+", "*") for inner in walk(part[2])):
            return False
        if part[0] not in ("n", "s", "+", "*", "/", "^") and part != ("c", "pi"):
            return False
    return True


def _may_be_a_unit(first: Node, second: Node) -> bool:
    """
    Whether two formulas are equal once the letters that only one of them has, as a unit would, are left out. A value
    such as u(t) beside a u may also be left over.
    """
    one, two = symbols(first), symbols(second)
    extra = one ^ two
    if any("(" in name for name in extra):
        return True
    if not (one < two or two < one) or any(len(name) > 1 for name in extra - {"mu", "Omega"}):
        return False
    return _agree(first, second, dict.fromkeys(extra, 1)) is not False


def _is_near(evaluation: Evaluation, first: Node, second: Node) -> bool:
    (one, one_error), (two, two_error) = evaluation.value(first), evaluation.value(second)
    return abs(one - two) <= 4 * (one_error + two_error) + _DECISIVE * max(abs(one), abs(two))
