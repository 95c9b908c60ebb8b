"""Whether two formulas are equal, or one is the antiderivative of the other, by their values at points."""

import hashlib
from fractions import Fraction
from typing import Any

from ._expressions import ExpressionError, Token, read_expression, value_of


_OPERATORS = ("+", "-", "*", "/", "neg", "**")
_CONSTANTS = ("C", "E", "pi")
_FUNCTIONS = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "ln", "sqrt")
# Large and without a pattern: two polynomials of the sizes that occur cannot be equal here by chance.
_EXACT_POINTS = (
    {"x": Fraction(1_000_003), "y": Fraction(99_999_989), "z": Fraction(7_777_777_777)},
    {"x": Fraction(-524_287), "y": Fraction(15_485_863), "z": Fraction(-32_452_843)},
)
_POINTS = ("0.3127", "0.7391", "1.2853", "2.1767", "3.4153", "-0.4391", "-1.6127")
_MIN_POINTS = 3
_DIGITS = 50


def is_equal_polynomial(answer: str, gold: str) -> bool:
    """
    Whether two polynomials in the letters x, y and z have the same value, exactly, at points where others differ.

    Example:

    ```python
    >>> is_equal_polynomial("2*x + x**2 + x", "x**2 + 3*x"), is_equal_polynomial("x**2 + 2*x", "x**2 + 3*x")
    (True, False)

    ```
    """
    try:
        formulas = [read_expression(text, operators=_OPERATORS, names=("x", "y", "z")) for text in (answer, gold)]
        own = {name: Fraction(_own_number(answer + name)) for name in ("x", "y", "z")}
        values = [[value_of(formula, point) for formula in formulas] for point in (*_EXACT_POINTS, own)]
    except ExpressionError:
        return False
    return all(left == right for left, right in values)


def is_antiderivative(answer: str, integrand: str, variable: str) -> bool:
    """
    Whether the derivative of `answer` is `integrand`, by differences of 50-digit values at fixed points.

    Args:
        answer (`str`):
            For instance `"x**3 + C"`; `C` is any constant, `E` and `pi` are the numbers.
        integrand (`str`):
            In the same notation.
        variable (`str`):
            Its letter.

    Example:

    ```python
    >>> is_antiderivative("x**3 + 5 + C", "3*x**2", "x"), is_antiderivative("x**3 + x", "3*x**2", "x")
    (True, False)

    ```
    """
    import mpmath

    names = (variable, *_CONSTANTS)
    try:
        formula = read_expression(answer, operators=_OPERATORS, names=names, functions=_FUNCTIONS)
        slope = read_expression(integrand, operators=_OPERATORS, names=names, functions=_FUNCTIONS)
    except ExpressionError:
        return False
    checked = 0
    with mpmath.workdps(_DIGITS):
        # The error of a central difference is of the order step**2, that of the values step**-1 * 1e-50.
        step = mpmath.mpf(10) ** -14
        shift = mpmath.mpf(_own_number(answer)) / 10**9
        for text in _POINTS:
            point = mpmath.mpf(text) + shift
            try:
                right = _at(slope, variable, point, "0")
                # Another value of C has to give the same slope, so that `C*x` is no answer, nor `x*sin(pi*C)`.
                lefts = [
                    (_at(formula, variable, point + step, c) - _at(formula, variable, point - step, c)) / (2 * step)
                    for c in ("0", "2.7193")
                ]
            except ExpressionError:
                continue
            if any(abs(left - right) > mpmath.mpf(10) ** -12 * (1 + abs(right)) for left in lefts):
                return False
            checked += 1
    return checked >= _MIN_POINTS


def _own_number(text: str) -> int:
    """A number below 10**7 that belongs to a text: no answer can be made to fit the points at which it is tried."""
    return int(hashlib.sha256(text.encode(errors="replace")).hexdigest(), 16) % 10**7


def _at(formula: list[Token], variable: str, point: Any, constant: str) -> Any:
    import mpmath

    values = {"C": mpmath.mpf(constant), "E": mpmath.e, "pi": mpmath.pi, variable: point}
    functions = {name: getattr(mpmath, name) for name in _FUNCTIONS}
    return value_of(formula, values, functions, lambda number: mpmath.mpf(number.numerator) / number.denominator)
