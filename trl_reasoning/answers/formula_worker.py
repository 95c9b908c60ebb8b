"""What `symbolic` lets its worker processes do: read and compare formulas with `math-verify` and sympy."""

import contextlib
import logging
import re
import time
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any


PRELOAD = (
    "sympy",
    "sympy.parsing.sympy_parser",
    "sympy.physics.units",
    "latex2sympy2_extended",
    "math_verify",
    "trl_reasoning.answers.formula_warm_up",
)
_DECIMAL = re.compile(r"(?<![\d.])(\d*)\.(\d+)(?![\d.])")
_EXPONENT = re.compile(r"(?:\^\s*[({]*|[eE])\s*[+-]?(\d+)")
_NUMERAL = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_INDEX = re.compile(r"_\s*\{?[^{}]*i|i\s*=")
_POINTS = ((2, 3), (7, 5))


class _UnreadableError(ValueError):
    """`math-verify` cannot read the formula."""


def answer_question(*formulas: str) -> tuple[str, bool, float]:
    """
    Read one formula, or compare two.

    Args:
        formulas (`str`):
            One or two formulas without math delimiters.

    Returns:
        `tuple[str, bool, float]`: `"done"`, `"unreadable"` or `"failed"`; whether the formulas are equal; the seconds
        of computing.
    """
    started = time.process_time()
    status, is_equal = "done", True
    try:
        with _without_eval():
            parsed = [_parse(formula) for formula in formulas]
            if len(parsed) == 2:
                answer, gold = parsed
                is_equal = _is_equal(answer, gold) and _is_near(answer, gold, _digits(*formulas))
    except _UnreadableError:
        status = "unreadable"
    except MemoryError:
        raise
    except Exception:
        # sympy raises many unrelated types; none says more than that this pair cannot be compared.
        status = "failed"
    return status, is_equal and status == "done", time.process_time() - started


@contextlib.contextmanager
def _without_eval() -> Iterator[None]:
    """
    Replace for a while what sympy does with a string where it wants an expression, which is to give it to `eval`.

    The LaTeX reader makes its numbers that way. They stay possible, and exact; every other string is refused.
    """
    import sympy.physics.units  # noqa: F401  # loaded late by comparisons, and made from strings
    from sympy.parsing import sympy_parser

    kept = sympy_parser.eval_expr, sympy_parser.parse_expr
    sympy_parser.eval_expr = sympy_parser.parse_expr = _number
    try:
        yield
    finally:
        sympy_parser.eval_expr, sympy_parser.parse_expr = kept


def _number(text: str, *args: Any, **kwargs: Any) -> Any:
    from sympy import Rational

    if _NUMERAL.fullmatch(text) is None:
        raise TypeError("a text where an expression should be")
    return Rational(Fraction(text))


@lru_cache(maxsize=4096)
def _parse(latex: str) -> Any:
    """A formula as `math-verify` reads it. Cached: a group of samples shares one gold."""
    from latex2sympy2_extended import NormalizationConfig
    from math_verify import LatexExtractionConfig, parse

    # It warns that limits are off; here they are the worker's.
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    # Units are off: that list holds single letters, which would be eaten out of formulas.
    normalization = NormalizationConfig(units=False, malformed_operators=True, nits=True, boxed="none")
    # LaTeX only: the other reader of `math-verify`, for plain expressions, uses `eval`.
    config = LatexExtractionConfig(boxed_match_priority=-1, normalization_config=normalization)
    try:
        # Delimiters are needed: math-verify reads bare LaTeX as its first number.
        formulas = parse(
            f"${_with_exact_decimals(latex)}$",
            extraction_config=[config],
            fallback_mode="no_fallback",
            parsing_timeout=None,  # pyright: ignore[reportArgumentType]  # None switches its alarm off
            raise_on_error=True,
        )
    except MemoryError:
        raise
    except Exception as error:
        raise _UnreadableError(latex) from error
    if not formulas:
        raise _UnreadableError(latex)
    return _with_imaginary_unit(formulas[0], latex)


def _with_imaginary_unit(formula: Any, latex: str) -> Any:
    """Take the letter i for the imaginary unit, unless it is the index of something."""
    from sympy import Basic, I

    if not isinstance(formula, Basic) or _INDEX.search(latex):
        return formula
    return formula.xreplace({symbol: I for symbol in formula.free_symbols if str(symbol) == "i"})


def _with_exact_decimals(latex: str) -> str:
    """Write decimals as fractions, so that a rounded number is never equal to what it was rounded from."""

    def as_fraction(match: re.Match[str]) -> str:
        whole, decimals = match.groups()
        if not decimals.strip("0"):
            return whole or "0"
        return rf"(\frac{{{int(whole + decimals)}}}{{{10 ** len(decimals)}}})"

    return _DECIMAL.sub(as_fraction, latex)


def _is_equal(answer: Any, gold: Any) -> bool:
    from math_verify import verify

    is_equal = verify(gold, answer, allow_set_relation_comp=True, timeout_seconds=None, raise_on_error=True)
    return is_equal or _is_equal_for_positive(answer, gold)


def _is_equal_for_positive(answer: Any, gold: Any) -> bool:
    """Compare two expressions again with positive letters, unless an absolute value is about the sign."""
    from sympy import Abs, Expr, Symbol, simplify

    if not (isinstance(answer, Expr) and isinstance(gold, Expr)) or not answer.free_symbols:
        return False
    if answer.has(Abs) or gold.has(Abs):
        return False
    positive = [(symbol, Symbol(str(symbol), positive=True)) for symbol in answer.free_symbols | gold.free_symbols]
    return simplify(answer.subs(positive).doit() - gold.subs(positive).doit()) == 0


def _is_near(answer: Any, gold: Any, digits: int) -> bool:
    """
    Check an equality again by values with more digits than the formulas ask for: `math-verify` takes any tiny
    difference for zero. Where there is no value to compare, the equality stands.
    """
    from sympy import Expr, Rational

    if not (isinstance(answer, Expr) and isinstance(gold, Expr)):
        return True
    symbols = sorted(answer.free_symbols | gold.free_symbols, key=str)
    for above, below in _POINTS:
        point = [(symbol, Rational(above + number, below)) for number, symbol in enumerate(symbols)]
        first, second = (side.subs(point).doit().evalf(digits) for side in (answer, gold))
        if not (first.is_number and second.is_number and first.is_finite and second.is_finite):
            return True
        if abs(first - second) > Rational(10) ** (20 - digits) * max(abs(first), abs(second)):
            return False
    return True


def _digits(*formulas: str) -> int:
    """Digits that tell two different values apart: those written out, and those that exponents add."""
    exponents = (int(digits) for formula in formulas for digits in _EXPONENT.findall(formula))
    return min(3_000, 60 + sum(map(len, formulas)) + sum(exponents))
