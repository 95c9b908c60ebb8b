"""The report of several stages: one table, its numbers as JSON, and the pictures."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..generation.records import read_records
from .plots import curve_series, curves_figure, difficulty_figure, stage_colors
from .summary import paired_change


if TYPE_CHECKING:
    from matplotlib.figure import Figure

STAGE_KEYS = (
    "name",
    "kind",
    "accuracy",
    "interval",
    "problems",
    "samples",
    "mean_tokens",
    "mean_thought_tokens",
    "format_share",
    "cut_share",
    "unparsed_share",
    "seconds",
    "peak_memory_mb",
    "by_difficulty",
    "note",
)
CURVES_PNG, DIFFICULTY_PNG = "curves.png", "by_difficulty.png"
_NOTHING = "–"


def write_report(
    output_dir: str | Path,
    stages: Sequence[Mapping[str, Any]],
    curves: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    title: str = "Report",
    difficulty_label: str = "difficulty of the problem",
) -> dict[str, Any]:
    """
    Write `report.md`, `report.json` and the plots.

    Args:
        output_dir (`str` or `Path`):
            Folder of the report.
        stages (`Sequence[Mapping]`):
            One row a stage with `name` and `kind` (base, sft, rl, control, eval, ...) and any of `accuracy`,
            `interval` (`[low, high]`), `problems`, `samples`, `mean_tokens`, `mean_thought_tokens`, `format_share`,
            `cut_share`, `unparsed_share`, `seconds`, `peak_memory_mb`, `by_difficulty`, `note` (shown below the
            table); missing ones are null. Two more keys are read and not copied: `records`, the path of the stage's
            `records.jsonl`, gives the paired change against the stage `compare_to`, by default the first row with
            records.
        curves (`Mapping[str, Sequence[Mapping]]`):
            Training stage to the lines of its `train_log.jsonl`.
        title (`str`, *optional*, defaults to `"Report"`):
            Heading.
        difficulty_label (`str`, *optional*, defaults to `"difficulty of the problem"`):
            Label of the x axis of the plot by difficulty.

    Returns:
        `dict`: the content of `report.json`: `stages`, each with the keys above and `change` (`against`, `change`,
        `interval`, `problems`, or null), and `curves`, the plotted series of each stage by log key.
    """
    folder = Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    changes = _changes(stages)
    rows = [{**{key: stage.get(key) for key in STAGE_KEYS}, "change": changes.get(stage["name"])} for stage in stages]
    series = {stage: found for stage, log in curves.items() if (found := curve_series(log))}
    report = {"stages": rows, "curves": series}
    (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    pictures = _draw(report, difficulty_label)
    for name in (CURVES_PNG, DIFFICULTY_PNG):
        (folder / name).unlink(missing_ok=True)  # a picture of an earlier report must not stand beside this one
    for name, (_, figure) in pictures.items():
        figure.savefig(folder / name)
    links = "".join(f"\n![{text}]({name})\n" for name, (text, _) in pictures.items())
    (folder / "report.md").write_text(f"# {title}\n\n{stage_table(rows)}{_notes(rows)}{links}")
    return report


def report_figures(
    report: Mapping[str, Any], *, difficulty_label: str = "difficulty of the problem"
) -> "dict[str, Figure]":
    """
    The pictures of a report.

    Args:
        report (`Mapping`):
            Content of `report.json`.
        difficulty_label (`str`, *optional*, defaults to `"difficulty of the problem"`):
            Label of the x axis of the plot by difficulty.

    Returns:
        `dict[str, Figure]`: file name to figure; a picture without data is left out.
    """
    return {name: figure for name, (_, figure) in _draw(report, difficulty_label).items()}


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
        "mean tokens": lambda row: _number(row["mean_tokens"], "{:.1f}"),
        "thought tokens": lambda row: _number(row["mean_thought_tokens"], "{:.1f}"),
        "valid format": lambda row: _number(row["format_share"], "{:.1%}"),
        "cut": lambda row: _number(row["cut_share"], "{:.1%}"),
        "time": lambda row: _format_seconds(row["seconds"]),
        "peak memory": lambda row: _format_memory(row["peak_memory_mb"]),
    }
    if not any(row["change"] for row in rows):
        del columns["change, in points"]
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


def _changes(stages: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Stage name to its change against the stage it is compared to, where both were measured on the same problems."""
    records = {stage["name"]: read_records(stage["records"]) for stage in stages if stage.get("records")}
    changes = {}
    for stage in stages:
        against = stage.get("compare_to") or next(iter(records), None)
        if stage["name"] not in records or against not in records or against == stage["name"]:
            continue
        change = paired_change(records[against], records[stage["name"]])
        if change is not None:
            changes[stage["name"]] = {"against": against, **change}
    return changes


def _draw(report: Mapping[str, Any], difficulty_label: str) -> "dict[str, tuple[str, Figure]]":
    """File name to the text of its link and the figure."""
    curves = report["curves"]
    levels = {row["name"]: row["by_difficulty"] for row in report["stages"] if row["by_difficulty"]}
    colors = stage_colors([*(row["name"] for row in report["stages"]), *curves])
    pictures = {}
    if curves:
        pictures[CURVES_PNG] = ("Accuracy and completion length over training steps", curves_figure(curves, colors))
    if levels:
        figure = difficulty_figure(levels, colors, difficulty_label=difficulty_label)
        pictures[DIFFICULTY_PNG] = ("Accuracy by difficulty before and after", figure)
    return pictures


def _notes(rows: Sequence[Mapping[str, Any]]) -> str:
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
    return "\n" + "".join(notes) if notes else ""


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
