"""The words of a text by script, without code, formulas, tags and numbers."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby


# Code, LaTeX, links and tags. Bounded and possessive, so that no text makes a search quadratic.
_NO_PROSE = re.compile(
    r"""
      (?P<fence>```|~~~).*?(?:(?P=fence)|\Z)
    | `[^`\n]{1,2000}`
    | \$\$.{0,1000}?\$\$
    | \\\[.{0,1000}?\\\]
    | \\\(.{0,1000}?\\\)
    | \\begin\{(?P<environment>[A-Za-z]+\*?)\}.{0,1000}?\\end\{(?P=environment)\}
    | \$(?![\s$])[^$\n]{0,1000}?(?<![\s\\])\$(?!\d)
    | \\[A-Za-z]++\*?(?:\[[^\]\n]{0,100}+\])?(?:\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*+\})*+\})*+\})*+
    | https?://\S++
    | </?[A-Za-z|｜][^<>\n]{0,80}+>
    """,
    re.VERBOSE | re.DOTALL,
)
_SENTENCE_END = re.compile(r"[.!?]+\s+|[\n。！？।؟]+")
# A combining mark belongs to the letter before it; Python's \w knows only some of them.
_MARK = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0903\u093a-\u094f\u0955-\u0957"
    "\u0962\u0963\u0980-\u0983\u09bc-\u09cd\u0a01-\u0a4d\u0a81-\u0acd\u0b01-\u0b4d\u0b82-\u0bcd\u0c00-\u0c4d"
    "\u0c81-\u0ccd\u0d00-\u0d4d\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u102b-\u103e\u17b4-\u17d3\u200c\u200d"
)
_RUN = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{_MARK}]|['’](?=[^\W\d_]))*")
_MARKS = re.compile(rf"[{_MARK}]")
# Scripts without blanks between words: letters that count as one word.
_LETTERS_A_WORD = {"CJK": 1, "HIRAGANA": 1, "KATAKANA": 1, "THAI": 4, "LAO": 4, "MYANMAR": 4, "KHMER": 4}
_CASED = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN")
# How the Unicode name of a letter begins. Other letters are signs ("MICRO SIGN", "DOUBLE-STRUCK CAPITAL R"), and so is
# the "KATAKANA-HIRAGANA PROLONGED SOUND MARK".
_NAME = re.compile(
    r"(?:HALFWIDTH |FULLWIDTH )?(LATIN|GREEK|CYRILLIC|ARMENIAN|HEBREW|ARABIC|SYRIAC|THAANA|DEVANAGARI|BENGALI|GURMUKHI"
    r"|GUJARATI|ORIYA|TAMIL|TELUGU|KANNADA|MALAYALAM|SINHALA|THAI|LAO|TIBETAN|MYANMAR|GEORGIAN|HANGUL|ETHIOPIC|KHMER"
    r"|MONGOLIAN|BOPOMOFO|HIRAGANA|KATAKANA|CJK)\b(?!.* MARK\Z)"
)


def prose_sentences(text: str) -> list[str]:
    """
    The sentences and lines of a text without code, LaTeX, links and tags.

    Dollar signs around text without a blank inside either of them are LaTeX, others are money. An unclosed code block
    goes to the end.

    Example:
    ```python
    >>> prose_sentences("So $x=2$. Then `print(x)` says \\\\boxed{2}")
    ['So  ', 'Then   says  ']

    ```
    """
    parts = _SENTENCE_END.split(_NO_PROSE.sub(" ", unicodedata.normalize("NFC", text)))
    return [part for part in parts if part]


def words_by_script(sentence: str) -> dict[str, list[str]]:
    """
    The words of a sentence without formulas, by script.

    Not words: single letters of alphabets with capitals (names of variables), capitals of at most four letters (names
    of points, abbreviations), and what touches a digit, an underscore, a backslash or an opening bracket (`x_max`,
    `sin(`, `5cm`).

    Args:
        sentence (`str`):
            One of [`prose_sentences`].

    Returns:
        `dict[str, list[str]]`: words in order by the first word of their letters' Unicode names: `"LATIN"`, `"CJK"`
        and so on. In scripts without blanks a word is a run of letters here, see [`word_count`].

    Example:
    ```python
    >>> words_by_script("Let x be 3: 三个苹果 of ABC")
    {'LATIN': ['Let', 'be', 'of'], 'CJK': ['三个苹果']}

    ```
    """
    words: dict[str, list[str]] = {}
    for run in _RUN.finditer(sentence):
        for script, word, start in _pieces(run[0], run.start()):
            if script and not (script in _CASED and _is_name(word, sentence, start)):
                words.setdefault(script, []).append(word)
    return words


def word_count(script: str, words: list[str]) -> int:
    """
    How many words runs of letters are: one each, in scripts without blanks by letters.

    There each character of Chinese and Japanese is a word, and four letters of Thai, Lao, Burmese and Khmer.

    Example:
    ```python
    >>> word_count("LATIN", ["Let", "be"]), word_count("CJK", ["三个苹果"])
    (2, 4)

    ```
    """
    letters = _LETTERS_A_WORD.get(script)
    if letters is None:
        return len(words)
    return sum(-(-len(_MARKS.sub("", word)) // letters) for word in words)


def _pieces(run: str, start: int) -> Iterator[tuple[str, str, int]]:
    """A run of letters cut where the script changes: script, text and place of each piece; signs have no script."""
    if run.isascii():
        yield "LATIN", run, start
        return
    script = ""
    scripts = []
    for character in run:
        script = _script(character) or script  # a mark, sign or apostrophe goes with the letter before it
        scripts.append(script)
    place = 0
    for script, group in groupby(scripts):
        length = len(list(group))
        yield script, run[place : place + length], start + place
        place += length


def _is_name(word: str, sentence: str, start: int) -> bool:
    if len(word) == 1 or (len(word) <= 4 and word.isupper()):
        return True
    before, after = sentence[start - 1 : start], sentence[start + len(word) : start + len(word) + 1]
    return before.isdigit() or after.isdigit() or before in ("_", "\\") or after in ("_", "(")


@lru_cache(maxsize=65536)
def _script(character: str) -> str | None:
    """The script of a letter; `None` for marks and signs."""
    found = _NAME.match(unicodedata.name(character, "")) if character.isalpha() else None
    return found[1] if found else None
