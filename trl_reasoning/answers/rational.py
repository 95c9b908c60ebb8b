"""Exact value of an arithmetic expression written in LaTeX or plain text, without `eval`."""

import math
import re
from fractions import Fraction


MAX_BITS = 100_000
MAX_FACTORIAL = 5_000
# Python refuses by default to turn more than 4300 digits into an integer.
MAX_LENGTH = 4_000
MAX_DEPTH = 60


class NotRationalError(ValueError):
    """The text is not plain arithmetic over numbers."""


class TooLargeError(ValueError):
    """The text asks for a number too large to compute."""


_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+(?![\w.]))?")
_REPEATED = re.compile(r"\\overline\s*(?:\{\s*(\d+)\s*\}|(\d))")
_ARGUMENT = r"\s*(?:\{\s*(\d+)\s*\}|(\d))"
_MIXED_TAIL = re.compile(rf"\s+(\d+)\s*/\s*(\d+)(?![\d.])|\s*\\frac{_ARGUMENT}{_ARGUMENT}")
_TIMES = re.compile(r"\\times(?![A-Za-z])|\\cdot(?![A-Za-z])|\*(?!\*)")
_DIVIDE = re.compile(r"\\div(?![A-Za-z])|/")
_POWER = re.compile(r"\^|\*\*")
_FRAC = re.compile(r"\\frac(?![A-Za-z])")
_DIGIT = re.compile(r"\d")
_CLOSING = {"(": ")", "{": "}", "[": "]"}


def rational(text: str) -> Fraction | None:
    r"""
    Compute the exact value of plain arithmetic: integers, (repeating) decimals, fractions, mixed numbers, scientific
    notation, sums, products, integer powers and factorials.

    Args:
        text (`str`):
            Expression, cleaned by `clean` (no dollar signs, one spelling of each command).

    Returns:
        `Fraction` or `None`: `None` when the text is anything else.

    Raises:
        TooLargeError: when the text has more than 4,000 characters or is nested too deeply, or a number would have
            more than about 100,000 bits.

    Example:
    ```python
    >>> rational(r"1\frac{3}{4}")
    Fraction(7, 4)
    >>> rational(r"1.2\times 10^{3}")
    Fraction(1200, 1)
    >>> rational("x+1") is None
    True

    ```
    """
    if len(text) > MAX_LENGTH:
        raise TooLargeError(f"more than {MAX_LENGTH} characters")
    if text.isascii() and text.isdigit():
        return Fraction(int(text))
    try:
        return _Parser(text).parse()
    except NotRationalError:
        return None


class _Parser:
    """Recursive descent over the characters of one expression."""

    def __init__(self, text: str):
        self.text = text
        self.position = 0
        self.depth = 0

    def parse(self) -> Fraction:
        value = self.sum()
        if self.rest():
            raise NotRationalError(self.text)
        return value

    def rest(self) -> str:
        """Skip spaces; the next character, or an empty string at the end."""
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1
        return self.text[self.position : self.position + 1]

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        self.rest()
        match = pattern.match(self.text, self.position)
        if match:
            self.position = match.end()
        return match

    def sum(self) -> Fraction:
        value = self.product()
        while (sign := self.rest()) in ("+", "-") and sign:
            self.position += 1
            term = self.product()
            value = _checked(value + term if sign == "+" else value - term)
        return value

    def product(self) -> Fraction:
        value = self.signed()
        while True:
            if self.take(_TIMES):
                value = _checked(value * self.signed())
            elif self.take(_DIVIDE):
                value = _checked(_divide(value, self.signed()))
            elif self.rest() == "(":
                value = _checked(value * self.power())
            else:
                return value

    def signed(self) -> Fraction:
        sign = 1
        while (character := self.rest()) in ("+", "-") and character:
            sign = -sign if character == "-" else sign
            self.position += 1
        return sign * self.power()

    def power(self) -> Fraction:
        base = self.atom()
        while self.rest() == "!":
            self.position += 1
            base = _factorial(base)
        if self.take(_POWER):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise TooLargeError(f"more than {MAX_DEPTH} nested powers")
            base = _power(base, self.signed())
            self.depth -= 1
        return base

    def atom(self) -> Fraction:
        number = self.take(_NUMBER)
        if number:
            value = _number(number.group())
            repeated = _REPEATED.match(self.text, self.position)
            if repeated and "." in number.group():
                self.position = repeated.end()
                return value + _repeating(number.group(), repeated[1] or repeated[2])
            mixed = _MIXED_TAIL.match(self.text, self.position)
            if mixed:
                self.position = mixed.end()
                return _mixed(value, *(int(group) for group in mixed.groups() if group))
            return value
        if self.take(_FRAC):
            return _divide(self.argument(), self.argument())
        return self.group()

    def argument(self) -> Fraction:
        r"""An argument of \frac: a group or, as TeX has it, a single digit."""
        digit = self.take(_DIGIT)
        return Fraction(digit.group()) if digit else self.group()

    def group(self) -> Fraction:
        opening = self.rest()
        if opening not in _CLOSING:
            raise NotRationalError(self.text)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooLargeError(f"more than {MAX_DEPTH} nested groups")
        self.position += 1
        value = self.sum()
        if self.rest() != _CLOSING[opening]:
            raise NotRationalError(self.text)
        self.position += 1
        self.depth -= 1
        return value


def _number(digits: str) -> Fraction:
    mantissa, _, exponent = digits.lower().partition("e")
    scale = int(exponent or 0)
    if abs(scale) > MAX_LENGTH:
        raise TooLargeError(f"a decimal exponent above {MAX_LENGTH}")
    return Fraction(mantissa.removesuffix(".")) * Fraction(10) ** scale


def _repeating(before: str, digits: str) -> Fraction:
    r"""What the repeated digits add: in 0.3\overline{6} they are 6/90."""
    decimals = len(before.partition(".")[2])
    return Fraction(int(digits), (10 ** len(digits) - 1) * 10**decimals)


def _mixed(whole: Fraction, numerator: int, denominator: int) -> Fraction:
    # Only a whole number beside a proper fraction is a mixed number; anything else has no agreed reading.
    if whole.denominator != 1 or not 0 < numerator < denominator:
        raise NotRationalError("not a mixed number")
    return whole + Fraction(numerator, denominator)


def _divide(numerator: Fraction, denominator: Fraction) -> Fraction:
    if denominator == 0:
        raise NotRationalError("division by zero")
    return numerator / denominator


def _factorial(value: Fraction) -> Fraction:
    if value.denominator != 1 or value < 0:
        raise NotRationalError("factorial of a number that is not a natural number")
    if value > MAX_FACTORIAL:
        raise TooLargeError(f"factorial of a number above {MAX_FACTORIAL}")
    return Fraction(math.factorial(value.numerator))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or (base == 0 and exponent <= 0):
        raise NotRationalError("not an integer power")
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(base) != 1 and bits * abs(exponent) > MAX_BITS:
        raise TooLargeError(f"a power of more than {MAX_BITS} bits")
    # The parity is all that counts for 1 and -1, whose exponent may be huge.
    power = exponent.numerator % 2 if abs(base) == 1 else exponent.numerator
    return base**power


def _checked(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > 2 * MAX_BITS:
        raise TooLargeError(f"a number of more than {2 * MAX_BITS} bits")
    return value
