"""Answers with equals signs: what a name or a calculation stands for, and when two equations say the same."""

import re
from fractions import Fraction

from .extract import has_operation
from .formula_text import rename_capitals
from .items import split_at_top
from .normalize import Value, read_value
from .numeric import decide
from .rational import TooLargeError, rational
from .symbolic import is_equal_formula


_NAME = re.compile(
    r"(?:\\?[A-Za-z]+(?:_\{?\w+\}?)?'*(?:\s*\([A-Za-z](?:,\s*[A-Za-z])*\))?|\([A-Za-z](?:,\s*[A-Za-z])*\))\Z"
)
_EQUALS = re.compile(r"\s*(?<![<>!=\\])=(?!=)\s*")
_IN = re.compile(r"(?P<name>\S+)\s*\\in(?![A-Za-z])\s*(?P<value>.+)\Z")
_APPROXIMATELY = re.compile(r"(?<=\S)\s*\\(?:approx|simeq|sim)(?![A-Za-z]).*\Z")
# What has a value of its own: f(2), |AB|, m\angle ABC.
_MEASURED = re.compile(r"(?:[A-Za-z]\s*\(-?\d+\)|\|[A-Z]{2}\||m?\s*\\angle\s*[A-Z]{1,3})\Z")
_OPEN_END = re.compile(r"\A\s*=|=\s*\Z")
# Commands are matched so that their letters are not.
_LETTER = re.compile(r"\\[A-Za-z]+|[A-Za-z]")
_PRIMES = (101, 67, 37, 89, 53, 23)
_RELATION = re.compile(r"[<>]|\\(?:le|ge|ne)(?![A-Za-z])")


def sides_of(text: str) -> list[str]:
    """The sides of an equation or of a chain of them; the whole text as the only one where there is none."""
    return split_at_top(text, _EQUALS) if "=" in text else [text]


def is_name(text: str) -> bool:
    """Whether a text is a letter or word with an index or argument, such as `x`, `m_{max}`, `f(x)` or `(x, y)`."""
    return _NAME.match(text) is not None


def strip_names(answer: Value, gold: Value) -> tuple[Value, Value] | None:
    """
    Take off what stands before the value: "x =", "x in", a calculation, and a rounded value after "about equal".

    Args:
        answer, gold (`Value`):
            Cleaned answers.

    Returns:
        `tuple[Value, Value]` or `None`: both sides; equations that are no definitions stay whole. `None` when they
        cannot be equal: one name for two numbers ("5 = 6"), or one is an equation and the other a plain value.
    """
    answer, gold = _without_rounding(answer), _without_rounding(gold)
    if "=" not in answer.text and "=" not in gold.text and r"\in" not in answer.text + gold.text:
        return answer, gold
    if r"\in" in answer.text + gold.text and _RELATION.search(answer.text + gold.text):
        # Sets of numbers: they know the names themselves.
        return answer, gold
    (answer_name, answer_value), (gold_name, gold_value) = _definition(answer), _definition(gold)
    if answer_value is None or gold_value is None:
        return None
    if answer_name and gold_name and _squeeze(answer_name) != _squeeze(gold_name):
        # 2y = x and y = x/2 are one equation; x = 5 and y = 5 are not, nor are f(2) = 5 and f(3) = 5.
        return None if _MEASURED.match(answer_name) and _MEASURED.match(gold_name) else (answer, gold)
    for name, other in ((answer_name, gold_value.text), (gold_name, answer_value.text)):
        if name.startswith("(") and _is_list(other) and _squeeze(name) != _names_of(other):
            return None
    is_equation = [len(sides_of(value.text)) > 1 and not _is_list(value.text) for value in (answer_value, gold_value)]
    if is_equation[0] and is_equation[1]:
        return answer_value, gold_value
    if is_equation[0] or is_equation[1]:
        # y = 2x+1 and 2x-y+1 = 0: the definition is an equation here.
        return (answer, gold) if (answer_name or gold_name) and "=" in answer.text and "=" in gold.text else None
    one_is_relation = bool(_RELATION.search(answer_value.text)) != bool(_RELATION.search(gold_value.text))
    return None if one_is_relation and r"\in" not in answer.text + gold.text else (answer_value, gold_value)


