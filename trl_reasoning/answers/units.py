"""Units of measure at the end of an answer: which words they are, and when two spellings are the same unit."""

import re


_SPELLINGS = {
    "mm": "millimeter millimetre",
    "cm": "centimeter centimetre",
    "m": "meter metre",
    "km": "kilometer kilometre",
    "in": "inch inches",
    "ft": "foot feet",
    "yd": "yard",
    "mi": "mile",
    "s": "sec second",
    "min": "minute",
    "h": "hr hour",
    "day": "",
    "week": "",
    "month": "",
    "year": "yr",
    "mg": "milligram",
    "g": "gram",
    "kg": "kilogram",
    "lb": "pound",
    "oz": "ounce",
    "ml": "milliliter millilitre",
    "l": "liter litre",
    "gallon": "",
    "dollar": "usd buck",
    "cent": "",
    "euro": "eur",
    "yen": "",
    "degree": "deg",
    "degc": "celsius",
    "degf": "fahrenheit",
    "angstrom": "",
    "nm": "nanometer nanometre",
    "μm": "um micron micrometer micrometre",
    "dm": "decimeter decimetre",
    "t": "ton tonne",
    "yuan": "rmb cny",
    "ev": "",
    "kj": "kilojoule",
    "J": "joule",
    "N": "newton",
    "W": "watt",
    "V": "volt",
    "hz": "hertz",
    "kelvin": "",
    "rad": "radian",
    "mph": "",
    "km/h": "kmh kph",
    "m/s": "",
    "%": "percent pct",
    "unit": "",
}
_CANONICAL = {spelling: unit for unit, names in _SPELLINGS.items() for spelling in (unit, *names.split())}

# Words after a number that change its value, join another number or negate it: never a unit.
_NOT_UNIT_WORDS = """
    hundred thousand million billion trillion dozen half halves third thirds quarter quarters fourth fourths
    squared cubed factorial and or to by of times plus minus over divided less more fewer than not no if else
    ten lakh crore gross score bn mil tenth hundredth thousandth fifth sixth seventh eighth ninth
    doubled tripled twice thrice below above under short modulo wrong incorrect
    least most max maximum min minimum up down maybe probably possibly either neither both remainder rest
    pi sqrt root sin cos tan log ln exp mod choose point negative approximately about around is are was equals
"""
_NOT_UNITS = frozenset(_NOT_UNIT_WORDS.split())
_NOT_UNITS_HAN = frozenset("十百千万亿半多几分点比或和又负余约许")
_HAN = {
    **{"毫米": "mm", "厘米": "cm", "公分": "cm", "分米": "dm", "米": "m", "千米": "km", "公里": "km"},
    **{"克": "g", "千克": "kg", "公斤": "kg", "吨": "t", "毫升": "ml", "升": "l", "度": "degree", "块钱": "yuan"},
    **{"元": "yuan", "元钱": "yuan", "块": "yuan", "秒": "s", "分钟": "min", "小时": "h", "天": "day", "日": "day"},
    **{"周": "week", "月": "month", "个月": "month", "年": "year"},
}

_PLAIN = "|".join(sorted((re.escape(word) for word in _CANONICAL if len(word) > 1), key=len, reverse=True))
_EXPONENT = r"(?:\s*\^\s*\{?-?\d\}?)?"
_DENOMINATOR = rf"(?:\s*/\s*(?:{_PLAIN}|[hsm])s?{_EXPONENT})?"
_PLAIN_UNIT = rf"(?:sq(?:uare|\.)?\s+|cubic\s+)?(?:{_PLAIN})s?\.?{_EXPONENT}{_DENOMINATOR}"
# A unit that stands in plain text: after a digit or a space, never inside a command name.
PLAIN_UNIT_AT_END = re.compile(rf"(?<=[\d\s}})])\s*(?<![\\A-Za-z])(?P<unit>{_PLAIN_UNIT})\Z", re.IGNORECASE)
WORDS_AT_END = re.compile(r"(?<=[\d}])(?:\s+[A-Za-z]{2,}(?:\s+[A-Za-z]{2,}){0,3}|\s*[\u4e00-\u9fff]{1,4})\Z")
_UNIT_TEXT = re.compile(r"[A-Za-zμ][A-Za-z\s./^{}\d()-]*\Z|[\u4e00-\u9fff]+\Z")


def is_unit_text(text: str) -> bool:
    """Whether words that follow a number can be its unit: letters, without a word that changes the number."""
    words = re.findall(r"[a-z]+", text.lower())
    if _NOT_UNITS.intersection([*words, *(word.removesuffix("s") for word in words)]):
        return False
    if text.strip() in ("K", "M", "B"):  # 18K is 18 thousand, not 18 kelvin
        return False
    if _NOT_UNITS_HAN.intersection(text) and _han_unit(text) is None:
        return False
    return _UNIT_TEXT.match(text.strip()) is not None


def is_known_unit(text: str) -> bool:
    """Whether every word of the text is a unit of the table."""
    words = re.findall(r"[A-Za-zμ]+", canonical_unit(text))
    return bool(words) and all(word in _SPELLINGS for word in words)


def canonical_unit(text: str) -> str:
    """
    Give one spelling for the same unit.

    Example:
    ```python
    >>> canonical_unit("centimeters"), canonical_unit("square feet"), canonical_unit("eggs")
    ('cm', 'ft^2', 'egg')

    ```
    """
    han = _han_unit(text)
    if han:
        return han
    words = re.sub(r"[{}.]", "", text).strip()
    power = re.match(r"(?:(sq(?:uare)?)|cubic)\s+(.*)", words, re.IGNORECASE)
    if power:
        words = f"{power[2]}^{2 if power[1] else 3}"
    return re.sub(r"[A-Za-zμ]+", lambda match: _canonical_word(match.group()), re.sub(r"\s+", " ", words))


def _canonical_word(word: str) -> str:
    # A single letter keeps its case: m is a meter, M is not.
    lower = word.lower() if len(word) > 1 else word
    singular = lower.removesuffix("s") if len(lower) > 2 else lower
    return _CANONICAL.get(lower, _CANONICAL.get(singular, singular))


def _han_unit(text: str) -> str | None:
    """The unit that a Chinese word names: 平方厘米 is cm^2."""
    word, power = text.strip(), ""
    for prefix, exponent in (("平方", "^2"), ("立方", "^3")):
        if word.startswith(prefix):
            word, power = word.removeprefix(prefix), exponent
    return _HAN[word] + power if word in _HAN else None
