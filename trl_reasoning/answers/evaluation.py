"""Values of formulas at points, as floats whose error is known."""

import cmath
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from .formula import walk
from .formula_reader import TRIG, Node
from .polynomial import UnsureError


# One rounding, twice over; the error of every value is carried along with it.
_ROUNDING = 2.0**-52
_MAX_ERROR = 1e-3
_MAX_FACTORIAL = 150
_HUGE = 1e280
_DEGREE = math.pi / 180
_Value = tuple[Any, float]
"""A real or complex number and a bound of its error."""


class Evaluation:
    """Values of the nodes of formulas at one point, with error bounds."""

    def __init__(self, letters: Mapping[str, float], log_base: float, has_letters: bool):
        self.letters = letters
        self.log_base = log_base
        self.has_letters = has_letters

    def value(self, node: Node) -> _Value:
        """The value of a formula and a bound of its error. Raises `UnsureError` where there is none to rely on."""
        value, error = getattr(self, _KINDS[node[0]])(*node[1:])
        size = abs(value)
        if not size < _HUGE or not error < _HUGE or 0 < size < 1 / _HUGE:
            raise UnsureError
        return value, error + size * _ROUNDING

    def _sure(self, node: Node) -> _Value:
        """A value that is certainly not zero."""
        value, error = self.value(node)
        return self._checked(value, error)

    def _checked(self, value: Any, error: float) -> _Value:
        if error >= _MAX_ERROR * abs(value):
            raise UnsureError
        return value, error

    def _number(self, number: Fraction) -> _Value:
        return float(number), 0.0

    def _symbol(self, name: str) -> _Value:
        return float(self.letters[name]), 0.0

    def _constant(self, name: str) -> _Value:
        return {"pi": math.pi, "e": math.e, "i": 1j}[name], 0.0

    def _sum(self, terms: tuple[Node, ...]) -> _Value:
        total: Any = 0.0
        error = size = 0.0
        for term in terms:
            value, own = self.value(term)
            total, error, size = total + value, error + own, size + abs(value)
        return total, error + len(terms) * size * _ROUNDING

    def _product(self, factors: tuple[Node, ...]) -> _Value:
        total: Any = 1.0
        error = 0.0
        for factor in factors:
            value, own = self.value(factor)
            error = abs(total) * own + abs(value) * error + own * error
            total = total * value
        return total, error + len(factors) * abs(total) * _ROUNDING

    def _quotient(self, above: Node, below: Node) -> _Value:
        (one, one_error), (two, two_error) = self.value(above), self._sure(below)
        value = one / two
        return value, 2 * (one_error + abs(value) * two_error) / abs(two)

    def _power(self, base: Node, exponent: Node) -> _Value:
        power, power_error = self.value(exponent)
        if base == ("c", "e"):
            value = cmath.exp(power) if isinstance(power, complex) else math.exp(power)
            return value, abs(value) * (2 * power_error + (1 + abs(power)) * _ROUNDING)
        if not isinstance(power, complex) and power == int(power) and _is_rational(exponent):
            number, own = self._sure(base) if power <= 0 else self.value(base)
            if abs(power) > 10_000:
                raise UnsureError
            value = number ** int(power)
            slope = abs(power) * abs(number) ** (int(power) - 1) if number else own ** (power - 1)
            return value, 2 * slope * own + abs(power) * abs(value) * _ROUNDING
        number, own = self._positive(*self.value(base))
        logarithm = math.log(number)
        value = cmath.exp(power * logarithm) if isinstance(power, complex) else number**power
        relative = 2 * (abs(power) * own / number + abs(logarithm) * power_error)
        return value, abs(value) * (relative + (1 + abs(power * logarithm)) * _ROUNDING)

    def _positive(self, value: Any, error: float) -> tuple[float, float]:
        """A value, when it is certainly a positive real number: no branch of a root or logarithm is chosen here."""
        if isinstance(value, complex) or value <= 0:
            raise UnsureError
        return self._checked(value, error)

    def _root(self, node: Node, degree: Node) -> _Value:
        order, _ = self.value(degree)
        if isinstance(order, complex) or order != int(order) or not 2 <= order <= 100:
            raise UnsureError
        value, error = self.value(node)
        if value == 0 and error == 0:
            return 0.0, 0.0
        if order == 2 and not self.has_letters and not isinstance(value, complex) and value < -1e3 * error:
            root = math.sqrt(-value)
            return complex(0, root), error / root
        value, error = self._positive(value, error)
        root = value ** (1 / order)
        return root, root * (2 * error / value + 4 * _ROUNDING)

    def _function(self, name: str, argument: Node) -> _Value:
        if name in ("ln", "log", "lg"):
            number, error = self._positive(*self.value(argument))
            base = {"ln": 1.0, "lg": math.log(10), "log": self.log_base}[name]
            return math.log(number) / base, 2 * error / number
        if name == "exp":
            return self._power(("c", "e"), argument)
        number, error = self.value(argument)
        if isinstance(number, complex):
            raise UnsureError
        if name in ("floor", "ceil"):
            return self._whole(name, argument, number, error)
        # What lies within the error on both sides bounds the change, away from poles and the ends of domains.
        compute = _FUNCTIONS[name]
        error = max(error, abs(number) * _ROUNDING)
        value, low, high = compute(number), compute(number - error), compute(number + error)
        change = max(abs(value - low), abs(value - high))
        if change > 1e-6 * max(1.0, abs(value)) or (name in TRIG and abs(value) > 1e6):
            raise UnsureError
        return value, 4 * change + 4 * _ROUNDING

    def _whole(self, name: str, argument: Node, number: float, error: float) -> _Value:
        nearest = round(number)
        if abs(number - nearest) <= 4 * error:
            if not _is_rational(argument):
                raise UnsureError
            return float(nearest), 0.0
        return float(math.floor(number) if name == "floor" else math.ceil(number)), 0.0

    def _logarithm(self, base: Node, argument: Node) -> _Value:
        two, two_error = self._positive(*self.value(base))
        one, one_error = self._positive(*self.value(argument))
        below = math.log(two)
        if abs(below) < 1e-3:
            raise UnsureError
        value = math.log(one) / below
        return value, 2 * (one_error / one + abs(value) * two_error / two + _ROUNDING) / abs(below)

    def _natural(self, node: Node) -> int:
        number, error = self.value(node)
        if isinstance(number, complex) or number != int(number) or error > 1e-9 or not 0 <= number <= _MAX_FACTORIAL:
            raise UnsureError
        return int(number)

    def _factorial(self, node: Node) -> _Value:
        return float(math.factorial(self._natural(node))), 0.0

    def _binomial(self, above: Node, below: Node) -> _Value:
        return float(math.comb(self._natural(above), self._natural(below))), 0.0

    def _absolute(self, node: Node) -> _Value:
        value, error = self.value(node)
        if isinstance(value, complex):
            raise UnsureError
        return abs(value), error

    def _degrees(self, node: Node) -> _Value:
        value, error = self.value(node)
        return value * _DEGREE, error


def _is_rational(node: Node) -> bool:
    """Whether a number is computed without irrational parts, so that a whole value is no chance."""
    return all(part[0] in ("n", "s", "+", "*", "/", "!", "C") for part in walk(node))


_KINDS = {
    "n": "_number",
    "s": "_symbol",
    "c": "_constant",
    "+": "_sum",
    "*": "_product",
    "/": "_quotient",
    "^": "_power",
    "root": "_root",
    "f": "_function",
    "log": "_logarithm",
    "!": "_factorial",
    "C": "_binomial",
    "abs": "_absolute",
    "deg": "_degrees",
}
_FUNCTIONS = {
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "cot": lambda x: 1 / math.tan(x),
    "sec": lambda x: 1 / math.cos(x),
    "csc": lambda x: 1 / math.sin(x),
    "arcsin": math.asin,
    "arccos": math.acos,
    "arctan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
}
