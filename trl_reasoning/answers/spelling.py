"""One spelling for the characters and commands with which models and data sets write the same formula."""

import re


_FRACTIONS = {"½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5)}
_FRACTIONS |= {"⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8)}
_CHARACTERS = str.maketrans(
    {
        **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full-width forms
        **dict.fromkeys("−‒–—﹣", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2009\u200a\u202f\u3000", " "),
        **{character: f" {above}/{below}" for character, (above, below) in _FRACTIONS.items()},
        "×": r"\times ",
        "·": r"\cdot ",
        "⋅": r"\cdot ",
        "÷": r"\div ",
        "⁄": "/",
        "π": r"\pi ",
        "∞": r"\infty ",
        "∅": r"\emptyset ",
        "∪": r"\cup ",
        "≤": r"\le ",
        "≥": r"\ge ",
        "≠": r"\ne ",
        "≈": r"\approx ",
        "±": r"\pm ",
        "√": r"\sqrt ",
        "°": r"^\circ ",
        "…": r"\ldots ",
        "Å": r"\AA ",
        "µ": "μ",
    }
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SUPERSCRIPT = re.compile(r"⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_SUBSCRIPT = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
# In plain text a root sign takes the whole number that follows; TeX would take its first digit.
_PLAIN_ROOT = re.compile(r"(?:√|(?<![\\A-Za-z])sqrt)\s*(\d+(?:\.\d+)?)")
_FUNCTIONS = "pi|sqrt|sin|cos|tan|cot|csc|arcsin|arccos|arctan|sinh|cosh|tanh|log|ln|exp|infty|emptyset"
_REWRITES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<!\\)(?:\$|\\[()\[\]])|`", ""),  # math delimiters, code marks
        (r"\\(?:left|right|[bB]igg?[lrm]?)(?![A-Za-z])\s*\.?", ""),
        (r"\\(?:displaystyle|textstyle|limits)(?![A-Za-z])", ""),
        (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (r"\\(?:le|ge)q(?:slant)?(?![A-Za-z])", lambda match: match.group()[:3]),
        (r"\\(lt|gt)(?![A-Za-z])", lambda match: "<" if match[1] == "lt" else ">"),
        (r"\\neq(?![A-Za-z])", r"\\ne"),
        (r"<=", r"\\le "),
        (r">=", r"\\ge "),
        (r"\\degree(?![A-Za-z])", r"^\\circ"),
        (r"\^\s*(?:\\circ(?![A-Za-z])|\{\s*\\circ\s*\})\s*(?:\\(?:text|mathrm)\s*\{\s*~?([CF])\s*\}|([CF])\b)",
         lambda match: rf"\mathrm{{deg{match[1] or match[2]}}}"),
        (r"\\(?:lbrace|rbrace)(?![A-Za-z])", lambda match: r"\{" if match.group()[1] == "l" else r"\}"),
        (r"\\[lr]angle(?![A-Za-z])", lambda match: "(" if match.group()[1] == "l" else ")"),
        (r"\\[lcdv]?dots(?:[cbmio](?![A-Za-z])|(?![A-Za-z]))|\.\.\.+", r"\\ldots "),
        (r"\\varnothing(?![A-Za-z])|\\\{\s*\\\}", r"\\emptyset "),
        (r"(?<=\d)(?:\{,\}|\\[,!;]\s*,?|,\\!)(?=\d{3})", ""),  # 10{,}080, 10\,080 and 10,\!080
        (r"(?<!\\)\\!", ""),
        (r"\A\s*[~∼](?=\s*[\d.])", r"\\sim "),
        (r"(?<!\\)\\[,;:> ]|\\q?quad(?![A-Za-z])|~", " "),
        (r"\\AA(?![A-Za-z])", r"\\mathrm{angstrom}"),
        (r"\\mu\s*\\(mathrm|text)\s*\{\s*", r"\\\1{μ"),
        (r"(?<=\d)\s+\{\s*([A-Za-z]+)\s*\}", r" \\mathrm{\1}"),  # 1.3 {eV}
        (r"\\(mathrm|text)\s*\{([^{}]*)\}\s*/\s*\\(?:mathrm|text)\s*\{", r"\\\1{\2/"),  # m over s, each wrapped
        (r"(?<![\\A-Za-z])(?:np|math)\.(?=[a-z])", ""),
        (rf"(?<![\\A-Za-z])({_FUNCTIONS})(?![A-Za-z])", r"\\\1"),
        (r"(?<=[\w)\]}])\*\*(?=[\w(\\{-])", "^"),
        (r"\\log_(\d)(?!\d)", r"\\log_{\1}"),
        (r"(\\(?:sin|cos|tan|cot|sec|csc|log|ln)\^)(\d)\s+(?=\d)", r"\1{\2} "),  # \ln^2 3
        (r"\\pmod\s*(\w)(?!\w)", r"\\pmod{\1}"),
        (r"\^\s*\{?\s*((?:\\prime\s*)+)\}?", lambda match: "'" * match[1].count("p")),
        # A word or command as an index is a part of the name: m_{\max}, L_\odot.
        (r"(?<!log)(?<!lim)(?<!sum)(?<!int)(?<!prod)_\{?\s*\\(max|min|odot|oplus|infty|perp|parallel)(?![A-Za-z])\s*\}?",
         r"_{\1}"),
    )
)  # fmt: skip
_THOUSANDS = re.compile(r"(?<![\d,.])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
_MAX_NESTED_ROOTS = 3
_ROOT = re.compile(r"\\sqrt\s*\((?P<radicand>[^()]*(?:\([^()]*\)[^()]*)*)\)")
_ANGLE_FUNCTION = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![A-Za-z])")
_DEGREES = re.compile(r"(\d+(?:\.\d+)?)\s*\^\s*(?:\\circ(?![A-Za-z])|\{\s*\\circ\s*\})")


def respell(text: str) -> str:
    r"""
    Write an answer with one spelling of each character and command; math marks, spacing and thousands marks go.

    Example:
    ```python
    >>> respell(r"$\left[0,\,1{,}080\right) \leqslant x^{2}$.")
    '[0, 1080) \\le x^{2}'
    >>> respell("2½ ≥ 10²"), respell(r"\sin 30^\circ")
    ('2 1/2 \\ge 10^{2}', '\\sin (\\frac{30\\pi}{180})')

    ```
    """
    text = _SUPERSCRIPT.sub(lambda match: f"^{{{match.group().translate(_SUPERSCRIPTS)}}}", text)
    text = _SUBSCRIPT.sub(lambda match: f"_{{{match.group().translate(_SUBSCRIPTS)}}}", text)
    text = _PLAIN_ROOT.sub(r"\\sqrt{\1}", text)
    text = re.sub(r"\s+", " ", text.translate(_CHARACTERS))
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    if not any(bracket in text for bracket in ("(", "[", r"\{")):
        text = _THOUSANDS.sub(lambda match: match.group().replace(",", ""), text)
    for _ in range(_MAX_NESTED_ROOTS):
        text = _ROOT.sub(r"\\sqrt{\g<radicand>}", text)
    if _ANGLE_FUNCTION.search(text):
        text = _DEGREES.sub(r"(\\frac{\1\\pi}{180})", text)
    text = text.strip(" *")
    return text.rstrip(" .,;:*").removesuffix("\\")
