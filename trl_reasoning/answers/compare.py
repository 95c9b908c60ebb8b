"""Equality of two answers: exact and cheap first, formulas last."""

import re
from dataclasses import dataclass
from fractions import Fraction

from .choices import chosen_letter, gold_choice
from .equations import is_contradiction, is_name, is_same_equation, sides_of, strip_names
from .extract import has_operation
from .formula_text import rename_capitals, with_clear_fractions
from .intervals import has_set_mark, is_same_set, read_set
from .items import Items, split_items
from .matrices import is_same_matrix, read_matrix, vector_of
from .normalize import Value, plain_numbers, read_value
from .numeric import decide
from .rational import MAX_LENGTH, TooLargeError, rational
from .symbolic import is_equal_formula
from .units import canonical_unit
from .words import as_text, clock_time, is_formula, is_words


_LITERAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)\Z")
# A number right before a fraction that cannot be the rest of a mixed number: a sum for some, a product for others.
_NOT_MIXED = re.compile(r"(?<![\d.^_}/])\d+\s*\\frac\s*(?:\{\d+\}\s*\{\d+\}|\d\d)")
_CLOSED_INFINITY = re.compile(r"\[\s*[+-]?\s*\\infty|\\infty\s*\]")
_OPEN_OPERATOR = re.compile(r"\\(?:i*int|sum|prod|lim)(?![A-Za-z])")
_LETTER_UNIT = re.compile(r"(?P<number>.*[\d.}])\s*(?P<unit>[A-Za-z])\Z")
_BASED = re.compile(r"(?P<digits>\d+)_\{?(?P<base>\d+)\}?\Z")
# Derivatives, feet and seconds of arc, which the formula readers skip.
_PRIMED = re.compile(r"[A-Za-z]?'+|\"")
_MAX_UNORDERED = 50
# Nobody writes out a number with more digits, so an expression may stand for it.
_MAX_WRITTEN_DIGITS = 6


@dataclass(frozen=True)
class Comparison:
    """Whether two answers are equal, and the rule that decided."""

    is_equal: bool
    rule: str


def compare(answer: str, gold: str, *, kind: str = "auto") -> Comparison:
    r"""
    Compare an extracted answer with a readable gold under the policy in the package's docstring.

    Args:
        answer, gold (`str`):
            Answers as extracted, not yet cleaned.
        kind (`str`, *optional*, defaults to `"auto"`):
            `"auto"`, `"number"`, `"choice"` or `"text"`.

    Returns:
        [`Comparison`]

    Raises:
        TooLargeError, TimeLimitError, UnreadableError, ArithmeticError: see `symbolic`.

    Example:
    ```python
    >>> compare(r"\frac{1}{2}", "0.5")
    Comparison(is_equal=True, rule='number')
    >>> compare("512", "343, 512")
    Comparison(is_equal=False, rule='list')

    ```
    """
    if kind in ("auto", "number") and (numbers := plain_numbers(answer, gold)):
        return Comparison(numbers[0] == numbers[1], "string" if answer == gold else "number")
    letter = gold_choice(gold, any_letter=kind == "choice") if kind in ("auto", "choice") else None
    if letter is not None:
        return Comparison(chosen_letter(answer) == letter, "choice")
    if kind == "text" or _is_one_text(gold):
        return Comparison(as_text(answer) == as_text(gold), "text")
    return _compare_values(read_value(answer), read_value(gold), numbers_only=kind == "number")


