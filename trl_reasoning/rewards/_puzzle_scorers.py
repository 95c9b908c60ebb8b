"""
Own scorers for tasks of reasoning-gym whose library scorer evaluates text or gives full credit to wrong answers.

Each takes the answer and the task's entry (`answer`, `metadata`) and gives a score in [0, 1], with the library's
partial credit where it has one.
"""

import json
import math
import re
from collections.abc import Callable
from typing import Any

from ._formulas import is_antiderivative, is_equal_polynomial
from .countdown import check_countdown


Entry = dict[str, Any]
_FALSE_OR_TRUE = ("false", "true")
_DECIMAL = r"\d{1,100}(?:\.\d{1,100})?"
_COMPLEX = re.compile(
    rf"(?P<real>[-+]?{_DECIMAL})?(?P<imaginary>(?:(?<=\d)[-+]|(?<!\d)[-+]?)(?:{_DECIMAL})?[ij])?", re.ASCII
)
_RATIO = re.compile(r"(\d{1,12}(?:\.\d{1,30})?(?:e-?\d{1,2})?)(?:/(\d{1,12}))?", re.ASCII | re.IGNORECASE)
_INTEGER = re.compile(r"([-+]?)(0x[0-9a-f]{1,400}|0b[01]{1,1600}|\d{1,400})", re.ASCII)


def score_expression(answer: str, entry: Entry) -> float:
    """Countdown and the game of 24. The library parses the text by evaluation, and lets 24 be made of any numbers."""
    metadata = entry["metadata"]
    outcome = check_countdown(answer, metadata.get("target", 24), metadata["numbers"])
    return {"right": 1.0, "unreadable": 0.01}.get(outcome, 0.05)


def score_polynomial(answer: str, entry: Entry) -> float:
    """A product of polynomials, multiplied out. The library evaluates the text."""
    if "(" in answer.replace("[", "("):
        return 0.0  # the question itself, in parentheses, has the right value
    return float(is_equal_polynomial(answer, entry["answer"]))


def score_integral(answer: str, entry: Entry) -> float:
    """An antiderivative. The library evaluates the text."""
    metadata = entry["metadata"]
    return float(is_antiderivative(answer, metadata["integrand"], metadata["variable"]))


def score_text(answer: str, entry: Entry) -> float:
    """The gold text; a tenth for a list of its parts. The library evaluates what is not the gold text."""
    gold = entry["answer"].strip()
    if answer == gold:
        return 1.0
    items = _read_list(answer)
    if not items:
        return 0.0
    if all(isinstance(item, list) for item in items):
        spelled = "\n".join(" ".join(map(str, row)) for row in items)
    else:
        spelled = " ".join(map(str, items))
    # The letters of string_insertion stand without blanks between them.
    return 0.1 if gold in (spelled, spelled.replace(" ", "")) else 0.0


def score_queens(answer: str, entry: Entry) -> float:
    """Any solution of the board; half for a list of lists. The library evaluates what is not a board."""
    solutions = entry["metadata"]["valid_answers"]
    if answer in solutions:
        return 1.0
    rows = _read_list(answer)
    if not rows or not all(isinstance(row, list) for row in rows):
        return 0.0
    return 0.5 if "\n".join(" ".join(map(str, row)) for row in rows) in solutions else 0.0


def score_sorting(answer: str, entry: Entry) -> float:
    """A sorted list of numbers. To the library a list of NaN is sorted, and near to everything."""
    gold, found = _read_list(entry["answer"]), _read_list(answer)
    try:
        values = [float(number) for number in found or []]
        wanted = [float(number) for number in gold or []]
    except (TypeError, ValueError, OverflowError):
        return 0.0
    same = len(values) == len(wanted) and all(
        math.isclose(value, number, rel_tol=0.0, abs_tol=1e-6) for value, number in zip(values, wanted, strict=True)
    )
    return float(same and bool(wanted))


def score_bits(answer: str, entry: Entry) -> float:
    """A whole number in hexadecimal, binary or decimal digits. The library evaluates the problem's text."""
    value, gold = _read_integer(answer), _read_integer(entry["answer"])
    return float(value is not None and value == gold)


def score_truth(answer: str, entry: Entry) -> float:
    """True or False. To the library every text is true, and every gold, too."""
    return float(answer.lower() in _FALSE_OR_TRUE and answer.lower() == str(entry["answer"]).lower())


def score_complex(answer: str, entry: Entry) -> float:
    """`a + bi`, with the library's exponential partial credit. To the library NaN is right."""
    text = "".join(answer.split()).strip("()")
    match = _COMPLEX.fullmatch(text)
    if match is None or not text:
        return 0.0
    imaginary = (match["imaginary"] or "0").rstrip("ij")
    if imaginary in ("", "+", "-"):
        imaginary += "1"
    value = complex(float(match["real"] or 0), float(imaginary))
    return math.exp(-abs(value - complex(*entry["metadata"]["result"])))


def score_probability(answer: str, entry: Entry) -> float:
    """A probability as decimal or fraction. The library gives full credit to any text that begins like the gold."""
    value, gold = _read_ratio(answer), _read_ratio(entry["answer"])
    # To the library 0 is near enough to one in 32,768.
    return float(value is not None and gold is not None and abs(value - gold) <= min(1e-4, gold / 100))


def _read_list(text: str) -> list[Any] | None:
    """A list as JSON or with single quotes, without evaluation."""
    try:
        items = json.loads(text.replace("'", '"'))
    except (ValueError, RecursionError):
        return None
    return items if isinstance(items, list) else None


def _read_integer(text: str) -> int | None:
    match = _INTEGER.fullmatch(text.strip().lower())
    if match is None:
        return None
    digits = match[2]
    # A leading zero is no decimal number in Python's own spelling.
    value = int(digits, 0) if digits[:2] in ("0x", "0b") else int(digits)
    return -value if match[1] == "-" else value


def _read_ratio(text: str) -> float | None:
    match = _RATIO.fullmatch("".join(text.split()))
    if match is None or (match[2] is not None and int(match[2]) == 0):
        return None
    return float(match[1]) / int(match[2] or 1)


OWN_SCORERS: dict[str, Callable[[str, Entry], float]] = {
    "binary_matrix": score_text,
    "bitwise_arithmetic": score_bits,
    "coin_flip": score_probability,
    "complex_arithmetic": score_complex,
    "countdown": score_expression,
    "game_of_life_halting": score_truth,
    "intermediate_integration": score_integral,
    "n_queens": score_queens,
    "number_sorting": score_sorting,
    "polynomial_multiplication": score_polynomial,
    "puzzle24": score_expression,
    "simple_integration": score_integral,
    "spiral_matrix": score_text,
    "string_insertion": score_text,
}
"""Task and its scorer."""
