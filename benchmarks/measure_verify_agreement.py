"""Count wrong verdicts of `answers`, math-verify and TRL's accuracy reward on answers whose verdict is known."""

import json
import os
import random
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from answer_cases import make_case, prediction_of
from measure_verify_speed import SIDES, check_all
from verify_rows import Check, math_golds


@dataclass(frozen=True)
class _Known:
    """A check with its class; a verdict of `None` says that the gold cannot be read."""

    kind: str
    check: Check


def measure(name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Give the same answers to each side.

    Args:
        name (`str`):
            Name of the experiment.
        settings (`dict[str, Any]`):
            `shared` (`env:NAME` of a folder), `generated` (answers of `answer_cases`), `memory_mb`, `examples`,
            `seeds` (the first one is used).

    Returns:
        `tuple[dict[str, Any], str]`: for each set of answers and each kind in it the number of answers and, by side,
        false accepts, false rejects, rows without a verdict that should have one, and examples; and a summary.
    """
    limit = settings["memory_mb"] * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    folder = Path(os.environ[settings["shared"].removeprefix("env:")])
    draw = random.Random(settings["seeds"][0])
    sets = {
        "generated": _generated(draw, settings["generated"]),
        "golds": [
            _Known("gold in a box", Check(rf"It is \boxed{{{gold}}}.", gold, True)) for gold in math_golds(folder)
        ],
        "cases": _cases(folder),
    }
    figures = {label: _by_kind(rows, settings["examples"]) for label, rows in sets.items()}
    summary = "; ".join(
        f"({label}, {len(sets[label])}) "
        + ", ".join(
            f"{side} {sum(kind[side]['false_accepts'] for kind in found.values())} false accepts "
            f"{sum(kind[side]['false_rejects'] for kind in found.values())} false rejects "
            f"{sum(kind[side]['none'] for kind in found.values())} none"
            for side in SIDES
        )
        for label, found in figures.items()
    )
    return figures, summary


def _generated(draw: random.Random, count: int) -> list[_Known]:
    rows = []
    for _ in range(count):
        case = make_case(draw)
        rows.append(_Known(case.kind, Check(prediction_of(case.answer, draw), case.gold, case.is_right)))
    return rows


def _cases(folder: Path) -> list[_Known]:
    lines = (folder / "cases" / "verify_cases.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [_Known("case", Check(row["prediction"], row["gold"] or "", row["right"])) for row in rows]


def _by_kind(rows: Sequence[_Known], examples: int) -> dict[str, dict[str, Any]]:
    verdicts = {side: [_verdict(side, row.check) for row in rows] for side in SIDES}
    figures: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(rows):
        found = figures.setdefault(row.kind, {"answers": 0, **{side: _nothing() for side in SIDES}})
        found["answers"] += 1
        for side in SIDES:
            verdict, truth = verdicts[side][number], row.check.is_right
            outcome = {
                (True, False): "false_accepts",
                (True, None): "false_accepts",
                (False, True): "false_rejects",
            }.get((verdict, truth), "none" if verdict is None and truth is not None else "")
            if outcome:
                found[side][outcome] += 1
                if len(found[side]["examples"]) < examples:
                    found[side]["examples"].append([outcome, row.check.prediction[:200], row.check.gold[:200]])
    return figures


def _nothing() -> dict[str, Any]:
    return {"false_accepts": 0, "false_rejects": 0, "none": 0, "examples": []}


def _verdict(side: str, check: Check) -> bool | None:
    try:
        return check_all(side, [check])[0]
    except Exception:  # a side that raises gives no verdict
        return None