def _compare_values(answer: Value, gold: Value, *, numbers_only: bool = False) -> Comparison:
    if max(len(answer.text), len(gold.text)) > MAX_LENGTH:
        raise TooLargeError(f"an answer of more than {MAX_LENGTH} characters")
    stripped = strip_names(answer, gold)
    if stripped is None:
        return Comparison(False, "equation")
    answer, gold = _with_letter_units(*stripped)
    if answer.unit and gold.unit and answer.unit != gold.unit:
        return Comparison(False, "unit")
    if _squeeze(answer.text) == _squeeze(gold.text) and answer.percent == gold.percent:
        return Comparison(not is_contradiction(gold.text), "string")
    if has_set_mark(answer.text) or has_set_mark(gold.text):
        sets = read_set(answer.text), read_set(gold.text)
        if sets[0] and sets[1]:
            return _compare_sets(*sets[0], *sets[1])
        if _CLOSED_INFINITY.search(answer.text):
            return Comparison(False, "interval")
    answer_items, gold_items = split_items(answer.text), split_items(gold.text)
    if answer_items and gold_items:
        return _compare_items(answer_items, gold_items, numbers_only)
    for items, other in ((answer_items, gold), (gold_items, answer)):
        if items and not items.brackets and len(items.values) == 1:
            # A set of one value is that value.
            pair = (read_value(items.values[0]), other)
            return _compare_values(*(pair if other is gold else pair[::-1]), numbers_only=numbers_only)
    answer_number, gold_number = _number(answer.text, gold.text), _number(gold.text, gold.text)
    if answer_number is not None and gold_number is not None:
        return _compare_numbers(answer, gold, answer_number, gold_number)
    if numbers_only:
        return Comparison(False, "number")
    times = clock_time(answer.text), clock_time(gold.text)
    if times[0] and times[1]:
        halves = {times[0][2], times[1][2]} - {""}
        return Comparison(times[0][:2] == times[1][:2] and len(halves) < 2, "time")
    return _compare_formulas(answer.text, gold.text, answer_items, gold_items)


def _compare_formulas(answer: str, gold: str, answer_items: Items | None, gold_items: Items | None) -> Comparison:
    answer_matrix, gold_matrix = read_matrix(answer), read_matrix(gold)
    if answer_matrix and gold_matrix:
        return Comparison(is_same_matrix(answer_matrix, gold_matrix, _is_equal), "matrix")
    for matrix, items in ((answer_matrix, gold_items), (gold_matrix, answer_items)):
        # A vector may be written as a tuple.
        if matrix and items and items.brackets == "()":
            vector = vector_of(matrix)
            return Comparison(vector is not None and _are_equal(vector, items.values), "matrix")
    has_sets = has_set_mark(answer), has_set_mark(gold)
    if (answer_items and not has_sets[1]) or (gold_items and not has_sets[0]):
        return Comparison(False, "list")
    if not (is_formula(answer) and is_formula(gold)):
        return Comparison(False, "string")
    if has_sets[0] != has_sets[1] and not (answer_items or gold_items):
        return Comparison(False, "interval")
    if sorted(_PRIMED.findall(answer)) != sorted(_PRIMED.findall(gold)):
        return Comparison(False, "string")
    if _LITERAL.match(gold) and _OPEN_OPERATOR.search(answer):
        return Comparison(False, "unevaluated")
    formulas = with_clear_fractions(answer), with_clear_fractions(gold)
    if any(_NOT_MIXED.search(formula) for formula in formulas):
        return Comparison(False, "string")
    if len(sides_of(answer)) > 1:
        return Comparison(is_same_equation(*formulas), "equation")
    decided = decide(*formulas)
    return Comparison(is_equal_formula(*rename_capitals(*formulas)) if decided is None else decided, "math")


def _compare_numbers(answer: Value, gold: Value, answer_number: Fraction, gold_number: Fraction) -> Comparison:
    is_written = _LITERAL.match(gold.text) is not None and len(gold.text) <= _MAX_WRITTEN_DIGITS
    if is_written and has_operation(answer.text) and not _is_power(answer.text):
        return Comparison(False, "unevaluated")
    if answer.percent == gold.percent:
        return Comparison(answer_number == gold_number, "number")
    # A per cent sign on exactly one side is a unit or a division by 100.
    with_sign, without = (answer_number, gold_number) if answer.percent else (gold_number, answer_number)
    return Comparison(without in (with_sign, with_sign / 100), "percent")


