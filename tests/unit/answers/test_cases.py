"""Our own table of answers and near misses, and the shared one of public reports."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

from trl_reasoning.answers import verify_batch


ROWS = [json.loads(line) for line in (Path(__file__).parent / "cases.jsonl").read_text(encoding="utf-8").splitlines()]
BY_CLASS = defaultdict(list)
for row in ROWS:
    BY_CLASS[row["class"].split(" A")[0]].append(row)


def verdicts_of(rows):
    predictions = [row.get("prediction", rf"\boxed{{{row.get('answer')}}}") for row in rows]
    verdicts = verify_batch(predictions, [row["gold"] for row in rows])
    late = [index for index, verdict in enumerate(verdicts) if verdict.rule == "time_limit"]
    # A machine with much other work can run into the limit; one that is only slow to start does so once.
    again = verify_batch([predictions[index] for index in late], [rows[index]["gold"] for index in late])
    return [again[late.index(index)] if index in late else verdict for index, verdict in enumerate(verdicts)]


def wrong_verdicts(rows):
    """Rows whose verdict is not the one of the table."""
    verdicts = verdicts_of(rows)
    outcomes = [{"right": True, "unreadable_gold": None}.get(verdict.status, False) for verdict in verdicts]
    return [
        (row, verdict) for row, verdict, right in zip(rows, verdicts, outcomes, strict=True) if right != row["right"]
    ]


@pytest.mark.parametrize("name", BY_CLASS)
def test_own_cases(name):
    assert wrong_verdicts(BY_CLASS[name]) == []


def test_every_public_report_has_a_case():
    reports = {row["class"].removeprefix("public report ") for row in ROWS if row["class"].startswith("public")}
    # A21 (golds against themselves) and A24 (a default that users need not write) are tested in test_gold_check.py.
    assert reports == {f"A{number}" for number in range(1, 25)} - {"A21", "A24"}


def test_shared_cases(shared_dir):
    lines = (shared_dir / "cases" / "verify_cases.jsonl").read_text(encoding="utf-8").splitlines()
    rows = list(map(json.loads, lines))
    assert len(rows) == 100
    assert wrong_verdicts(rows) == []
