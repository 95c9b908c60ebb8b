"""Sums of products of named parts with rational factors and exponents, and prime factors."""

from fractions import Fraction
from functools import lru_cache


_MAX_TERMS = 80
_MAX_WORK = 10_000
_MAX_BITS = 8_000
_MAX_TRIAL = 2_000

Number = int | Fraction
Monomial = tuple[tuple[str, Number], ...]
Poly = dict[Monomial, Number]
Ratio = tuple[Poly, Poly]
ONE: Poly = {(): 1}


class UnsureError(ValueError):
    """Nothing is certain about the formula here."""


class Algebra:
    """Sums, products and inverses of fractions, with the sums whose roots stand in them."""

    def __init__(self) -> None:
        self.roots: dict[str, Poly] = {}
        self.work = 0

    def plus(self, one: Ratio, two: Ratio) -> Ratio:
        """The sum of two fractions."""
        if one[1] == two[1]:
            return add(one[0], two[0]), one[1]
        return self.ratio(add(self.times(one[0], two[1]), self.times(two[0], one[1])), self.times(one[1], two[1]))

    def multiplied(self, one: Ratio, two: Ratio) -> Ratio:
        """The product of two fractions."""
        return self.ratio(self.times(one[0], two[0]), self.times(one[1], two[1]))

    def inverse(self, value: Ratio) -> Ratio:
        """One over a fraction."""
        return self.ratio(value[1], value[0])

    def ratio(self, above: Poly, below: Poly) -> Ratio:
        """A fraction; a denominator of one term goes into the numerator."""
        if not below:
            raise UnsureError
        if len(below) > 1 or below == ONE:
            return above, below
        ((monomial, factor),) = below.items()
        inverse, below = {}, ONE
        for name, exponent in monomial:
            inverse[name] = -exponent
            if name[0] == "r":  # the root of a sum becomes another root over the sum
                inverse[name] = 1 - exponent
                below = self.times(below, self.roots[name])
        return self.times(above, self.reduced(inverse, Fraction(1) / factor)), below

    def times(self, one: Poly, two: Poly) -> Poly:
        """The product of two sums."""
        self.work += len(one) * len(two)
        if self.work > _MAX_WORK:
            raise UnsureError
        if one == ONE or two == ONE:
            return two if one == ONE else one
        total: Poly = {}
        for left, left_factor in one.items():
            for right, right_factor in two.items():
                exponents = dict(left)
                for name, exponent in right:
                    exponents[name] = exponents.get(name, 0) + exponent
                add_to(total, self.reduced(exponents, left_factor * right_factor))
        return total

    def is_zero(self, value: Poly) -> bool:
        """Whether a sum is zero, also after its negative powers are multiplied away."""
        lowest: dict[str, Number] = {}
        for monomial in value:
            for name, exponent in monomial:
                lowest[name] = min(lowest.get(name, 0), exponent)
        shift = {name: -exponent for name, exponent in lowest.items() if exponent < 0 and name[0] == "f"}
        if not value or not shift:
            return not value
        total: Poly = {}
        for monomial, factor in value.items():
            exponents = dict(monomial)
            exponents |= {name: exponents.get(name, 0) + exponent for name, exponent in shift.items()}
            add_to(total, self.reduced(exponents, factor))
        return not total

    def reduced(self, exponents: dict[str, Number], factor: Number) -> Poly:
        """One term, with powers of primes, of i, of roots of sums and of sines (by cosines) carried out."""
        kept, sums = {}, []
        for name, exponent in exponents.items():
            whole = exponent.numerator // exponent.denominator
            if name[0] == "p":
                factor *= whole_power(int(name[2:]), whole)
                exponent -= whole
            elif name == "c:i":
                factor *= -1 if whole % 4 >= 2 else 1
                exponent -= whole - whole % 2
            elif name[0] == "r" and whole:
                sums.extend([self.roots[name]] * whole)
                exponent -= whole
            elif name.startswith("f:sin(") and whole >= 2:
                cosine = (name.replace("sin", "cos", 1), 2)
                sums.extend([{(): 1, (cosine,): -1}] * (whole // 2))
                exponent -= whole - whole % 2
            if exponent:
                kept[name] = exponent
        if max(factor.numerator.bit_length(), factor.denominator.bit_length()) > _MAX_BITS:
            raise UnsureError
        total: Poly = {tuple(sorted(kept.items())): factor}
        for inner in sums:
            total = self.times(total, inner)
        return total


def constant(number: Number) -> Ratio:
    """A number as a fraction."""
    return ({(): number.numerator if number.denominator == 1 else number} if number else {}), ONE


def rational(value: Poly) -> Number | None:
    """The number that a sum is, or `None`."""
    return value.get((), 0) if all(not monomial for monomial in value) else None


def generator(name: str) -> Ratio:
    """A named part as a fraction."""
    return {((name, 1),): 1}, ONE


def add(one: Poly, two: Poly, sign: int = 1) -> Poly:
    """One sum plus or minus another."""
    total = dict(one)
    add_to(total, two, sign)
    if len(total) > _MAX_TERMS:
        raise UnsureError
    return total


def add_to(total: Poly, other: Poly, sign: int = 1) -> None:
    """Add a sum, or take it away, in place."""
    for monomial, factor in other.items():
        factor = total.get(monomial, 0) + sign * factor
        if factor:
            total[monomial] = factor
        else:
            del total[monomial]


def key(value: Poly) -> str:
    """The same text for equal sums."""
    return ";".join(
        f"{factor}*{'*'.join(f'{n}^{e}' for n, e in monomial)}" for monomial, factor in sorted(value.items())
    )


def whole_power(base: Number, exponent: int) -> Number:
    """A power of a number; refused when it is too large."""
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(exponent) > _MAX_BITS:
        raise UnsureError
    return base**exponent if exponent >= 0 else Fraction(base) ** exponent


def factors(number: Number) -> dict[int, int]:
    """Prime factors of a positive rational number with their powers."""
    below = {prime: -power for prime, power in _prime_factors(number.denominator).items()}
    return {**_prime_factors(number.numerator), **below}


@lru_cache(maxsize=1024)
def _prime_factors(number: int) -> dict[int, int]:
    found: dict[int, int] = {}
    divisor = 2
    while divisor * divisor <= number and divisor <= _MAX_TRIAL:
        while number % divisor == 0:
            found[divisor] = found.get(divisor, 0) + 1
            number //= divisor
        divisor += 1
    if number > _MAX_TRIAL**2:
        raise UnsureError
    if number > 1:
        found[number] = 1
    return found
