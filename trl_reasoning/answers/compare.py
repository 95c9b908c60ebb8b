"""Equality of two answers: exact and cheap first, formulas last."""

import re
from dataclasses import dataclass
from fractions import Fraction

from .extract import has_operation
from .normalize import Value, read_value
from .rational import MAX_LENGTH, TooLargeError, rational
from .symbolic import is_equal_formula


_CHOICE_GOLD = re.compile(r"\(?([A-Z])\)?\.?\Z")
_CHOICE = re.compile(r"\(?([A-Za-z])\)?(?:\s*[.):].*)?\Z", re.DOTALL)
_WORDS = re.compile(r"[^\W\d_]{2,}(?:['’ -]+[^\W\d_]+){0,5}\Z|[^\W\d_A-Za-z]+\Z")
_NAME = re.compile(
    r"(?P<name>\\?[A-Za-z]+(?:_\{?\w+\}?)?'*(?:\s*\([A-Za-z]\))?)\s*(?:=|\\in(?![A-Za-z]))\s*(?P<value>.+)\Z"
)
_CALCULATION = re.compile(r"[\d\s+\-*/().^{}]*(?:\\(?:times|cdot|div|frac)[\d\s+\-*/().^{}]*)*=(?P<value>[^=]+)\Z")
_SEPARATOR = re.compile(r"[,;]?\s*(?<![\\A-Za-z])(?:and|or)(?![A-Za-z])\s*|[,;、]")
_OPENING, _CLOSING = "([{", ")]}"
_LITERAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)\Z")
# Patterns with dots, clock times, ratios, and numbers side by side have no value to compute.
_ONLY_AS_TEXT = re.compile(r"\\[lcdv]?dots|\.\.\.|\d\s*:\s*\d|\d\s+\d")
LONG_WORD = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{4,}|__|[^\W\dA-Za-z_\u0370-\u03ff]")
_MAX_UNORDERED = 50


@dataclass(frozen=True)
class Comparison:
    """Whether two answers are equal, and the rule that decided."""

    is_equal: bool
    rule: str


@dataclass(frozen=True)
class Items:
    """An answer with several values: a tuple or interval (brackets count, ordered) or a set or bare list."""

    values: list[str]
    brackets: str = ""


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
    letter = gold_choice(gold) if kind in ("auto", "choice") else None
    if letter is not None:
        chosen = _CHOICE.match(read_value(answer).text)
        return Comparison(chosen is not None and chosen[1].upper() == letter, "choice")
    if kind == "text" or is_words(gold):
        return Comparison(_as_text(answer) == _as_text(gold), "text")
    return _compare_values(read_value(answer), read_value(gold), numbers_only=kind == "number")


def gold_choice(gold: str) -> str | None:
    """The letter of a multiple choice gold ("A", "(A)"), or `None`."""
    match = _CHOICE_GOLD.match(read_value(gold).text)
    return match[1] if match else None


def is_words(text: str) -> bool:
    """Whether an answer is a name or a few words, to be compared as text."""
    value = read_value(text)
    return value.unit is None and _WORDS.match(value.text) is not None


def is_formula(text: str) -> bool:
    """Whether a cleaned text may be given to the formula parser: no prose, dots, clock times or stray numbers."""
    return LONG_WORD.search(text) is None and _ONLY_AS_TEXT.search(text) is None


def split_items(text: str) -> Items | None:
    r"""
    Split a cleaned answer that holds several values.

    Example:
    ```python
    >>> split_items("(1, 7.5)")
    Items(values=['1', '7.5'], brackets='()')
    >>> split_items(r"\{3,1\}")
    Items(values=['3', '1'], brackets='')
    >>> split_items("5") is None
    True

    ```
    """
    if r"\pm" in text and text.count(r"\pm") == 1 and not _split_at_top(text)[1:]:
        return Items([text.replace(r"\pm", sign).lstrip("+ ") for sign in "+-"])
    if text.startswith(r"\{") and text.endswith(r"\}"):
        return Items(_split_at_top(text[2:-2]))
    if text[:1] in "([" and text[-1:] in ")]" and _closes_at(text) == len(text) - 1:
        values = _split_at_top(text[1:-1])
        return Items(values, text[0] + text[-1]) if len(values) > 1 else None
    values = _split_at_top(text)
    return Items(values) if len(values) > 1 else None


