r"""
An exact normal form of formulas: fractions of sums of products with rational exponents. Letters are positive.

A monomial maps generators to rational exponents. Generators are prime numbers (`\sqrt{12}` is 2 times 3 to the 1/2),
letters, pi, e, i and closed parts: roots of sums, powers with letters, logarithms of primes, functions, factorials.
"""

import math
from fractions import Fraction

from .formula_reader import Node
from .polynomial import (
    ONE,
    Algebra,
    Monomial,
    Number,
    Poly,
    Ratio,
    UnsureError,
    add,
    constant,
    factors,
    generator,
    key,
    rational,
    whole_power,
)


_MAX_POWER = 40
_MAX_FACTORIAL = 500


def is_same(first: Node, second: Node) -> bool | None:
    """
    Compare the normal forms of two formulas.

    Equal forms are equal as formulas; where a root or logarithm has several branches, values have to say so too.

    Args:
        first, second (`Node`):
            Formulas of `formula.read`.

    Returns:
        `bool` or `None`: `None` when the forms differ, but a relation between their closed parts may make them equal.

    Raises:
        UnsureError: when one has no normal form here or a form too large.
    """
    form = _Form()
    (above, below), (other_above, other_below) = form.of(first), form.of(second)
    if form.is_zero(add(form.times(above, other_below), form.times(other_above, below), -1)):
        return True
    # Products of letters, roots of primes and powers of pi (or e) are linearly independent: unequal forms differ.
    generators = {name for monomial in (*above, *below, *other_above, *other_below) for name, _ in monomial}
    has_relations = any(name[0] in "f^rl" for name in generators) or {"c:pi", "c:e"} <= generators
    return None if has_relations else False


