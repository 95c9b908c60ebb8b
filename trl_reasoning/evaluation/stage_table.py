"""The stages of a report as one markdown table, with what its columns mean."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


_NOTHING = "–"


def stage_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """
    The stages as one markdown table.

    Args:
        rows (`Sequence[Mapping]`):
            The `stages` of `report.json`.

    Returns:
        `str`: the table, with a dash for what was not measured.
    """
    columns = {
        "stage": lambda row: row["name"],
        "kind": lambda row: row["kind"],
        "accuracy (95 % interval)": lambda row: format_accuracy(row["accuracy"], row["interval"]),
        "change, in points": _format_change,
        "pair accuracy": lambda row: _format_share(row.get("pairs"), "accuracy"),
        "win rate": lambda row: _format_share(row.get("win_rate"), "rate"),
        "KL, nats a reply": _format_divergence,
        "mean tokens": lambda row: _number(row["mean_tokens"], "{:.1f}"),
        "thought tokens": lambda row: _number(row["mean_thought_tokens"], "{:.1f}"),
        "valid format": lambda row: _number(row["format_share"], "{:.1%}"),
        "cut": lambda row: _number(row["cut_share"], "{:.1%}"),
        "time": lambda row: _format_seconds(row["seconds"]),
        "peak memory": lambda row: _format_memory(row["peak_memory_mb"]),
    }
    for column, key in (
        ("change, in points", "change"),
        ("pair accuracy", "pairs"),
        ("win rate", "win_rate"),
        ("KL, nats a reply", "divergence"),
    ):
        if not any(row.get(key) for row in rows):
            del columns[column]
    lines = ["| " + " | ".join(columns) + " |", "|" + "|".join(["---", "---"] + ["---:"] * (len(columns) - 2)) + "|"]
    lines += ["| " + " | ".join(str(cell(row)) for cell in columns.values()) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def format_accuracy(accuracy: float | None, interval: Sequence[float] | None) -> str:
    """
    Accuracy and interval in per cent.

    Args:
        accuracy (`float`, *optional*):
            Share in [0, 1].
        interval (`Sequence[float]`, *optional*):
            Low and high end, as shares.

    Returns:
        `str`: for instance `"93.5% [90.1, 96.0]"`, a dash for `None`.

    Example:

    ```python
    >>> format_accuracy(0.935, [0.901, 0.96])
    '93.5% [90.1, 96.0]'

    ```
    """
    if accuracy is None or interval is None:
        return _number(accuracy, "{:.1%}")
    return f"{accuracy:.1%} [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]"


def stage_notes(rows: Sequence[Mapping[str, Any]]) -> str:
    """What stands below the table: the notes of the stages, and what the columns mean."""
    notes = [f"- {row['name']}: {row['note']}\n" for row in rows if row["note"]]
    if any(row["accuracy"] is not None for row in rows):
        notes.append(
            "- Accuracy is the mean over problems of the share of right samples (pass@1). Its interval treats the "
            "problems as a sample of the task.\n"
        )
    compared = {row["change"]["against"] for row in rows if row["change"]}
    if compared:
        notes.append(
            f"- Change: accuracy minus that of {', '.join(sorted(compared))}, problem by problem, with its 95 % "
            "interval.\n"
        )
    notes += _measure_notes(rows)
    return "\n" + "".join(notes) if notes else ""


def _measure_notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the columns of further measures mean, for those that the table has."""
    forms = _distinct(rows, "pairs", "by")
    judges, rivals = _distinct(rows, "win_rate", "judge"), _distinct(rows, "win_rate", "against")
    starts = _distinct(rows, "divergence", "reference")
    notes = []
    if forms:
        notes.append(
            f"- Pair accuracy: share of held-out pairs whose chosen reply has the higher {forms} (sum or mean of its "
            "tokens' log-probabilities, or a reward model's score).\n"
        )
    if judges:
        notes.append(
            f"- Win rate: against the samples in {rivals} on the same problems, judged by {judges}; ties count half.\n"
        )
    if starts:
        notes.append(f"- KL: divergence to {starts} on the model's own samples.\n")
    return notes


def _distinct(rows: Sequence[Mapping[str, Any]], measure: str, key: str) -> str:
    return ", ".join(dict.fromkeys(_short(str(row[measure][key])) for row in rows if row.get(measure)))


def _short(value: str) -> str:
    """The folder's name alone for samples and for a model in a folder: in a pipeline that is the stage's."""
    path = Path(value)
    if path.name == "records.jsonl":
        return path.parent.name
    return path.name if path.is_dir() else value


def _format_share(measure: Mapping[str, Any] | None, key: str) -> str:
    return _NOTHING if measure is None else format_accuracy(measure[key], measure["interval"])


def _format_divergence(row: Mapping[str, Any]) -> str:
    measure = row.get("divergence")
    if measure is None or measure["interval"] is None:
        return _number(measure and measure["per_reply"], "{:.2f}")
    return f"{measure['per_reply']:.2f} [{measure['interval'][0]:.2f}, {measure['interval'][1]:.2f}]"


def _format_change(row: Mapping[str, Any]) -> str:
    if row["change"] is None:
        return _NOTHING
    low, high = row["change"]["interval"]
    return f"{100 * row['change']['change']:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def _format_seconds(seconds: float | None) -> str:
    if seconds is None or seconds < 600:
        return _number(seconds, "{:.0f} s")
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _format_memory(megabytes: float | None) -> str:
    if megabytes is None or megabytes < 10_000:
        return _number(megabytes, "{:.0f} MB")
    return f"{megabytes / 1024:.1f} GB"


def _number(value: float | None, template: str) -> str:
    return _NOTHING if value is None else template.format(value)
