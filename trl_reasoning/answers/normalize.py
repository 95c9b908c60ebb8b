"""One spelling for the ways in which models and data sets write the same answer."""

import re
from dataclasses import dataclass

from .rational import rational
from .units import PLAIN_UNIT_AT_END, WORDS_AT_END, canonical_unit, is_known_unit, is_unit_text


_CHARACTERS = str.maketrans(
    {
        **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full-width forms
        **dict.fromkeys("−‒–—﹣", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2009\u200a\u202f\u3000", " "),
        "×": r"\times ",
        "·": r"\cdot ",
        "⋅": r"\cdot ",
        "÷": r"\div ",
        "π": r"\pi ",
        "∞": r"\infty ",
        "≤": r"\le ",
        "≥": r"\ge ",
        "≠": r"\ne ",
        "±": r"\pm ",
        "√": r"\sqrt ",
        "°": r"^\circ ",
        "…": r"\ldots ",
    }
)
_REWRITES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<!\\)\$|\\[()\[\]]|`", ""),  # math delimiters, code marks
        (r"\\(?:left|right|[bB]igg?[lrm]?)(?![A-Za-z])\s*\.?", ""),
        (r"\\(?:displaystyle|textstyle|limits)(?![A-Za-z])", ""),
        (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (r"\\(?:le|ge)q(?:slant)?(?![A-Za-z])", lambda match: match.group()[:3]),
        (r"\\degree(?![A-Za-z])", r"^\\circ"),
        (r"\\(?:lbrace|rbrace)(?![A-Za-z])", lambda match: r"\{" if match.group()[1] == "l" else r"\}"),
        (r"(?<=\d)(?:\{,\}|\\[,!;]\s*,?|,\\!)(?=\d{3})", ""),  # 10{,}080, 10\,080 and 10,\!080
        (r"(?<!\\)\\!", ""),
        (r"(?<!\\)\\[,;:> ]|\\q?quad(?![A-Za-z])|~", " "),
        (r"\\(mathrm|text)\s*\{([^{}]*)\}\s*/\s*\\(?:mathrm|text)\s*\{", r"\\\1{\2/"),  # m over s, each wrapped
        (r"(?<![\\A-Za-z])(pi|sqrt|sin|cos|tan|log|ln|exp|infty)(?![A-Za-z])", r"\\\1"),
    )
)
_STYLE = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|math(?:rm|bf|it|sf|tt|normal)|boldsymbol|bm|mbox|boxed|fbox)\s*(?=\{)"
)
_WRAPPED_UNIT = re.compile(
    r"\s*(?:\\(?:text(?:rm)?|mathrm|mbox)\s*\{(?P<unit>[^{}]*)\}|\^\s*\{?\s*\\circ\s*\}?)"
    r"(?P<exponent>\s*\^\s*\{?\s*-?\d\s*\}?)?\s*\Z"
)
_THOUSANDS = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?![\d,])")
_PERCENT = re.compile(r"\s*(?:\\?%|(?<![A-Za-z\\])(?:percent|per cent|pct)\.?)\s*\Z", re.IGNORECASE)
_CURRENCY = re.compile(r"(?P<sign>[+-]?)\s*(?P<symbol>\\\$|[€£¥])\s*(?=[\d.])")
_CURRENCY_UNITS = {"\\$": "dollar", "€": "euro", "£": "gbp", "¥": "yen"}
_ROOT = re.compile(r"\\sqrt\s*\((?P<radicand>[^()]*)\)")


@dataclass(frozen=True)
class Value:
    """A cleaned answer: its text without unit and per cent sign, the unit's canonical name, and whether it had a %."""

    text: str
    unit: str | None = None
    percent: bool = False


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
    text, units = _rewrite(text), []
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


def clean(text: str) -> str:
    r"""
    Clean an answer without looking for a unit.

    Example:
    ```python
    >>> clean(r"$\left(1,\,\dfrac{3}{4}\right)$.")
    '(1, \\frac{3}{4})'

    ```
    """
    return strip_braces(_unstyle(_rewrite(text)))


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


def _rewrite(text: str) -> str:
    text = re.sub(r"\s+", " ", text.translate(_CHARACTERS))
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    if not any(bracket in text for bracket in ("(", "[", r"\{")):
        text = _THOUSANDS.sub(lambda match: match.group().replace(",", ""), text)
    text = _ROOT.sub(r"\\sqrt{\g<radicand>}", text)
    text = text.strip(" *")
    return text if text.endswith("...") else text.rstrip(" .,;:*").removesuffix("\\")


def _unstyle(text: str) -> str:
    """Replace style commands by their content."""
    position = 0
    while match := _STYLE.search(text, position):
        end = braced_end(text, match.end())
        if end is None:
            position = match.end()
            continue
        content = text[match.end() + 1 : end - 1].strip()
        text = f"{text[: match.start()]} {content} {text[end:]}"
        position = match.start()
    return re.sub(r"\s+", " ", text).strip()
