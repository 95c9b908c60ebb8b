"""One spelling for the ways in which models and data sets write the same answer."""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from .rational import rational
from .spelling import respell
from .units import PLAIN_UNIT_AT_END, WORDS_AT_END, canonical_unit, is_known_unit, is_unit_text


_STYLE = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|math(?:rm|bf|it|sf|tt|normal)|boldsymbol|bm|mbox|boxed|fbox)\s*(?=\{)"
)
_WRAPPED_UNIT = re.compile(
    r"\s*(?:\\(?:text(?:rm)?|mathrm|mbox)\s*\{(?P<unit>[^{}]*)\}|\^\s*\{?\s*\\circ\s*\}?)"
    r"(?P<exponent>\s*\^\s*\{?\s*-?\d\s*\}?)?\s*\Z"
)
_PERCENT = re.compile(r"\s*(?:\\?%|(?<![A-Za-z\\])(?:percent|per cent|pct)\.?)\s*\Z", re.IGNORECASE)
_CURRENCY = re.compile(r"(?P<sign>[+-]?)\s*(?P<symbol>\\\$|[€£¥])\s*(?=[\d.])")
# Pounds are one word for money and for weight; ¥ is a yen or a yuan.
_CURRENCY_UNITS = {"\\$": "dollar", "€": "euro", "£": "pound", "¥": ""}


# Most answers; nothing is to be cleaned.
PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?\Z")


@dataclass(frozen=True)
class Value:
    """A cleaned answer: its text without unit and per cent sign, the unit's canonical name, and whether it had a %."""

    text: str
    unit: str | None = None
    percent: bool = False


@lru_cache(maxsize=256)
def read_value(text: str) -> Value:
    r"""
    Clean an answer and split off a per cent sign, a currency symbol or a unit.

    Example:
    ```python
    >>> read_value(r"$12\text{ centimeters}$")
    Value(text='12', unit='cm', percent=False)
    >>> read_value(r"35\%")
    Value(text='35', unit=None, percent=True)

    ```
    """
    if PLAIN_NUMBER.match(text):
        return Value(text)
    text, units = _without_outer_style(respell(text)), []
    while (wrapped := _WRAPPED_UNIT.search(text)) and _is_measured(text[: wrapped.start()], wrapped["unit"]):
        units.insert(0, (wrapped["unit"] or "degree") + (wrapped["exponent"] or ""))
        text = text[: wrapped.start()].strip()
    text = _unstyle(text)
    percent = _PERCENT.search(text)
    if percent:
        return Value(text=strip_braces(text[: percent.start()]), percent=True)
    currency = _CURRENCY.match(text)
    if currency:
        text = currency["sign"] + text[currency.end() :]
        units.append(_CURRENCY_UNITS[currency["symbol"]])
    plain = PLAIN_UNIT_AT_END.search(text)
    words = WORDS_AT_END.search(text)
    if words and is_unit_text(words.group()) and rational(text[: words.start()]) is not None:
        text = text[: words.start()]
        units.append(words.group())
    elif plain and text[: plain.start()].strip():
        text = text[: plain.start()]
        units.append(plain["unit"])
    unit = canonical_unit(" ".join(units)) or None
    if unit == "%":
        return Value(text=strip_braces(text), percent=True)
    return Value(text=strip_braces(text), unit=unit)


def plain_numbers(one: str, two: str) -> tuple[Fraction | int, Fraction | int] | None:
    """Both values when both are written as plain integers or decimals: most comparisons end here."""
    if not (PLAIN_NUMBER.match(one) and PLAIN_NUMBER.match(two)):
        return None
    return (Fraction(one), Fraction(two)) if "." in one or "." in two else (int(one), int(two))


def clean(text: str) -> str:
    r"""
    Clean an answer without looking for a unit.

    Example:
    ```python
    >>> clean(r"$\left(1,\,\dfrac{3}{4}\right)$.")
    '(1, \\frac{3}{4})'

    ```
    """
    return text if PLAIN_NUMBER.match(text) else strip_braces(_unstyle(respell(text)))


def braced_end(text: str, start: int) -> int | None:
    """Index after the brace that closes the one at `start`, or `None` when it never closes."""
    depth = 0
    position = start
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 1  # an escaped brace is no group
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    return None


def strip_braces(text: str) -> str:
    """Take off all groups that enclose the whole text; linear in its length."""
    text = text.strip()
    opening = len(text) - len(text.lstrip("{"))
    closing = len(text) - len(text.rstrip("}"))
    if text.endswith(r"\}"):
        return text
    layers = min(opening, closing)
    depth = lowest = 0
    for character in text[layers : len(text) - layers]:
        depth += (character == "{") - (character == "}")
        lowest = min(lowest, depth)
    # Where the inside closes a group that the front opened, that layer does not enclose the text.
    layers = max(0, layers + lowest)
    return text[layers : len(text) - layers].strip()


def _is_measured(value: str, unit: str | None) -> bool:
    """Whether what stands before a wrapped word (or, with `None`, a degree mark) can carry it as a unit."""
    if not value.strip():
        return False
    if unit is not None and is_known_unit(unit):
        return True
    return (unit is None or is_unit_text(unit)) and rational(_unstyle(value)) is not None


def _without_outer_style(text: str) -> str:
    """Take off style commands around the whole text, so that a unit at its end is seen."""
    if not _STYLE.match(text):
        return text
    partners = _partners(text)
    start, end = 0, len(text)
    while (match := _STYLE.match(text, start)) and partners.get(match.end()) == end - 1:
        start, end = match.end() + 1, end - 1
        while start < end and text[start] == " ":
            start += 1
        while start < end and text[end - 1] == " ":
            end -= 1
    return text[start:end]


def _unstyle(text: str) -> str:
    """Replace style commands by their content; linear in the length of the text."""
    commands = list(_STYLE.finditer(text))
    if not commands:
        return re.sub(r"\s+", " ", text).strip()
    partners = _partners(text)
    characters = list(text)
    for command in commands:
        end = partners.get(command.end())
        if end is not None:
            characters[command.start() : command.end() + 1] = " " * (command.end() + 1 - command.start())
            characters[end] = " "
    return re.sub(r"\s+", " ", "".join(characters)).strip()


def _partners(text: str) -> dict[int, int]:
    """The place of the closing brace of each opening one."""
    partners, opened = {}, []
    for brace in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        if brace.group() == "{":
            opened.append(brace.start())
        elif brace.group() == "}" and opened:
            partners[opened.pop()] = brace.start()
    return partners