def _compare_values(answer: Value, gold: Value, *, numbers_only: bool = False) -> Comparison:
    if max(len(answer.text), len(gold.text)) > MAX_LENGTH:
        raise TooLargeError(f"an answer of more than {MAX_LENGTH} characters")
    has_same_name, answer, gold = _strip_names(answer, gold)
    if not has_same_name:
        return Comparison(False, "string")
    if answer.unit and gold.unit and answer.unit != gold.unit:
        return Comparison(False, "unit")
    answer_text, gold_text = answer.text, gold.text
    if _squeeze(answer_text) == _squeeze(gold_text) and answer.percent == gold.percent:
        return Comparison(True, "string")
    answer_items, gold_items = split_items(answer_text), split_items(gold_text)
    if answer_items and gold_items:
        return _compare_items(answer_items, gold_items, numbers_only)
    answer_number, gold_number = rational(answer_text), rational(gold_text)
    if answer_number is not None and gold_number is not None:
        if _LITERAL.match(gold_text) and has_operation(answer_text) and not _is_power(answer_text):
            return Comparison(False, "unevaluated")
        return _compare_numbers(answer_number, gold_number, answer.percent, gold.percent)
    if numbers_only:
        return Comparison(False, "number")
    if (answer_items and not answer_items.brackets) or (gold_items and not gold_items.brackets):
        return Comparison(False, "list")
    if not (is_formula(answer_text) and is_formula(gold_text)):
        return Comparison(False, "string")
    return Comparison(is_equal_formula(answer_text, gold_text), "math")


def _compare_numbers(answer: Fraction, gold: Fraction, answer_percent: bool, gold_percent: bool) -> Comparison:
    if answer_percent == gold_percent:
        return Comparison(answer == gold, "number")
    # A per cent sign on exactly one side is a unit or a division by 100.
    with_sign, without = (answer, gold) if answer_percent else (gold, answer)
    return Comparison(without in (with_sign, with_sign / 100), "percent")


def _compare_items(answer: Items, gold: Items, numbers_only: bool) -> Comparison:
    if answer.brackets != gold.brackets or len(answer.values) != len(gold.values):
        return Comparison(False, "list")
    if gold.brackets:
        return Comparison(
            all(_is_equal(*pair, numbers_only) for pair in zip(answer.values, gold.values, strict=True)), "list"
        )
    if len(gold.values) > _MAX_UNORDERED:
        raise TooLargeError(f"a list of more than {_MAX_UNORDERED} values")
    rest = list(gold.values)
    for value in answer.values:
        match = next((candidate for candidate in rest if _is_equal(value, candidate, numbers_only)), None)
        if match is None:
            return Comparison(False, "list")
        rest.remove(match)
    return Comparison(True, "list")


def _is_equal(answer: str, gold: str, numbers_only: bool) -> bool:
    if is_words(gold) or is_words(answer):
        return _as_text(answer) == _as_text(gold)
    return _compare_values(read_value(answer), read_value(gold), numbers_only=numbers_only).is_equal


def _strip_names(answer: Value, gold: Value) -> tuple[bool, Value, Value]:
    """Take "x =" off both sides. `False` first when both are named and the names differ."""
    calculation = _CALCULATION.match(answer.text)
    if calculation:
        # A calculation carried out: what counts is its result.
        answer = _inner(answer, calculation)
    answer_name, gold_name = _named(answer.text), _named(gold.text)
    if answer_name and gold_name:
        same = _squeeze(answer_name["name"]) == _squeeze(gold_name["name"])
        return same, _inner(answer, answer_name), _inner(gold, gold_name)
    # An equation that is not a definition keeps its other side's "y =".
    if answer_name and "=" not in gold.text:
        return True, _inner(answer, answer_name), gold
    if gold_name and "=" not in answer.text:
        return True, answer, _inner(gold, gold_name)
    return True, answer, gold


def _inner(value: Value, match: re.Match[str]) -> Value:
    """What follows the equals sign, with the unit that shows once the name is gone."""
    inner = read_value(match["value"])
    return Value(inner.text, value.unit or inner.unit, value.percent or inner.percent)


def _named(text: str) -> re.Match[str] | None:
    match = _NAME.match(text)
    return match if match and "=" not in match["value"] else None


def _split_at_top(text: str) -> list[str]:
    """Split at commas, semicolons, "and" and "or" outside all brackets."""
    parts, depth, start, position = [], 0, 0, 0
    while position < len(text):
        if text[position] in _OPENING:
            depth += 1
        elif text[position] in _CLOSING:
            depth -= 1
        elif depth == 0 and (separator := _SEPARATOR.match(text, position)):
            parts.append(text[start:position])
            position = start = separator.end()
            continue
        position += 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _closes_at(text: str) -> int:
    """Index of the bracket that closes the first character; brackets of intervals need not be of one kind."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character in _OPENING) - (character in _CLOSING)
        if depth == 0:
            return position
    return -1


def _is_power(text: str) -> bool:
    """Whether a text is one number to a power, such as 2^{100}: a value that nobody writes out."""
    return re.fullmatch(r"-?\(?[\d./]+\)?\s*\^\s*(?:\{\s*-?\d+\s*\}|-?\d+)", text) is not None


def _as_text(text: str) -> str:
    return " ".join(read_value(text).text.casefold().split())


def _squeeze(text: str) -> str:
    # A blank between two digits separates two numbers ("2 1/2", "3 4").
    return re.sub(r"(?<!\d)\s+|\s+(?!\d)", "", text)
