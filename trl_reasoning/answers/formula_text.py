"""What is done to the text of two formulas before a computer algebra system reads them."""

import re


# Lower-case names that its grammar reads as plain letters.
_FREE_NAMES = (
    r"\kappa",
    r"\lambda",
    r"\mu",
    r"\nu",
    r"\rho",
    r"\sigma",
    r"\tau",
    r"\phi",
    r"\chi",
    r"\psi",
    r"\omega",
)
_MIXED = re.compile(r"(?<![\d.^_}/])(\d+)\s*\\frac\s*(?:\{(\d+)\}\s*\{(\d+)\}|(\d)(\d)(?!\d))")
# A fraction of two numbers before a letter, command or bracket: "-1/3x" is a third of x.
_SLASH = re.compile(r"(?<![\w.,)\]}^!/\\])(\d+)/(\d+)(?=\s*[A-Za-z(\\])")
_CUBE_ROOT = re.compile(r"\\sqrt\s*\[\s*(\d*[13579])\s*\]\s*\{\s*-\s*([^{}+-]*)\}")
_CAPITAL = re.compile(r"\\[A-Z][a-z]+(?![A-Za-z])|(?<![\\A-Za-z])[A-Z](?![A-Za-z])|E(?=_)")
_SKIPPED = re.compile(r"\\(?:mathbb|mathcal|text|mathrm|operatorname|begin|end)\s*\{[^{}]*\}|\\[a-z]+|_\{\w{2,}\}")


def with_clear_fractions(text: str) -> str:
    r"""
    Write mixed numbers as sums, as they are read everywhere else, and the fraction that stands before a letter as one.
    An odd root of a negative number is real: its sign goes before the root.

    Example:
    ```python
    >>> with_clear_fractions(r"3\frac{1}{2}x"), with_clear_fractions("-1/3x+5/6")
    ('(3+\\frac{1}{2})x', '-\\frac{1}{3}x+5/6')
    >>> with_clear_fractions(r"\sqrt[3]{-8}")
    '(-\\sqrt[3]{8})'

    ```
    """

    def as_sum(match: re.Match[str]) -> str:
        above, below = match[2] or match[4], match[3] or match[5]
        is_mixed = 0 < int(above) < int(below)
        return rf"({match[1]}+\frac{{{above}}}{{{below}}})" if is_mixed else match.group()

    text = _CUBE_ROOT.sub(r"(-\\sqrt[\1]{\2})", text)
    return _MIXED.sub(as_sum, _SLASH.sub(r"\\frac{\1}{\2}", text))


def rename_capitals(answer: str, gold: str) -> tuple[str, str]:
    r"""
    Give capital letters names of their own, the same in both formulas: the grammar of `math-verify` reads `X` as `x`,
    and cannot read `E_1`.

    Example:
    ```python
    >>> rename_capitals("X+x", r"x+X+\lambda")
    ('\\kappa +x', 'x+\\kappa +\\lambda')

    ```
    """
    capitals = {letter for text in (answer, gold) for letter in _CAPITAL.findall(_SKIPPED.sub(" ", text))}
    free = [name for name in _FREE_NAMES if name not in answer and name not in gold]
    names = dict(zip(sorted(capitals), free, strict=False))
    return _renamed(answer, names), _renamed(gold, names)


def _renamed(text: str, names: dict[str, str]) -> str:
    parts, position = [], 0
    for kept in _SKIPPED.finditer(text):
        parts += [_rename_in(text[position : kept.start()], names), kept.group()]
        position = kept.end()
    return "".join([*parts, _rename_in(text[position:], names)])


def _rename_in(text: str, names: dict[str, str]) -> str:
    def name_of(match: re.Match[str]) -> str:
        name = names.get(match.group())
        if name is None:
            return match.group()
        follows = text[match.end() : match.end() + 1]
        return name if follows in ("_", "^", "") else f"{name} "

    return _CAPITAL.sub(name_of, text)