def _number(text: str, gold: str) -> Fraction | None:
    """Exact value; beside a gold with a base, the digits count where the base is the same or left out."""
    based, gold_based = _BASED.match(text), _BASED.match(gold)
    if gold_based and not (based and based["base"] != gold_based["base"]):
        return rational((based or gold_based)["digits"] if based else text)
    if based is None:
        return rational(text)
    try:
        return Fraction(int(based["digits"], int(based["base"])))
    except ValueError:
        return None


def _compare_sets(answer_name: str, answer: list, gold_name: str, gold: list) -> Comparison:
    if answer_name and gold_name and _squeeze(answer_name) != _squeeze(gold_name):
        return Comparison(False, "interval")
    return Comparison(is_same_set(answer, gold, _is_equal), "interval")


def _compare_items(answer: Items, gold: Items, numbers_only: bool) -> Comparison:
    if len(answer.values) != len(gold.values):
        return Comparison(False, "list")
    answer_values, gold_values = _values_of_names(answer), _values_of_names(gold)
    has_names = ["=" in value for items in (answer, gold) for value in items.values]
    if (
        (answer_values is None) != (gold_values is None)
        and not all(has_names)
        and "[" not in answer.brackets + gold.brackets
    ):
        # Different names on one side only: their order is all that tells the values of the other side apart.
        return Comparison(_are_equal(answer_values or answer.values, gold_values or gold.values), "list")
    if answer.brackets != gold.brackets:
        return Comparison(False, "list")
    if gold.brackets:
        return Comparison(_are_equal(answer.values, gold.values, numbers_only), "list")
    if len(gold.values) > _MAX_UNORDERED:
        raise TooLargeError(f"a list of more than {_MAX_UNORDERED} values")
    rest = list(gold.values)
    for value in answer.values:
        match = next((candidate for candidate in rest if _is_equal(value, candidate, numbers_only)), None)
        if match is None:
            return Comparison(False, "list")
        rest.remove(match)
    return Comparison(True, "list")


def _values_of_names(items: Items) -> list[str] | None:
    """Values of "x = 1, y = 2", or `None` when they have no names or the same (`x_1` and `x_2` are the same)."""
    pairs = [sides_of(value) for value in items.values]
    if not all(len(pair) == 2 and is_name(pair[0]) for pair in pairs):
        return None
    names = {pair[0].partition("_")[0] for pair in pairs}
    return [pair[1] for pair in pairs] if len(names) == len(pairs) > 1 else None


def _are_equal(answer: list[str], gold: list[str], numbers_only: bool = False) -> bool:
    """Whether the values are equal one by one, in order."""
    return len(answer) == len(gold) and all(_is_equal(*pair, numbers_only) for pair in zip(answer, gold, strict=True))


def _is_equal(answer: str, gold: str, numbers_only: bool = False) -> bool:
    if is_words(gold) or is_words(answer):
        return as_text(answer) == as_text(gold)
    return _compare_values(read_value(answer), read_value(gold), numbers_only=numbers_only).is_equal


def _is_one_text(gold: str) -> bool:
    return is_words(gold) and split_items(read_value(gold).text) is None


def _with_letter_units(answer: Value, gold: Value) -> tuple[Value, Value]:
    """Read "12 h" as hours beside "12 hours": a single letter is a unit only where the other side has that unit."""
    if not gold.unit and answer.unit:
        return answer, _with_letter_unit(gold, answer.unit)
    return (_with_letter_unit(answer, gold.unit), gold) if gold.unit and not answer.unit else (answer, gold)


def _with_letter_unit(value: Value, unit: str) -> Value:
    match = _LETTER_UNIT.match(value.text)
    if match is None or canonical_unit(match["unit"]) != unit:
        return value
    return Value(match["number"], unit, value.percent)


def _is_power(text: str) -> bool:
    """Whether a text is one number to a power, such as 2^{100}: a value that nobody writes out."""
    return re.fullmatch(r"-?\(?[\d./]+\)?\s*\^\s*(?:\{\s*-?\d+\s*\}|-?\d+)", text) is not None


def _squeeze(text: str) -> str:
    # A blank between two digits separates two numbers ("2 1/2", "3 4").
    return re.sub(r"(?<!\d)\s+|\s+(?!\d)", "", text)
