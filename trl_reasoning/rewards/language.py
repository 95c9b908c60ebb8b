"""DeepSeek-R1's language consistency: the share of words in the wanted language."""

from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Literal, get_args

from ..errors import UserError, did_you_mean
from ..text import split_thought
from ._prose import prose_sentences, word_count, words_by_script
from ._reward import Completion, Reward, read_rows


Part = Literal["thought", "answer", "both"]
By = Literal["language", "script"]

_LATIN = "ca cs da de en es et fi fr hr hu id it lt lv ms nl nn no pl pt ro sk sl sv sw tl tr vi"
# Languages of scripts that several share: the identifier chooses among those of the script.
_SHARED: dict[str, tuple[str, ...]] = {
    "LATIN": tuple(_LATIN.split()),
    "CYRILLIC": ("be", "bg", "kk", "ky", "mk", "mn", "ru", "sr", "uk"),
    "ARABIC": ("ar", "fa", "ur"),
    "DEVANAGARI": ("hi", "mr", "ne"),
    "BENGALI": ("as", "bn"),
}
# Languages that their scripts tell. Chinese and Japanese share one and are told apart by kana.
_OWN: dict[str, tuple[str, ...]] = {
    "zh": ("CJK",),
    "ja": ("CJK", "HIRAGANA", "KATAKANA"),
    "ko": ("HANGUL",),
    "el": ("GREEK",),
    "he": ("HEBREW",),
    "hy": ("ARMENIAN",),
    "ka": ("GEORGIAN",),
    "th": ("THAI",),
    "lo": ("LAO",),
    "km": ("KHMER",),
    "my": ("MYANMAR",),
    "ta": ("TAMIL",),
    "te": ("TELUGU",),
    "ml": ("MALAYALAM",),
    "kn": ("KANNADA",),
    "gu": ("GUJARATI",),
    "pa": ("GURMUKHI",),
}
_SCRIPTS = _OWN | {language: (script,) for script, languages in _SHARED.items() for language in languages}
LANGUAGES = tuple(sorted(_SCRIPTS))
# A sentence is foreign only where the identifier is this sure: short ones are often too short to tell.
_SURE = 0.5
# A sentence is Japanese where kana are at least this share of its Chinese characters and kana, and Chinese where it
# has none in at least so many characters.
_KANA_SHARE, _LONG_WITHOUT_KANA = 0.2, 8


def make_language_consistency_reward(
    language: str = "en", column: str | None = None, part: Part = "thought", by: By = "language"
) -> Reward:
    r"""
    Make the language consistency reward of DeepSeek-R1, in [0, 1].

    $$r = \frac{\text{words in the wanted language}}{\text{words}}$$

    Code, LaTeX, links, tags, digits, names of variables and points, and what touches them (`sin(`, `5cm`) are no
    words. `None` where there are no words, so that a thought of formulas alone is neither paid nor punished. In
    scripts without blanks, each character of Chinese and Japanese counts as a word, and four letters of Thai, Lao,
    Burmese and Khmer.

    The script of a word decides where it can. Among languages that share one (Latin, Cyrillic, Arabic, Devanagari),
    `py3langid` reads the words of that script sentence by sentence; a sentence counts as foreign where it is surer
    than 0.5 of another language, so that "Good." and names cost nothing. A few foreign words inside a sentence of the
    same script are not seen. Chinese and Japanese are told apart by kana, sentence by sentence.

    Args:
        language (`str`, *optional*, defaults to `"en"`):
            Wanted language by its two-letter code.
        column (`str`, *optional*):
            Dataset column with the wanted language of each row, that of the question for instance; `language` stands
            in where it is empty.
        part (`str`, *optional*, defaults to `"thought"`):
            Where words are counted: in the `"thought"`, the visible `"answer"` or `"both"`. A completion without think
            tags has no thought: take `"both"` for models that write none.
        by (`str`, *optional*, defaults to `"language"`):
            `"script"` counts every language of the wanted script as the wanted one and needs no library: enough where
            English thoughts turn Chinese.

    Returns:
        [`Reward`]: needs the column that is named, if any.

    Raises:
        ValueError: when a parameter is unknown.
        UserError: `py3langid` is needed and not installed (extra `curation`); a row names an unknown language.

    Reference: DeepSeek-R1 (https://huggingface.co/papers/2501.12948), section 2.3.2, added to the reward of the
    answer. How words are cut and counted is not published and a choice of this package.

    Example:
    ```python
    >>> reward = make_language_consistency_reward("en", by="script")
    >>> completions = ["<think>We take 5 from 9. 所以是四</think>4", "<think>$9-5=4$</think>4"]
    >>> reward(["?"] * 2, completions, [[1]] * 2)  # 3 words, 4 characters
    [0.42857142857142855, None]

    ```
    """
    return LanguageConsistencyReward(language, column, part, by)


