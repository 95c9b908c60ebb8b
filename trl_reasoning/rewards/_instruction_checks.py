"""
Checks of instructions that a program can verify, with the names and arguments of Google's IFEval data.

Words are runs of letters and digits, sentences end with a mark and a blank (not after common abbreviations or in
numbers), and nothing is downloaded: counts may differ by a little from those of a trained sentence splitter. Keywords
are compared as text, never as regular expressions.
"""

import json
import re
from collections.abc import Callable, Sequence

from .language import LANGUAGES, language_share


RELATIONS = ("at least", "less than", "at most", "around", "exactly")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|No|Inc|Ltd|Jr|Sr|[A-Za-z])|\b(?:e\.g|i\.e|a\.m|p\.m))\.\Z"
)
_LONGEST_ABBREVIATION = 8
# Possessive, and begun once a run of marks: no text makes it go back and forth.
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s|\Z)|[。！？]++")
_DIVIDER = re.compile(r"\*\*\*|\* \* \*")
_HIGHLIGHT = re.compile(r"\*\*([^\n*]+)\*\*|\*([^\n*]+)\*")
_BULLET = re.compile(r"^[ \t]*(?:\*(?!\*)|-)[ \t]*\S", re.MULTILINE)
_FENCE = re.compile(r"\A```(?:json)?|```\Z", re.IGNORECASE)
_WORD = re.compile(r"\w")
_CHOICES = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def holds(count: int, wanted: int, relation: str) -> bool:
    """Whether a count is in this relation to a number; `around` allows a tenth of it, and at least one."""
    if relation not in RELATIONS:
        raise ValueError(f"relation: expected one of {', '.join(RELATIONS)}, got {relation!r}")
    if relation == "at least":
        return count >= wanted
    if relation == "less than":
        return count < wanted
    if relation == "at most":
        return count <= wanted
    return abs(count - wanted) <= (max(1, round(wanted / 10)) if relation == "around" else 0)


def count_sentences(text: str) -> int:
    """
    Number of sentences.

    Example:

    ```python
    >>> count_sentences("Dr. No paid 3.50 dollars. Why? He did"), count_sentences("...")
    (3, 0)

    ```
    """
    count = start = 0
    for mark in _SENTENCE_END.finditer(text):
        end = mark.end()
        is_abbreviation = mark[0] == "." and _ABBREVIATION.search(text[max(start, end - _LONGEST_ABBREVIATION) : end])
        if not _WORD.search(text, start, end):
            start = end  # so that no text is searched twice
        elif not is_abbreviation:
            count += 1
            start = end
    return count + bool(_WORD.search(text, start))


def _keywords(text: str, keywords: Sequence[str]) -> bool:
    return all(keyword.casefold() in text.casefold() for keyword in keywords)


def _keyword_frequency(text: str, keyword: str, frequency: int, relation: str = "exactly") -> bool:
    word = re.escape(keyword.casefold())
    # IFEval counts texts; RLVR-IFeval, whose number is exact, counts whole words.
    pattern = rf"(?<!\w){word}(?!\w)" if relation == "exactly" else word
    return holds(len(re.findall(pattern, text.casefold())), frequency, relation)


def _forbidden_words(text: str, forbidden_words: Sequence[str]) -> bool:
    return not any(
        re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, flags=re.IGNORECASE) for word in forbidden_words
    )


def _letter_frequency(text: str, letter: str, let_frequency: int, let_relation: str = "exactly") -> bool:
    return holds(text.lower().count(letter.lower()), let_frequency, let_relation)


def _language(text: str, language: str) -> bool:
    code = language.partition("-")[0].lower()
    if code not in LANGUAGES:
        raise ValueError(f"language: expected one of {', '.join(LANGUAGES)}, got {language!r}")
    # A text without any word, for instance of numbers alone, is in every language.
    share = language_share(text, code)
    return share is None or share > 0.5


def _sentences(text: str, num_sentences: int, relation: str) -> bool:
    count = count_sentences(text)
    # Around a number of sentences is one more or less in RLVR-IFeval, for any number.
    return abs(count - num_sentences) <= 1 if relation == "around" else holds(count, num_sentences, relation)


def _words(text: str, num_words: int, relation: str) -> bool:
    return holds(len(re.findall(r"\w+", text)), num_words, relation)


def _paragraphs(text: str, num_paragraphs: int) -> bool:
    parts = [part.strip() for part in _DIVIDER.split(text.strip())]
    # A divider at the start or end makes no paragraph; an empty one between two is a mistake.
    return all(parts[1:-1]) and len([part for part in parts if part]) == num_paragraphs


