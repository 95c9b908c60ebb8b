"""Entries of reasoning-gym as one JSON text, and the score of an answer to one."""

import contextlib
import functools
import io
import json
import math
import re
from fractions import Fraction
from typing import Any

from ._puzzle_audit import CAP, CAPPED, LIBRARY_SCORED, REFUSED
from ._puzzle_scorers import OWN_SCORERS


EXTRA = 'reasoning-gym is not installed: pip install "trl-reasoning[tasks]"'
MAX_ANSWER = 20_000
# These repeat a move as often as the number behind it says: `U99999999` fills the memory.
_REPEATED_MOVES = ("rubiks_cube", "rush_hour")
# Keys of JSON objects that stand for what JSON does not have.
_TAGS = {"tuple", "items", "fraction"}
_MANY = re.compile(r"\d{3}")


def scorer_of(task: str) -> str | None:
    """Who scores a task: `"own"`, `"library"`, or `None` where it is refused or nobody has read its scorer."""
    if task in OWN_SCORERS:
        return "own"
    return "library" if task in LIBRARY_SCORED else None


def why_refused(task: str) -> str:
    """The reason why a task of the library is not offered."""
    return REFUSED.get(task, "nobody has read its scorer yet, and a scorer may run a model's text as a program")


def encode_entry(task: str, params: dict[str, Any], answer: str | None, metadata: Any) -> str:
    """
    An entry as JSON text that [`decode_entry`] gives back as it was, tuples and number keys included.

    Args:
        task (`str`):
            Name of the task.
        params (`dict[str, Any]`):
            Its settings, on which its scorer may depend.
        answer (`str` or `None`):
            The gold answer; `None` where a task has none.
        metadata (`Any`):
            What the scorer reads, of plain data.

    Raises:
        TypeError: for data of another type.

    Example:

    ```python
    >>> text = encode_entry("aiw", {}, "5", {"pair": (1, 2), "by": {3: "c"}})
    >>> decode_entry(text)["metadata"]
    {'pair': (1, 2), 'by': {3: 'c'}}

    ```
    """
    entry = {"task": task, "params": _encode(params), "answer": answer, "metadata": _encode(metadata)}
    return json.dumps(entry, ensure_ascii=False, sort_keys=False)


def decode_entry(text: str) -> dict[str, Any]:
    """
    The entry of a text of [`encode_entry`]: `task`, `params`, `answer`, `metadata`.

    Raises:
        ValueError: the text is no entry, or its task may not be scored.
    """
    try:
        entry = json.loads(text)
        task, answer = entry["task"], entry["answer"]
        found = {key: _decode(entry[key]) for key in ("params", "metadata")}
    except (TypeError, KeyError, RecursionError, ValueError) as error:
        raise ValueError(f"no entry of a task: {str(text)[:80]!r}") from error
    if not isinstance(task, str) or scorer_of(task) is None:
        raise ValueError(f"task {task!r}: {why_refused(str(task))}")
    return {"task": task, "answer": answer, **found}


def score_answer(puzzle: str, answer: str) -> float:
    """
    The score of an answer, by the task's own rules. Runs for as long as the task's scorer does.

    Args:
        puzzle (`str`):
            Of [`encode_entry`].
        answer (`str`):
            The answer, found in a completion.

    Returns:
        `float`: in [0, 1]; 0 where the scorer fails on the answer.

    Raises:
        ValueError: the puzzle is no entry of a task that may be scored.
        ImportError: reasoning-gym is not installed.
    """
    entry = decode_entry(puzzle)
    task = entry["task"]
    if len(answer) > MAX_ANSWER or (task in _REPEATED_MOVES and _MANY.search(answer)):
        return 0.0
    if task in OWN_SCORERS:
        score = OWN_SCORERS[task](answer, entry)
    else:
        scorer = _library_task(task, json.dumps(_encode(entry["params"]))).score_answer
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # one of them prints the moves that it does not know
                score = scorer(answer, entry)
        # The library catches most of what an unexpected text raises, not all: any error is an answer of no use.
        except Exception:
            return 0.0
    if not isinstance(score, int | float) or not math.isfinite(score):
        return 0.0
    if task in CAPPED and answer.casefold() != str(entry["answer"]).strip().casefold():
        score = min(score, CAP)
    return float(min(max(score, 0.0), 1.0))


def make_library_task(task: str, params: dict[str, Any], *, seed: int, size: int) -> Any:
    """
    A data set of the library.

    Raises:
        ImportError: reasoning-gym is not installed.
    """
    try:
        import reasoning_gym
    except ImportError as error:
        raise ImportError(EXTRA) from error
    return reasoning_gym.create_dataset(task, **params, seed=seed, size=size)


@functools.lru_cache(maxsize=64)
def _library_task(task: str, params: str) -> Any:
    return make_library_task(task, _decode(json.loads(params)), seed=0, size=1)


def _encode(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)  # an enumeration's member or a numpy string is its text
    if isinstance(value, tuple):
        return {"tuple": [_encode(item) for item in value]}
    if isinstance(value, list):
        return [_encode(item) for item in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value) and not value.keys() & _TAGS:
            return {str(key): _encode(item) for key, item in value.items()}
        return {"items": [[_encode(key), _encode(item)] for key, item in value.items()]}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if hasattr(value, "item"):
        return _encode(value.item())  # a number of numpy
    raise TypeError(f"expected plain data, got {type(value).__name__}")


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if isinstance(value, dict):
        if value.keys() == {"tuple"}:
            return tuple(_decode(item) for item in value["tuple"])
        if value.keys() == {"items"}:
            return {_decode(key): _decode(item) for key, item in value["items"]}
        if value.keys() == {"fraction"}:
            return Fraction(*map(int, value["fraction"].split("/")))
        return {key: _decode(item) for key, item in value.items()}
    return value