class LanguageConsistencyReward:
    """See [`make_language_consistency_reward`]."""

    __name__ = "language_consistency_reward"

    def __init__(self, language: str, column: str | None, part: Part, by: By):
        for key, value, names in (("part", part, get_args(Part)), ("by", by, get_args(By))):
            if value not in names:
                hint = did_you_mean(str(value), names)
                raise ValueError(f"{key}: expected {', '.join(names)}, got {value!r}.{hint}")
        if language not in _SCRIPTS:
            raise ValueError(f"language: expected one of {', '.join(LANGUAGES)}, got {language!r}")
        self.language = language
        self.column = column
        self.part = part
        self.by: By = by
        self.columns: tuple[str, ...] = () if column is None else (column,)

    def check_ready(self) -> None:
        """Raise a `UserError` where the library that the languages need is not installed."""
        shares_script = self.column is not None or self.language not in _OWN
        if self.by == "language" and shares_script and find_spec("py3langid") is None:
            raise UserError(
                "language_consistency: languages that share a script are told apart with py3langid, which is not "
                'installed; run `pip install "trl-reasoning[curation]"` or set `by: script`'
            )

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        *,
        thought_opened: Sequence[bool | None] | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        self.check_ready()
        texts, opened = read_rows(completions, thought_opened)
        wanted = [self.language] * len(texts) if self.column is None else self._read_column(kwargs[self.column])
        return [
            language_share(self._chosen(text, is_open), language, by=self.by)
            for text, is_open, language in zip(texts, opened, wanted, strict=True)
        ]

    def _read_column(self, values: Sequence[Any]) -> list[str]:
        languages = [value or self.language for value in values]
        for row, language in enumerate(languages):
            if language not in _SCRIPTS:
                raise UserError(
                    f"language_consistency: row {row} of the batch has {language!r} in the column `{self.column}`; "
                    f"expected one of {', '.join(LANGUAGES)}, or nothing for {self.language}"
                )
        return languages

    def _chosen(self, text: str, opened: bool) -> str:
        split = split_thought(text, opened=opened)
        return {"thought": split.thought, "answer": split.answer, "both": f"{split.thought}\n{split.answer}"}[
            self.part
        ]


def language_share(text: str, language: str, *, by: By = "language") -> float | None:
    """
    The share of the words of a text that are in a language.

    Args:
        text (`str`):
            Any text; code, formulas and tags do not count.
        language (`str`):
            Code of one of [`LANGUAGES`].
        by (`str`, *optional*, defaults to `"language"`):
            As in [`make_language_consistency_reward`].

    Returns:
        `float` or `None`: in [0, 1], `None` where there are no words.
    """
    total = wanted = 0
    for sentence in prose_sentences(text):
        words = words_by_script(sentence)
        counts = {script: word_count(script, run) for script, run in words.items()}
        total += sum(counts.values())
        own = sum(counts.get(script, 0) for script in _SCRIPTS[language])
        if own and _is_wanted(words, counts, language, by):
            wanted += own
    return wanted / total if total else None


def _is_wanted(words: dict[str, list[str]], counts: dict[str, int], language: str, by: By) -> bool:
    """Whether the words of the language's scripts in one sentence are of that language."""
    if by == "script":
        return True
    if language in ("zh", "ja"):
        kana = counts.get("HIRAGANA", 0) + counts.get("KATAKANA", 0)
        characters = counts.get("CJK", 0)
        if language == "zh":
            return kana < _KANA_SHARE * (kana + characters)
        return kana > 0 or characters < _LONG_WITHOUT_KANA
    if language in _OWN:
        return True
    [script] = _SCRIPTS[language]
    found, probability = _identifier(script).classify(" ".join(words[script]))
    return found == language or probability <= _SURE


@lru_cache
def _identifier(script: str) -> Any:
    """The identifier for the languages of one script: read once a process, and not pickled with the reward."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(_SHARED[script])
    return identifier
