"""Equality of formulas: a guarded door to `math-verify` (LaTeX grammar only, so no text reaches `eval`)."""

import logging
import re
import threading
from functools import lru_cache
from typing import Any

from .rational import TooLargeError


PARSE_SECONDS = 3
VERIFY_SECONDS = 3
MAX_LENGTH = 1_000
MAX_LENGTH_IN_THREAD = 200

_DECIMAL = re.compile(r"(?<![\d.])(\d*)\.(\d+)(?![\d.])")
_TOWER = re.compile(r"\d[)}]*\^[({]*\d+[)}]*\^")
_LARGE_FACTORIAL = re.compile(r"\d{4,}[)}]*!|![)}]*!")
_LARGE_EXPONENT = re.compile(r"\^[({]*-?\d{4,}")
_LARGE_EXPONENT_IN_THREAD = re.compile(r"\^[({]*-?\d{3,}|!")


class UnreadableError(ValueError):
    """`math-verify` cannot read the formula."""


class TimeLimitError(RuntimeError):
    """Reading or comparing took longer than the limit."""


def read_formula(latex: str) -> Any:
    """
    Parse a formula.

    Args:
        latex (`str`):
            Formula without math delimiters.

    Returns:
        A sympy object.

    Raises:
        UnreadableError: when it is no formula.
        TooLargeError: when it is too long, or holds a power tower, a large factorial or a large exponent.
        TimeLimitError: when parsing takes more than 3 s.
    """
    _check_size(latex)
    return _parse(latex, PARSE_SECONDS if _has_alarm() else None)


def is_equal_formula(answer: str, gold: str) -> bool:
    """
    Say whether two formulas are equal (for positive values of their letters, where that decides).

    Args:
        answer, gold (`str`):
            Formulas without math delimiters. An interval and an inequality may be equal.

    Returns:
        `bool`

    Raises:
        UnreadableError, TooLargeError, TimeLimitError: as [`read_formula`], about either side.
        ArithmeticError: when the comparison itself fails.
    """
    from math_verify import verify
    from math_verify.errors import TimeoutException

    answer_formula, gold_formula = read_formula(answer), read_formula(gold)
    seconds = VERIFY_SECONDS if _has_alarm() else None
    try:
        is_equal = verify(
            gold_formula,
            answer_formula,
            allow_set_relation_comp=True,
            timeout_seconds=seconds,
            raise_on_error=True,
        )
        return _limited(_confirm if is_equal else _is_equal_for_positive, seconds)(answer_formula, gold_formula)
    except TimeoutException as error:
        raise TimeLimitError(f"no verdict within {VERIFY_SECONDS} s") from error
    except Exception as error:
        # sympy raises many unrelated types; none says more than that this pair cannot be compared.
        raise ArithmeticError(f"comparison failed: {type(error).__name__}: {error}") from error


def _has_alarm() -> bool:
    """Signal-based limits work in the main thread only."""
    return threading.current_thread() is threading.main_thread()


def _check_size(latex: str) -> None:
    compact = re.sub(r"\s+", "", latex)
    has_alarm = _has_alarm()
    limit = MAX_LENGTH if has_alarm else MAX_LENGTH_IN_THREAD
    if len(compact) > limit:
        raise TooLargeError(f"a formula of more than {limit} characters")
    if _TOWER.search(compact) or _LARGE_FACTORIAL.search(compact) or _LARGE_EXPONENT.search(compact):
        raise TooLargeError("a power tower, a large factorial or a large exponent")
    if not has_alarm and _LARGE_EXPONENT_IN_THREAD.search(compact):
        raise TooLargeError("a factorial or a large exponent, outside the main thread")


@lru_cache(maxsize=1024)
def _parse(latex: str, seconds: int | None) -> Any:
    from latex2sympy2_extended import NormalizationConfig
    from math_verify import LatexExtractionConfig, parse
    from math_verify.errors import TimeoutException

    # This module reports time limits itself, as verdicts.
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    # Units are off: that list holds single letters, which would be eaten out of formulas.
    normalization = NormalizationConfig(units=False, malformed_operators=True, nits=True, boxed="none")
    config = LatexExtractionConfig(boxed_match_priority=-1, normalization_config=normalization)
    try:
        # Delimiters are needed: math-verify reads bare LaTeX as its first number.
        formulas = parse(
            f"${_with_exact_decimals(latex)}$",
            extraction_config=[config],
            fallback_mode="no_fallback",
            parsing_timeout=seconds,  # pyright: ignore[reportArgumentType]  # None switches the alarm off
            raise_on_error=True,
        )
    except TimeoutException as error:
        raise TimeLimitError(f"not read within {PARSE_SECONDS} s") from error
    except Exception as error:
        raise UnreadableError(latex) from error
    if not formulas:
        raise UnreadableError(latex)
    return formulas[0]


def _with_exact_decimals(latex: str) -> str:
    """Write decimals as fractions, so that a rounded number is never equal to what it was rounded from."""

    def as_fraction(match: re.Match[str]) -> str:
        whole, decimals = match.groups()
        if not decimals.strip("0"):
            return whole or "0"
        return rf"(\frac{{{int(whole + decimals)}}}{{{10 ** len(decimals)}}})"

    return _DECIMAL.sub(as_fraction, latex)


def _limited(function: Any, seconds: int | None) -> Any:
    from math_verify.utils import timeout

    return timeout(seconds)(function)


def _confirm(answer: Any, gold: Any) -> bool:
    """Check an equality of two numbers relatively: `math-verify` takes any tiny difference for zero."""
    from sympy import Expr

    if not (isinstance(answer, Expr) and isinstance(gold, Expr)) or answer.free_symbols or gold.free_symbols:
        return True
    first, second = answer.doit().evalf(30), gold.doit().evalf(30)
    if not (first.is_number and second.is_number and first.is_finite and second.is_finite):
        return True
    return bool(abs(first - second) <= 1e-12 * max(abs(first), abs(second)))


def _is_equal_for_positive(answer: Any, gold: Any) -> bool:
    """Compare two expressions again with positive letters, unless an absolute value is about the sign."""
    from sympy import Abs, Expr, Symbol, simplify

    if not (isinstance(answer, Expr) and isinstance(gold, Expr)) or not answer.free_symbols:
        return False
    if answer.has(Abs) or gold.has(Abs):
        return False
    positive = [(symbol, Symbol(str(symbol), positive=True)) for symbol in answer.free_symbols | gold.free_symbols]
    return simplify(answer.subs(positive).doit() - gold.subs(positive).doit()) == 0