def is_contradiction(text: str) -> bool:
    """Whether a chain says that two different numbers are equal; calculations may have rounded results."""
    plain = [side for side in sides_of(text) if not (has_operation(side) or "/" in side)]
    return len({number for side in plain if (number := rational(read_value(side).text)) is not None}) > 1


def is_same_equation(answer: str, gold: str) -> bool:
    """
    Whether two equations are equal up to a constant factor.

    Args:
        answer, gold (`str`):
            Cleaned equations.

    Returns:
        `bool`

    Raises:
        TooLargeError, TimeLimitError, UnreadableError, ArithmeticError: see `symbolic`.

    Example:
    ```python
    >>> is_same_equation("4x+2y=6", "2x=3-y"), is_same_equation("0=0", "2x=3-y")
    (True, False)

    ```
    """
    equations = sides_of(answer), sides_of(gold)
    if any(len(sides) != 2 or _squeeze(sides[0]) == _squeeze(sides[1]) for sides in equations):
        return False
    if _letters_of(answer) != _letters_of(gold):
        return False
    first, second = (f"({left})-({right})" for left, right in equations)
    ratio = _ratio_of(first, second)
    for factor in (1, -1) if ratio is None else (ratio,):
        is_equal = decide(first, f"({factor})({second})")
        # A ratio that depends on the letters is no factor.
        if is_equal or (is_equal is False and ratio is not None):
            return is_equal
    return is_equal_formula(*rename_capitals(answer, gold))


def _definition(value: Value) -> tuple[str, Value | None]:
    """Name and value of "x = 5", "5 = x", "x = 3+4 = 7" and "3+4 = 7"; the equation itself when it defines nothing."""
    member = _IN.match(value.text)
    if member and is_name(member["name"]):
        return member["name"], _inner(value, member["value"])
    sides = sides_of(value.text)
    if len(sides) < 2 or _is_list(value.text):
        return "", None if _OPEN_END.search(value.text) else value
    if is_contradiction(value.text):
        return "", None
    name = ""
    if is_name(sides[0]) or _MEASURED.match(sides[0]):
        name, *sides = sides
    elif is_name(sides[-1]) and len(sides) == 2 and rational(read_value(sides[0]).text) is not None:
        sides, name = sides[:-1], sides[-1]
    if len(sides) == 1 or all(_has_no_letters(side) for side in sides):
        is_calculation = len(sides) == 1 or any(has_operation(side) or "/" in side for side in sides[:-1])
        return (name, _inner(value, sides[-1])) if is_calculation or name else ("", None)
    return "", value


def _letters_of(text: str) -> set[str]:
    return {letter for letter in _LETTER.findall(text) if len(letter) == 1}


def _ratio_of(first: str, second: str) -> Fraction | None:
    """The first expression over the second at one point, or `None` when their values there are not rational."""
    letters = sorted(_letters_of(first) | _letters_of(second))
    numbers = {letter: f"({prime})" for letter, prime in zip(letters, _PRIMES, strict=False)}
    values = []
    for text in (first, second):
        try:
            values.append(rational(_LETTER.sub(lambda match: numbers.get(match.group(), match.group()), text)))
        except TooLargeError:
            return None
    return values[0] / values[1] if values[0] and values[1] else None


def _inner(value: Value, text: str) -> Value:
    """What follows the equals sign, with the unit that shows once the name is gone."""
    inner = read_value(text)
    return Value(inner.text, value.unit or inner.unit, value.percent or inner.percent)


def _without_rounding(value: Value) -> Value:
    text = _APPROXIMATELY.sub("", value.text)
    return value if text == value.text else _inner(value, text)


def _is_list(text: str) -> bool:
    """Whether a text is a list of definitions, "x = 1, y = 2"; "x = 1, 2" is not."""
    parts = split_at_top(text)
    return len(parts) > 1 and all("=" in part for part in parts)


def _names_of(text: str) -> str:
    """The names of a list of definitions as a tuple of them is written: "(x,y)" for "x = 1, y = 2"."""
    return f"({','.join(_squeeze(sides_of(part)[0]) for part in split_at_top(text))})"


def _has_no_letters(text: str) -> bool:
    return re.search(r"[A-Za-z]", re.sub(r"\\[A-Za-z]+", "", text)) is None


def _squeeze(text: str) -> str:
    return re.sub(r"[\s{}]", "", text)
