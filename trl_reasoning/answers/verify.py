"""One check of one answer: the same for rewards, curation and evaluation."""

from collections.abc import Sequence
from functools import lru_cache, partial

from ..errors import did_you_mean
from .compare import compare
from .extract import extract_answer, marked_answer
from .normalize import clean, read_value
from .rational import TooLargeError, rational
from .readable import has_control_character, is_readable_answer
from .symbolic import TimeLimitError, UnreadableError, answer_together
from .verdict import Verdict


# Before any cleaning; reading nested groups is quadratic in their depth.
MAX_ANSWER_LENGTH = 10_000
KINDS = ("auto", "choice", "number", "text")


def verify(prediction: str, gold: str | None, *, kind: str = "auto", opened: bool = False) -> Verdict:
    r"""
    Check the final answer of a completion against the gold answer. Never raises for any text of a model or data set.

    Exact cheap comparison comes first (strings, numbers, units, lists, values of formulas). A computer algebra system
    decides the rest, in worker processes with limits on time and memory: `timed_out` after at most 5 s. Works in any
    thread and process, see [`trl_reasoning.workers.run_limited`]. Many answers at once: [`verify_batch`].

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
    return verify_batch([prediction], [gold], kind=kind, opened=[opened])[0]


def verify_batch(
    predictions: Sequence[str],
    golds: Sequence[str | None],
    *,
    kind: str = "auto",
    opened: Sequence[bool] | None = None,
) -> list[Verdict]:
    r"""
    [`verify`] for many answers: the same verdicts, each pair once, and all expensive comparisons in the workers at the
    same time.

    Args:
        predictions (`Sequence[str]`):
            Completions with think tags.
        golds (`Sequence[str | None]`):
            The gold answer of each.
        kind (`str`, *optional*, defaults to `"auto"`):
            What the golds are, as in [`verify`].
        opened (`Sequence[bool]`, *optional*):
            Whether the prompt of each already ended inside the thought; by default none did.

    Returns:
        `list[Verdict]`: in the order of the predictions.

    Raises:
        TypeError, ValueError: as [`verify`]; also when the lists differ in length.

    Example:
    ```python
    >>> [verdict.status for verdict in verify_batch([r"\boxed{4}", r"\boxed{5}"], ["4", "4"])]
    ['right', 'wrong']

    ```
    """
    check_kind(kind)
    opened = [False] * len(predictions) if opened is None else opened
    rows = list(zip(predictions, golds, opened, strict=True))
    for prediction, gold, _ in rows:
        _check_types(prediction, gold)
    distinct = list(dict.fromkeys(rows))
    verdicts = answer_together([partial(_verify, *row, kind) for row in distinct])
    found = dict(zip(distinct, verdicts, strict=True))
    return [found[row] for row in rows]


def _verify(prediction: str, gold: str | None, opened: bool, kind: str) -> Verdict:
    gold_answer = None if gold is None else _read_gold(gold, kind)
    extracted = extract_answer(prediction, opened=opened)
    if gold_answer is None:
        return Verdict("unreadable_gold", extracted, gold, "no_gold")
    if extracted is None:
        return Verdict("unparsed", None, gold_answer, "no_answer")
    try:
        if max(len(extracted), len(gold_answer)) > MAX_ANSWER_LENGTH and kind != "text":
            raise TooLargeError(f"an answer of more than {MAX_ANSWER_LENGTH} characters")
        comparison = compare(extracted, gold_answer, kind=kind)
    except (TooLargeError, RecursionError):
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
    return are_readable_golds([gold], kind)[0]


def are_readable_golds(golds: Sequence[str | None], kind: str = "auto") -> list[bool]:
    """
    [`is_readable_gold`] for many golds, with all formulas in the workers at the same time.

    Args:
        golds (`Sequence[str | None]`):
            Gold answers.
        kind (`str`, *optional*, defaults to `"auto"`):
            As in [`verify`].

    Returns:
        `list[bool]`
    """
    check_kind(kind)
    for gold in golds:
        _check_types("", gold)
    distinct = [gold for gold in dict.fromkeys(golds) if gold is not None]
    answers = answer_together([partial(_read_gold, gold, kind) for gold in distinct])
    readable = {gold for gold, answer in zip(distinct, answers, strict=True) if answer is not None}
    return [gold in readable for gold in golds]


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


def _check_types(prediction: str, gold: str | None) -> None:
    if not isinstance(prediction, str):
        raise TypeError(f"prediction must be a str, got {type(prediction).__name__}: {prediction!r}")
    if not (gold is None or isinstance(gold, str)):
        raise TypeError(
            f"gold must be a str or None, got {type(gold).__name__}: {gold!r}. Convert the column to text when the "
            "dataset is loaded."
        )


@lru_cache(maxsize=4096)
def _read_gold(gold: str, kind: str) -> str | None:
    """The gold's answer, or `None` when it cannot be read. Cached: a group of samples shares one gold."""
    answer = marked_answer(gold) or gold.strip()
    if len(answer) > MAX_ANSWER_LENGTH:
        return answer  # as below
    try:
        if not clean(answer) or has_control_character(gold):
            return None
        return answer if is_readable_answer(answer, kind) else None
    except (TooLargeError, TimeLimitError, RecursionError):
        return answer  # unreadable was not shown; an equal string still counts
