"""Measure a pipeline: wall time, accuracy, length and memory of its stages."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


FOLDER = Path(__file__).resolve().parent
ROW_KEYS = ("kind", "accuracy", "interval", "change", "mean_tokens", "format_share", "seconds", "peak_memory_mb")


def measure(name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Run the pipeline from the beginning once a seed.

    Args:
        name (`str`):
            Name of the experiment; its runs are kept in `benchmarks/runs/NAME/seed_N`.
        settings (`dict[str, Any]`):
            `pipeline` (path of the file, from the repository's top) and `seeds`.

    Returns:
        `tuple[dict[str, Any], str]`: for each seed the report's rows, the wall time of each stage's process and their
        sum, all in seconds; and a summary.
    """
    figures = {f"seed_{seed}": _run(name, settings["pipeline"], seed) for seed in settings["seeds"]}
    return figures, "; ".join(f"{seed} {_summary(run)}" for seed, run in figures.items())


def _run(name: str, pipeline: str, seed: int) -> dict[str, Any]:
    output = FOLDER / "runs" / name / f"seed_{seed}"
    arguments = [str(FOLDER.parent / pipeline), "--output_dir", str(output), "--seed", str(seed), "--restart"]
    subprocess.run([sys.executable, "-m", "trl_reasoning", "pipeline", *arguments], check=True)
    report = json.loads((output / "report.json").read_text())
    states = [json.loads(path.read_text()) for path in sorted(output.glob("stages/*/stage.json"))]
    seconds = {state["name"]: round(state["seconds"], 1) for state in states}
    return {
        "rows": {row["name"]: {key: row[key] for key in ROW_KEYS} for row in report["stages"]},
        "stage_seconds": seconds,
        "total_seconds": round(sum(seconds.values()), 1),
    }


def _summary(run: dict[str, Any]) -> str:
    rows = [
        f"{name} {row['accuracy']:.1%} [{row['interval'][0]:.1%}, {row['interval'][1]:.1%}], "
        f"{row['mean_tokens']:.1f} tokens"
        for name, row in run["rows"].items()
        if row["accuracy"] is not None
    ]
    return "; ".join([*rows, f"{run['total_seconds']:.0f} s"])
