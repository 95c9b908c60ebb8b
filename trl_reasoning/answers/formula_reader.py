r"""
Reading of formulas in LaTeX or plain text. What it does not know, or what people read in two ways (`1/2x`,
`\sin^{-1} x`, `f(x)`, `x^10`), it refuses.
"""

from fractions import Fraction
from typing import Any

from .formula_tokens import BRACKETS, END, Cursor


MAX_DEPTH = 30

Node = tuple[Any, ...]
"""A node of the tree: its kind and its parts.

`("n", Fraction)`, `("s", name)` for letters, `("c", "pi" | "e" | "i")`, `("+", terms)`, `("*", factors)`,
`("/", a, b)`, `("^", a, b)`, `("root", a, n)`, `("f", name, a)`, `("log", base, a)`, `("!", a)`, `("C", n, k)`,
`("abs", a)`, `("deg", a)` (degrees, inside an angle).
"""

TRIG = frozenset({"sin", "cos", "tan", "cot", "sec", "csc"})
FUNCTIONS = TRIG | {"arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "ln", "log", "lg", "exp"}
_LETTERS = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon phi chi psi omega "  # noqa: SIM905
    "Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega hbar ell".split()
)
# Letters that name functions when a bracket follows.
_FUNCTION_LETTERS = frozenset("fghEFGHPQTuvwy")


