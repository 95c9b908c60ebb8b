"""The report of several stages: one table, its numbers as JSON, and the pictures."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..generation.records import read_records
from .plots import curve_series, curves_figure, difficulty_figure, stage_colors
from .stage_table import stage_notes, stage_table
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
# Present in a row only where they were measured.
MEASURE_KEYS = ("pairs", "divergence", "win_rate")
CURVES_PNG, DIFFICULTY_PNG = "curves.png", "by_difficulty.png"


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
            table); missing ones are null. `pairs`, `divergence` and `win_rate` (as in `metrics.json`) give columns of
            their own where a stage has them. Two more keys are read and not copied: `records`, the path of the stage's
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
    rows = [
        {
            **{key: stage.get(key) for key in STAGE_KEYS},
            **{key: stage[key] for key in MEASURE_KEYS if key in stage},
            "change": changes.get(stage["name"]),
        }
        for stage in stages
    ]
    series = {stage: found for stage, log in curves.items() if (found := curve_series(log))}
    report = {"stages": rows, "curves": series}
    (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    pictures = _draw(report, difficulty_label)
    for name in (CURVES_PNG, DIFFICULTY_PNG):
        (folder / name).unlink(missing_ok=True)  # a picture of an earlier report must not stand beside this one
    for name, (_, figure) in pictures.items():
        figure.savefig(folder / name)
    links = "".join(f"\n![{text}]({name})\n" for name, (text, _) in pictures.items())
    (folder / "report.md").write_text(f"# {title}\n\n{stage_table(rows)}{stage_notes(rows)}{links}")
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
