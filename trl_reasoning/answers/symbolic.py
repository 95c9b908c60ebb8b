"""Equality of formulas by a computer algebra system, which works in processes that can be killed."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from ..workers import Outcome, run_limited
from .formula_worker import PRELOAD, answer_question
from .rational import TooLargeError


# Computing time of one comparison (honest ones take a tenth of it), and time by the clock on a busy machine.
QUESTION_SECONDS = 1.0
WALL_SECONDS = 4.0
# All comparisons of one answer: a list holds many.
ANSWER_SECONDS = 1.5
MAX_NESTING = 25
MEMORY_MB = 512
MAX_LENGTH = 1_000
MAX_REMEMBERED = 50_000

_TOWER = re.compile(r"\d[)}]*\^[({]*\d+[)}]*\^")
_LARGE_FACTORIAL = re.compile(r"\d{4,}[)}]*!|![)}]*!")
_LARGE_EXPONENT = re.compile(r"\^[({]*-?\d{4,}")

# One formula (is it readable?) or two (are they equal?).
_Question = tuple[str, ...]
_T = TypeVar("_T")


class UnreadableError(ValueError):
    """`math-verify` cannot read the formula."""


class TimeLimitError(RuntimeError):
    """Reading or comparing took longer than the limit."""


class _UnansweredError(Exception):
    """A computation needs the answer to a question that has not been asked yet."""

    def __init__(self, question: _Question):
        super().__init__(question)
        self.question = question


@dataclass
class _Session:
    """What is known while [`answer_together`] computes, and whether the computation in hand may ask for more."""

    known: dict[_Question, Outcome] = field(default_factory=dict)
    may_ask: bool = True


_session: ContextVar[_Session | None] = ContextVar("_session", default=None)
# Answers that were found, for all calls of this process; what ran into a limit is tried again.
_remembered: dict[_Question, Outcome] = {}


def check_formula(latex: str) -> None:
    """
    Say whether a formula can be read, by raising or not.

    Args:
        latex (`str`):
            Formula without math delimiters.

    Raises:
        UnreadableError: when it is no formula.
        TooLargeError: when it is too long, holds a power tower, a large factorial or a large exponent, or takes more
            memory than a worker may have.
        TimeLimitError: when reading takes more than 1 s of computing time, or 4 s by the clock.
    """
    _ask(latex)


def is_equal_formula(answer: str, gold: str) -> bool:
    """
    Say whether two formulas are equal (for positive values of their letters, where that decides).

    Args:
        answer, gold (`str`):
            Formulas without math delimiters. An interval and an inequality may be equal.

    Returns:
        `bool`

    Raises:
        UnreadableError, TooLargeError, TimeLimitError: as [`check_formula`], about either side or their comparison.
        ArithmeticError: when the comparison itself fails.
    """
    return _ask(answer, gold)


def answer_together(computations: Sequence[Callable[[], _T]]) -> list[_T]:
    """
    Do computations that call [`is_equal_formula`] or [`check_formula`], with the formulas of all of them in the
    workers at the same time.

    A computation that meets an open question stops there; once the questions of all are answered, each runs again
    with what is known by then. So it must be cheap apart from its formulas, and have no side effects.

    Args:
        computations (`Sequence[Callable]`):
            Each called without arguments. It may take 1.5 s in the workers over all its formulas, and then gets
            `TimeLimitError` from the next.

    Returns:
        `list`: what each returned. What one raises is raised.
    """
    session = _Session()
    results: dict[int, _T] = {}
    open_rows = list(range(len(computations)))
    spent = [0.0] * len(computations)
    with _in_session(session):
        while open_rows:
            asked: dict[_Question, list[int]] = {}
            for row in open_rows:
                session.may_ask = spent[row] < ANSWER_SECONDS
                try:
                    results[row] = computations[row]()
                except _UnansweredError as error:
                    asked.setdefault(error.question, []).append(row)
            session.known.update(_answers(asked))
            for question, rows in asked.items():
                for row in rows:
                    spent[row] += _seconds(session.known[question])
            open_rows = sorted(row for rows in asked.values() for row in rows)
    return [results[row] for row in range(len(computations))]


@contextmanager
def _in_session(session: _Session) -> Iterator[None]:
    token = _session.set(session)
    try:
        yield
    finally:
        _session.reset(token)


def _ask(*question: str) -> bool:
    for formula in question:
        _check_form(formula)
    session = _session.get()
    if session is None:
        return _read(_answers([question])[question])
    outcome = session.known.get(question) or _remembered.get(question)
    if outcome is not None:
        return _read(outcome)
    if not session.may_ask:
        raise TimeLimitError(f"no verdict within {ANSWER_SECONDS:g} s over all its formulas")
    raise _UnansweredError(question)


def _answers(questions: Iterable[_Question]) -> dict[_Question, Outcome]:
    found = {question: _remembered[question] for question in questions if question in _remembered}
    new = [question for question in questions if question not in found]
    if not new:
        return found
    limits = {"seconds": WALL_SECONDS, "cpu_seconds": QUESTION_SECONDS, "memory_mb": MEMORY_MB}
    outcomes = run_limited(answer_question, new, **limits, preload=PRELOAD)
    found.update(zip(new, outcomes, strict=True))
    if len(_remembered) > MAX_REMEMBERED:
        _remembered.clear()
    _remembered.update({question: outcome for question, outcome in found.items() if outcome.status == "done"})
    return found


def _read(outcome: Outcome) -> bool:
    if outcome.status == "timed_out":
        raise TimeLimitError(f"no verdict within {QUESTION_SECONDS:g} s")
    if outcome.status != "done":
        # Also a worker that crashed: deep nesting can exhaust the stack.
        raise TooLargeError(outcome.error or outcome.status)
    status, is_equal, _ = outcome.value
    if status == "unreadable":
        raise UnreadableError("not a formula")
    if status == "failed":
        raise ArithmeticError("the comparison failed")
    return is_equal


def _seconds(outcome: Outcome) -> float:
    return outcome.value[2] if outcome.status == "done" else QUESTION_SECONDS


def _check_form(latex: str) -> None:
    """Refuse cheaply what would only cost its time limit."""
    compact = re.sub(r"\s+", "", latex)
    if len(compact) > MAX_LENGTH:
        raise TooLargeError(f"a formula of more than {MAX_LENGTH} characters")
    if _TOWER.search(compact) or _LARGE_FACTORIAL.search(compact) or _LARGE_EXPONENT.search(compact):
        raise TooLargeError("a power tower, a large factorial or a large exponent")
    braces = brackets = 0
    for character in compact.replace(r"\{", "(").replace(r"\}", ")"):
        braces += (character == "{") - (character == "}")
        brackets += (character in "([") - (character in ")]")
        if braces + brackets > MAX_NESTING:
            raise TooLargeError(f"more than {MAX_NESTING} nested brackets")
    if braces:
        raise UnreadableError("a brace without its partner")