class Reader(Cursor):
    """Recursive descent over the tokens of one formula."""

    def __init__(self, text: str):
        super().__init__(text)
        self.depth = 0
        self.angles = 0
        # Whether the last factor may not be followed by "/": x^1/2 and \\ln 2/3 have two readings.
        self.is_open = False

    def formula(self) -> Node:
        """The whole text as one formula. Raises `RefusedError`."""
        node = self._sum()
        self.refuse_unless(self.next == END)
        return node

    def _sum(self) -> Node:
        terms = [self._product()]
        while (sign := self.next[1]) in ("+", "-") and self.take("+", "-"):
            term = self._product()
            terms.append(term if sign == "+" else _negative(term))
        return terms[0] if len(terms) == 1 else ("+", tuple(terms))

    def _product(self) -> Node:
        factors = [self._signed()]
        while True:
            if self.take("cdot", "times", "*"):
                factors.append(self._signed())
            elif self.next[1] in ("/", "div"):
                self.refuse_unless(not self.is_open)
                self.take("/", "div")
                denominator = self._signed()
                self.refuse_unless(not self.starts_factor())
                factors = [("/", _product(factors), denominator)]
            elif self.starts_factor():
                before, factor = factors[-1], self._power()
                # A number beside a plain fraction is a mixed number.
                self.refuse_unless(not (before[0] == "n" and _is_plain_fraction(factor)))
                factors.append(factor)
            else:
                return _product(factors)

    def _signed(self) -> Node:
        is_negative = False
        while (sign := self.next[1]) in ("+", "-") and self.take("+", "-"):
            is_negative ^= sign == "-"
        node = self._power()
        return _negative(node) if is_negative else node

    def _power(self) -> Node:
        self.is_open = False
        base = self._atom()
        if self.take("!"):
            base = ("!", base)
            self.refuse_unless(self.next[1] != "!")
        if not self.take("^", "**"):
            return base
        if self.is_degree():
            self.refuse_unless(self.angles > 0)
            return ("deg", base)
        self.refuse_unless(base[0] != "f" and base[0] != "log")
        node = ("^", base, self._exponent())
        self.refuse_unless(self.next[1] not in ("^", "!", "**"))
        return node

    def _exponent(self) -> Node:
        if self.next[1] in ("{", "("):
            return self._group()
        is_negative = self.take("-")
        kind, value = self.next
        self.refuse_unless(kind in ("letter", "command") or (kind == "number" and len(value) == 1))
        node = self._atom()
        self.is_open = kind == "number"
        self.refuse_unless(not (self.is_open and self.next[0] == "number"))
        return _negative(node) if is_negative else node

    def _atom(self) -> Node:
        self.depth += 1
        self.refuse_unless(self.depth <= MAX_DEPTH)
        kind, value = self.next
        if kind == "number":
            self.position += 1
            self.refuse_unless(self.next[0] != "number")
            node: Node = ("n", Fraction(value))
        elif kind == "letter" or (value in _LETTERS and kind == "command"):
            self.position += 1
            node = self._letter(value)
        elif kind == "command":
            self.position += 1
            node = self._command(value)
        elif value == "|" and not self.bars:
            self.position += 1
            self.bars += 1
            node = ("abs", self._sum())
            self.bars -= 1
            self.refuse_unless(self.take("|"))
        else:
            node = self._group()
        self.depth -= 1
        return node

    def _letter(self, name: str) -> Node:
        if self.take("_"):
            name = f"{name}_{self.subscript()}"
        self.refuse_unless([value for _, value in self.tokens[self.position :][:2]] != ["{", "("])
        if self.next[1] == "(":
            # f(x+1), x(2t) and I(0) are values of functions, n(n+1) is a product, f(x) a name for itself.
            if name in _FUNCTION_LETTERS:
                return ("s", f"{name}({self.lone_letter()})")
            self.refuse_unless(self.opens_sum())
        return ("c", name) if name in ("e", "i") else ("s", name)

    def _command(self, name: str) -> Node:
        if name == "pi":
            return ("c", "pi")
        if name == "frac":
            return ("/", self._argument(), self._argument())
        if name in ("binom", "dbinom", "tbinom"):
            return ("C", self._argument(), self._argument())
        if name in ("dot", "ddot"):
            return self._letter(f"{name} {self.lone_letter()}")
        if name in ("lfloor", "lceil"):
            inside = self._sum()
            self.refuse_unless(self.take(f"r{name[1:]}"))
            return ("f", name[1:], inside)
        if name == "sqrt":
            degree: Node = ("n", Fraction(2))
            if self.take("["):
                degree = self._sum()
                self.refuse_unless(self.take("]"))
            return ("root", self._argument(), degree)
        self.refuse_unless(name in FUNCTIONS)
        return self._function(name)

    def _argument(self) -> Node:
        r"""A group or, as TeX has it, the next digit or letter."""
        kind, value = self.next
        if kind == "number":
            self.position += 1
            if len(value) > 1:  # \frac12
                self.position -= 1
                self.tokens[self.position] = ("number", value[1:])
            self.refuse_unless(value[0] != "." and value[1:2] != ".")
            return ("n", Fraction(value[0]))
        self.refuse_unless(value != "(" and (kind != "command" or value in _LETTERS or value == "pi"))
        return self._atom()

    def _group(self) -> Node:
        closing = {"(": ")", "{": "}"}.get(self.next[1])
        self.refuse_unless(closing is not None and self.next[0] == "sign")
        self.position += 1
        bars, self.bars = self.bars, 0
        node = self._sum()
        self.bars = bars
        self.refuse_unless(self.take(closing or ""))
        self.is_open = False
        return node

    def _function(self, name: str) -> Node:
        base, power = None, None
        if name == "log" and self.take("_"):
            base = self._group() if self.next[1] == "{" else self._argument()
        if self.take("^"):
            power = self._exponent()
            self.refuse_unless(power[0] == "n" and power[1] >= 2)
        self.angles += name in TRIG
        argument = self._group() if self.next[1] in ("(", "{") else self._bare_argument(name)
        self.angles -= name in TRIG
        self.refuse_unless(self.next[1] not in ("^", "!", "**"))
        node: Node = ("f", name, argument) if base is None else ("log", base, argument)
        return ("^", node, power) if power else node

    def _bare_argument(self, name: str) -> Node:
        r"""What follows a function without brackets: one factor, or a number and letters of an angle (`\sin 2x`)."""
        self.refuse_unless(self.next[0] != "sign" and self.next[1] not in FUNCTIONS)
        factors = [self._power()]
        is_chain = name in TRIG and (factors[0][0] == "n" or factors[0] == ("c", "pi"))
        while self.starts_factor() and self.next[1] not in FUNCTIONS:
            self.refuse_unless(is_chain and self.next[1] not in BRACKETS)
            factors.append(self._power())
        self.is_open = True
        return _product(factors)


def _negative(node: Node) -> Node:
    return ("n", -node[1]) if node[0] == "n" else ("*", (("n", Fraction(-1)), node))


def _product(factors: list[Node]) -> Node:
    return factors[0] if len(factors) == 1 else ("*", tuple(factors))


def _is_plain_fraction(node: Node) -> bool:
    return node[0] == "/" and node[1][0] == "n" and node[2][0] == "n"
