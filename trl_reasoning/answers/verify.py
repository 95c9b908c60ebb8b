"""One check of one answer: the same for rewards, curation and evaluation."""

from functools import lru_cache

from ..errors import did_you_mean
from .compare import LONG_WORD, compare, gold_choice, is_formula, is_words, split_items
from .extract import extract_answer, marked_answer
from .normalize import Value, clean, read_value
from .rational import TooLargeError, rational
from .symbolic import TimeLimitError, UnreadableError, read_formula
from .verdict import Verdict


KINDS = ("auto", "choice", "number", "text")


def verify(prediction: str, gold: str | None, *, kind: str = "auto", opened: bool = False) -> Verdict:
    r"""
    Check the final answer of a completion against the gold answer. Never raises for any text of a model or data set.

    Exact cheap comparison comes first (strings, integers, fractions, decimals, per cent, units, lists); `math-verify`
    decides the rest. Its time limit needs the main thread. In another thread only formulas of at most 200 characters
    without factorials and large exponents reach it, without a limit, and all others are `timed_out`; a pool of worker
    processes that can be killed will lift this.

    Args:
        prediction (`str`):
            Completion with think tags.
        gold (`str` or `None`):
            Gold answer, bare (`5`, `\frac{1}{2}`) or marked (`#### 5`, `\boxed{5}`).
        kind (`str`, *optional*, defaults to `"auto"`):
            What the gold is: `"number"`, `"choice"` (a letter), `"text"` (compared without case), or `"auto"`.
        opened (`bool`, *optional*, defaults to `False`):
            Whether the prompt already ended inside the thought.

    Returns:
        [`Verdict`]

    Raises:
        TypeError: when `prediction` is no string, or `gold` neither a string nor `None`.
        ValueError: when `kind` is unknown.

    Example:
    ```python
    >>> verify(r"<think>...</think>It is \boxed{0.5}.", r"\frac{1}{2}")
    Verdict(status='right', extracted='0.5', gold='\\frac{1}{2}', rule='number')
    >>> verify("I could not finish.", "12").status
    'unparsed'

    ```
    """
    if not isinstance(prediction, str):
        raise TypeError(f"prediction must be a str, got {type(prediction).__name__}: {prediction!r}")
    gold_answer = _read_gold(gold, kind)
    extracted = extract_answer(prediction, opened=opened)
    if gold_answer is None:
        return Verdict("unreadable_gold", extracted, gold, "no_gold")
    if extracted is None:
        return Verdict("unparsed", None, gold_answer, "no_answer")
    try:
        comparison = compare(extracted, gold_answer, kind=kind)
    except TooLargeError:
        return Verdict("timed_out", extracted, gold_answer, "too_large")
    except TimeLimitError:
        return Verdict("timed_out", extracted, gold_answer, "time_limit")
    except UnreadableError:
        return Verdict("unparsed", extracted, gold_answer, "math")
    except ArithmeticError:
        return Verdict("wrong", extracted, gold_answer, "math_error")
    return Verdict("right" if comparison.is_equal else "wrong", extracted, gold_answer, comparison.rule)


def is_readable_gold(gold: str | None, kind: str = "auto") -> bool:
    """
    Say whether [`verify`] can compare anything with a gold answer.

    A worked sentence without a marked answer, an empty string and `None` cannot be read.

    Args:
        gold (`str` or `None`):
            Gold answer.
        kind (`str`, *optional*, defaults to `"auto"`):
            As in [`verify`].

    Returns:
        `bool`

    Example:
    ```python
    >>> is_readable_gold("18"), is_readable_gold("18. The first pump fills a quarter of the tank.")
    (True, False)

    ```
    """
    return _read_gold(gold, kind) is not None


def numeric_value(text: str) -> float | None:
    r"""
    Value of an answer that is one number, without its unit; a per cent sign is dropped.

    Args:
        text (`str`):
            Answer as [`extract_answer`] gives it.

    Returns:
        `float` or `None`: `None` when the text is no number or does not fit a float.

    Example:
    ```python
    >>> numeric_value(r"\$1,250"), numeric_value("x+1")
    (1250.0, None)

    ```
    """
    try:
        number = rational(read_value(text).text)
        return None if number is None else float(number)
    except (TooLargeError, OverflowError):
        return None


def check_kind(kind: str) -> str:
    """Give `kind` back, or raise a `ValueError` that names the known kinds and the nearest one."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.{did_you_mean(kind, KINDS)}")
    return kind


def _read_gold(gold: str | None, kind: str) -> str | None:
    check_kind(kind)
    if gold is None:
        return None
    if not isinstance(gold, str):
        raise TypeError(
            f"gold must be a str or None, got {type(gold).__name__}: {gold!r}. Convert the column to text when the "
            "dataset is loaded."
        )
    return _read_gold_text(gold, kind)


@lru_cache(maxsize=4096)
def _read_gold_text(gold: str, kind: str) -> str | None:
    """The gold's answer, or `None` when it cannot be read. Cached: a group of samples shares one gold."""
    answer = marked_answer(gold) or gold.strip()
    try:
        if not clean(answer):
            return None
        value = read_value(answer)
        if kind == "number":
            return answer if rational(value.text) is not None else None
        if kind == "choice":
            return answer if gold_choice(answer) else None
        if kind == "text" or gold_choice(answer) or is_words(answer) or _is_readable(value):
            return answer
        return None
    except (TooLargeError, TimeLimitError):
        return answer  # unreadable was not shown; an equal string still counts


def _is_readable(value: Value) -> bool:
    items = split_items(value.text)
    if items:
        return all(is_words(item) or _is_readable(read_value(item)) for item in items.values)
    if rational(value.text) is not None:
        return True
    if not is_formula(value.text):
        # Clock times and patterns with dots are compared as strings; prose is not.
        return LONG_WORD.search(value.text) is None
    try:
        read_formula(value.text)
    except UnreadableError:
        return False
    return True