class _Form(Algebra):
    """Normal forms of formulas."""

    def of(self, node: Node) -> Ratio:
        kind, *parts = node
        match kind:
            case "n":
                return constant(parts[0])
            case "s" | "c":
                return generator(f"{kind}:{parts[0]}")
            case "+":
                total: Ratio = ({}, ONE)
                for term in parts[0]:
                    total = self.plus(total, self.of(term))
                return total
            case "*":
                total = constant(1)
                for factor in parts[0]:
                    total = self.multiplied(total, self.of(factor))
                return total
            case "/":
                return self.multiplied(self.of(parts[0]), self.inverse(self.of(parts[1])))
            case "^":
                return self.power(self.of(parts[0]), self.of(parts[1]))
            case "root":
                return self.power(self.of(parts[0]), self.inverse(self.of(parts[1])))
            case "f" | "log":
                return self.function(*parts)
            case "!":
                return self.factorial(self.of(parts[0]))
            case "C":
                above, below = self.of(parts[0]), self.of(parts[1])
                rest = self.plus(above, self.multiplied(constant(-1), below))
                under = self.multiplied(self.factorial(below), self.factorial(rest))
                return self.multiplied(self.factorial(above), self.inverse(under))
        raise UnsureError  # absolute values and degrees

    def power(self, base: Ratio, exponent: Ratio) -> Ratio:
        if exponent[1] != ONE:
            raise UnsureError
        number = rational(exponent[0])
        if number is None:
            return self.open_power(base, exponent[0])
        if number.denominator == 1:
            return self.whole_power(base, number.numerator)
        above, below = (self.root(part, number) for part in base)
        return self.multiplied(above, self.inverse(below))

    def whole_power(self, base: Ratio, exponent: int) -> Ratio:
        if exponent < 0:
            base, exponent = self.inverse(base), -exponent
        above, below = base
        if len(above) <= 1 and below == ONE:
            if not above and not exponent:
                raise UnsureError
            for monomial, factor in above.items():
                raised = {name: power * exponent for name, power in monomial}
                return self.reduced(raised, whole_power(factor, exponent)), ONE
        if exponent > _MAX_POWER:
            raise UnsureError
        total = constant(1)
        for _ in range(exponent):
            total = self.multiplied(total, base)
        return total

    def root(self, value: Poly, exponent: Number) -> Ratio:
        """A power with a broken exponent of a sum; one of positive numbers and letters goes into its parts."""
        if not value:
            raise UnsureError
        content = Fraction(
            math.gcd(*(factor.numerator for factor in value.values())),
            math.lcm(*(factor.denominator for factor in value.values())),
        )
        total = self.number_root(content, exponent)
        rest: Poly = {monomial: factor / content for monomial, factor in value.items()}
        if len(rest) > 1:
            name = f"r:{key(rest)}"
            self.roots[name] = rest
            return self.multiplied(total, (self.reduced({name: exponent}, 1), ONE))
        ((monomial, factor),) = rest.items()
        if factor < 0:
            if exponent.denominator != 2:
                raise UnsureError
            total = self.multiplied(total, (self.reduced({"c:i": exponent.numerator}, 1), ONE))
        if any(name == "c:i" or name[0] in "f^rl" for name, _ in monomial):
            raise UnsureError
        raised = {name: power * exponent for name, power in monomial}
        return self.multiplied(total, (self.reduced(raised, 1), ONE))

    def number_root(self, number: Number, exponent: Number) -> Ratio:
        powers = {f"p:{prime}": power * exponent for prime, power in factors(number).items()}
        return self.reduced(powers, 1), ONE

    def open_power(self, base: Ratio, exponent: Poly) -> Ratio:
        """A power with letters in its exponent: of a product of positive parts and perhaps -1."""
        if len(base[0]) != 1 or base[1] != ONE:
            raise UnsureError
        ((monomial, factor),) = base[0].items()
        if any(name[0] not in "sp" and name not in ("c:e", "c:pi") for name, _ in monomial):
            raise UnsureError
        parts = _with_factors(monomial, abs(factor))
        total = constant(1)
        for term, scale in exponent.items():
            if not term:
                total = self.multiplied(total, self.power(base, constant(scale)))
                continue
            powers = {f"^{name}|{key({term: 1})}": power * scale for name, power in parts.items()}
            if factor < 0:
                powers[f"^-1|{key({term: 1})}"] = scale
            total = self.multiplied(total, (self.reduced(powers, 1), ONE))
        return total

    def function(self, name: Node | str, argument: Node) -> Ratio:
        if not isinstance(name, str):
            return self.multiplied(self.function("ln", argument), self.inverse(self.function("ln", name)))
        if name == "exp":
            return self.of(("^", ("c", "e"), argument))
        if name == "tan":
            return self.multiplied(self.function("sin", argument), self.inverse(self.function("cos", argument)))
        if name in ("cot", "sec", "csc"):
            above = {"cot": "cos"}.get(name)
            below = self.inverse(self.function({"sec": "cos"}.get(name, "sin"), argument))
            return self.multiplied(self.function(above, argument), below) if above else below
        value = self.of(argument)
        if name in ("ln", "log", "lg") and len(value[0]) == 1 and value[1] == ONE:
            return self.logarithm(name, value[0])
        return generator(f"f:{name}({key(value[0])}/{key(value[1])})")

    def logarithm(self, name: str, value: Poly) -> Ratio:
        """A logarithm of a product of positive parts, as a sum."""
        ((monomial, factor),) = value.items()
        if factor <= 0 or any(part[0] not in "sp" and part not in ("c:e", "c:pi") for part, _ in monomial):
            raise UnsureError
        parts = _with_factors(monomial, factor)
        unit = parts.pop("c:e", 0) if name == "ln" else 0
        total: Poly = {(): unit} if unit else {}
        for part, power in parts.items():
            total = add(total, {((f"l:{name}({part})", 1),): power})
        return total, ONE

    def factorial(self, value: Ratio) -> Ratio:
        """A factorial; (n+2)! is n!(n+1)(n+2)."""
        if value[1] != ONE:
            raise UnsureError
        number = rational(value[0])
        if number is not None:
            if number.denominator != 1 or not 0 <= number <= _MAX_FACTORIAL:
                raise UnsureError
            return constant(math.factorial(number.numerator))
        shift = value[0].get((), 0)
        if shift.denominator != 1 or abs(shift) > _MAX_POWER:
            raise UnsureError
        letters = {monomial: factor for monomial, factor in value[0].items() if monomial}
        total = generator(f"f:!({key(letters)})")
        for step in range(1, abs(shift.numerator) + 1):
            factor = add(letters, constant(step if shift > 0 else 1 - step)[0]), ONE
            total = self.multiplied(total, factor if shift > 0 else self.inverse(factor))
        return total


def _with_factors(monomial: Monomial, factor: Number) -> dict[str, Number]:
    """The parts of a monomial together with the prime factors of what stands before it."""
    parts = dict(monomial)
    for prime, power in factors(factor).items():
        parts[f"p:{prime}"] = parts.get(f"p:{prime}", 0) + power
    return parts