def _first_word(text: str, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    parts = [part for part in re.split(r"\n[ \t]*\n", text) if part.strip()]
    if len(parts) != num_paragraphs or not 1 <= nth_paragraph <= num_paragraphs:
        return False
    found = re.match(r"[\W_]*([\w'’-]+)", parts[nth_paragraph - 1])
    return found is not None and found[1].casefold() == first_word.casefold()


def _placeholders(text: str, num_placeholders: int) -> bool:
    return len(re.findall(r"\[[^\[\]\n]+\]", text)) >= num_placeholders


def _postscript(text: str, postscript_marker: str = "P.S.") -> bool:
    parts = re.findall(r"[a-z]\.?", postscript_marker.lower())
    if not parts:
        raise ValueError(f"postscript_marker: expected for instance P.S., got {postscript_marker!r}")
    marker = r"\s?".join(map(re.escape, parts))
    return re.search(rf"(?<!\w){marker}(?!\w)\s*+\S", text, flags=re.IGNORECASE) is not None


def _bullets(text: str, num_bullets: int) -> bool:
    return len(_BULLET.findall(text)) == num_bullets


def _choice(text: str, options: Sequence[str] | str = _CHOICES) -> bool:
    listed = re.split(r"\s*/\s*", options) if isinstance(options, str) else options
    return any(option.strip() in text for option in listed if option.strip())


def _highlights(text: str, num_highlights: int) -> bool:
    return len([1 for bold, plain in _HIGHLIGHT.findall(text) if (bold or plain).strip()]) >= num_highlights


def _sections(text: str, section_spliter: str, num_sections: int) -> bool:
    return len(re.findall(rf"(?<!\w){re.escape(section_spliter.strip())}\s?\d+", text)) >= num_sections


def _json(text: str) -> bool:
    try:
        json.loads(_FENCE.sub("", text.strip()))
    except (ValueError, RecursionError):
        return False
    return True


def _title(text: str) -> bool:
    return any(title.strip() for title in re.findall(r"<<([^\n<>]++)>>", text))


def _two_responses(text: str) -> bool:
    parts = [part.strip() for part in text.split("******")]
    found = [part for part in parts if part]
    return all(parts[1:-1]) and len(found) == 2 and found[0] != found[1]


def _repeat(text: str, prompt_to_repeat: str) -> bool:
    return text.strip().casefold().startswith(prompt_to_repeat.strip().casefold())


def _end(text: str, end_phrase: str) -> bool:
    return text.strip().strip('"').casefold().endswith(end_phrase.strip().casefold())


def _quotation(text: str) -> bool:
    stripped = text.strip()
    return len(stripped) > 2 and stripped.startswith('"') and stripped.endswith('"')


def _capital_words(text: str, capital_frequency: int, capital_relation: str = "at least") -> bool:
    words = re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text)
    return holds(sum(word.isupper() for word in words), capital_frequency, capital_relation)


def _upper(text: str) -> bool:
    return text.isupper() and _language(text.lower(), "en")


def _lower(text: str) -> bool:
    return text.islower() and _language(text, "en")


def _no_comma(text: str) -> bool:
    return "," not in text


CHECKS: dict[str, Callable[..., bool]] = {
    "change_case:capital_word_frequency": _capital_words,
    "change_case:english_capital": _upper,
    "change_case:english_lowercase": _lower,
    "combination:repeat_prompt": _repeat,
    "combination:two_responses": _two_responses,
    "detectable_content:number_placeholders": _placeholders,
    "detectable_content:postscript": _postscript,
    "detectable_format:constrained_response": _choice,
    "detectable_format:json_format": _json,
    "detectable_format:multiple_sections": _sections,
    "detectable_format:number_bullet_lists": _bullets,
    "detectable_format:number_highlighted_sections": _highlights,
    "detectable_format:title": _title,
    "keywords:existence": _keywords,
    "keywords:forbidden_words": _forbidden_words,
    "keywords:frequency": _keyword_frequency,
    "keywords:letter_frequency": _letter_frequency,
    "language:response_language": _language,
    "length_constraints:nth_paragraph_first_word": _first_word,
    "length_constraints:number_paragraphs": _paragraphs,
    "length_constraints:number_sentences": _sentences,
    "length_constraints:number_words": _words,
    "punctuation:no_comma": _no_comma,
    "startend:end_checker": _end,
    "startend:quotation": _quotation,
}
"""Instruction and its check: a function of the visible answer and the instruction's arguments."""
