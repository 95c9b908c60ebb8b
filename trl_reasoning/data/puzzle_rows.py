"""The rows of a task of reasoning-gym: drawn, shared out to the splits, without repeats, the same in every process."""

import contextlib
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from ..rewards._puzzle_entries import encode_entry, make_library_task, score_answer
from .errors import DataError


# One question in five is held out. The split is a property of the puzzle, so no seed or size can make the two overlap.
_HELDOUT_SHARE = 5
# The library draws question i of seed s from the sum s + i: starts are spread, so that neighbours share no questions.
_SEEDS = 2**31 - 2**24
# Some tasks plan all their questions when they are made, so they are made in parts.
_CHUNK = 500
# When to give up: so many known problems in a row, or so many draws in all (for each problem asked for).
_MAX_REPEATS = 500
_MAX_DRAWS, _MIN_DRAWS = 50, 5_000
# Tasks that draw from sets, whose order differs from process to process: ranks would get other rows. Found by
# comparing 40 problems of every task in processes with different hash seeds.
_ORDERED_BY_HASH = (
    "intermediate_integration",
    "isomorphic_strings",
    "knight_swap",
    "polynomial_multiplication",
    "ransom_note",
    "word_ladder",
)
# Where a problem has several wordings or orders, what is the same in all of them.
_SAME_PUZZLE = {"countdown": ("target", "numbers"), "puzzle24": ("numbers",)}
# Where a solution stands for a task whose `answer` is empty because many are right.
_EXAMPLE = "example_correct_answer"


def make_rows(
    path: str, task: str, settings: dict[str, Any], seed: int, level: int | None, split: str, size: int
) -> list[dict[str, Any]]:
    """The rows of one source; the arguments are those of [`load_reasoning_gym`], checked, as plain data."""
    if task in _ORDERED_BY_HASH and os.environ.get("PYTHONHASHSEED") != "0":
        return _in_fixed_order(path=path, task=task, settings=settings, seed=seed, level=level, split=split, size=size)
    with _seeded_generators(f"{task}-{split}-{seed}"):
        return list(_rows(path, task, settings, seed, level, split, size))


def _rows(
    path: str, task: str, settings: dict[str, Any], seed: int, level: int | None, split: str, size: int
) -> Iterator[dict[str, Any]]:
    for entry in _entries(path, task, settings, seed, split, size):
        solution = entry["answer"] or entry["metadata"].get(_EXAMPLE) or ""
        row = {"question": entry["question"], "solution": solution.strip(), "task": task, "puzzle": entry["puzzle"]}
        if level is not None:
            row["difficulty"] = level
        if task in _SAME_PUZZLE:
            row |= {"target": entry["metadata"].get("target", 24), "nums": entry["metadata"]["numbers"]}
        yield row


def _in_fixed_order(**arguments: Any) -> list[dict[str, Any]]:
    """The rows, made in a process of its own whose sets have a fixed order."""
    done = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import write_rows; write_rows()"],
        input=json.dumps(arguments),
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise DataError(f"datasets: {arguments['path']}: making its problems failed: {done.stderr.strip()[-500:]}")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise DataError(answer["error"])
    return answer["rows"]


def write_rows() -> None:
    """Make rows of the arguments that stand on stdin, and write them (or the error) to stdout, as JSON."""
    arguments = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        try:
            answer = {"rows": make_rows(**arguments)}
        except DataError as error:
            answer = {"error": str(error)}
    json.dump(answer, sys.stdout)


@contextlib.contextmanager
def _seeded_generators(name: str) -> Iterator[None]:
    """Some tasks draw from the global generators or seed them: they are seeded here, and put back afterwards."""
    import numpy as np

    states = random.getstate(), np.random.get_state()
    random.seed(name)
    np.random.seed(random.getrandbits(32))
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


def _entries(
    path: str, task: str, settings: dict[str, Any], seed: int, split: str, size: int
) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    bad = repeats = 0
    for entry in _draws(path, task, settings, f"reasoning-gym-{task}-{split}-{seed}", _MAX_DRAWS * size + _MIN_DRAWS):
        if len(seen) == size or repeats == _MAX_REPEATS:
            break
        key = puzzle_key(task, entry)
        if split_of(key) != split:
            continue
        if key in seen:
            repeats += 1
            continue
        repeats = 0
        entry["puzzle"] = encode_entry(task, settings, entry["answer"], entry["metadata"])
        if entry["answer"] and score_answer(entry["puzzle"], entry["answer"].strip()) < 1 - 1e-9:
            bad += 1
            if bad > max(20, len(seen)):
                raise DataError(f"datasets: {path}: the library's own answers do not score 1, as {entry['answer']!r}")
            continue
        seen.add(key)
        yield entry
    if len(seen) < size:
        raise DataError(
            f"datasets: size: found only {len(seen)} different problems of {path}, split {split}, with these params "
            f"(asked for {size}); ask for fewer, or widen the params"
        )


def _draws(path: str, task: str, settings: dict[str, Any], name: str, most: int) -> Iterator[dict[str, Any]]:
    """Problems of the library, one after the other."""
    start = random.Random(name).randrange(_SEEDS)
    for first in range(0, most, _CHUNK):
        try:
            problems = make_library_task(task, settings, seed=start + first, size=_CHUNK)
        except (AssertionError, TypeError, ValueError, KeyError, IndexError) as error:
            raise DataError(f"datasets: params: {path}: {error or type(error).__name__}") from error
        for index in range(_CHUNK):
            try:
                yield problems[index]
            except (AssertionError, ValueError, IndexError, RuntimeError) as error:
                raise DataError(f"datasets: {path}: cannot make a problem with these params: {error}") from error


def puzzle_key(task: str, entry: dict[str, Any]) -> str:
    """What makes two problems the same one, as text."""
    if task in _SAME_PUZZLE:
        values = [entry["metadata"][key] for key in _SAME_PUZZLE[task]]
        return repr([sorted(value) if isinstance(value, list) else value for value in values])
    return " ".join(entry["question"].split()).lower()


def split_of(key: str) -> str:
    """The split that a problem belongs to, by a hash of its key."""
    digest = hashlib.sha256(key.encode()).digest()
    return "test" if digest[0] % _HELDOUT_SHARE == 0 else "train"
