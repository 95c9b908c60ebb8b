"""Run the comparison of preference methods with several sets of pairs, and put its tables side by side."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


FOLDER = Path(__file__).resolve().parent
KEYS = ("accuracy", "interval", "mean_tokens", "mean_right_tokens", "cut_share", "format_share", "seconds")


def measure(name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Run the pipeline once a set of variables and a seed; finished stages of an earlier call are kept.

    Args:
        name (`str`):
            Name of the experiment; its runs are kept in `benchmarks/runs/NAME`, its picture is `results/NAME.png`.
        settings (`dict[str, Any]`):
            `pipeline` (path of the file, from the repository's top), `variables` (values of the pipeline's variables
            by a name for them), `workers` (pipelines at a time, one thread each) and `seeds`.

    Returns:
        `tuple[dict[str, Any], str]`: by name of the variables and seed, `rows` (one for each stage) and
        `total_seconds` (of all stages, whenever they ran); and a summary.
    """
    jobs = [(words, seed) for words in settings["variables"] for seed in settings["seeds"]]
    with ThreadPoolExecutor(settings["workers"]) as pool:

        def run(job: tuple[str, int]) -> dict[str, Any]:
            words, seed = job
            folder = FOLDER / "runs" / name / words.replace(" ", "_") / f"seed_{seed}"
            return _run(settings["pipeline"], folder, seed, settings["variables"][words])

        rows = dict(zip(jobs, pool.map(run, jobs), strict=True))
    figures: dict[str, Any] = {words: {} for words in settings["variables"]}
    for (words, seed), found in rows.items():
        figures[words][f"seed_{seed}"] = found
    _draw(figures, FOLDER / "results" / f"{name}.png")
    return figures, "; ".join(f"{words}: {_summary(seeds)}" for words, seeds in figures.items())


def _run(pipeline: str, output: Path, seed: int, variables: Mapping[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-m", "trl_reasoning", "pipeline", str(FOLDER.parent / pipeline)]
    command += ["--output_dir", str(output), "--seed", str(seed)]
    command += [word for key, value in variables.items() for word in (f"--variables.{key}", json.dumps(value))]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    states = [json.loads(path.read_text()) for path in output.glob("stages/*/stage.json")]
    return {"rows": read_rows(output), "total_seconds": round(sum(state["seconds"] for state in states), 1)}


def read_rows(output: Path) -> dict[str, Any]:
    """The numbers of each stage that was evaluated, from the report and the evaluations of a finished pipeline."""
    report = json.loads((output / "report.json").read_text())
    rows = {}
    for stage in report["stages"]:
        if stage["accuracy"] is None:
            continue
        folder = output / "stages" / f"{stage['name']}_eval"
        metrics = json.loads((folder / "metrics.json").read_text())
        records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
        run = json.loads((output / "stages" / stage["name"] / "run.json").read_text())
        row = {key: {**metrics, "seconds": stage["seconds"]}[key] for key in KEYS}
        row["steps"] = run["steps"]
        row["long_share"] = sum(map(_is_long, records)) / len(records)
        keys = ("accuracy", "interval", "by_length", "forms", "chosen_logprob", "rejected_logprob")
        row["pairs"] = _part(metrics["pairs"], keys)
        row["win_rate"] = _part(metrics.get("win_rate"), ("rate", "interval"))
        row["divergence"] = _part(metrics.get("divergence"), ("per_reply", "interval", "per_token"))
        rows[stage["name"]] = row
    return rows


def _is_long(record: Mapping[str, Any]) -> bool:
    """Whether a thought has more lines than the question has operations."""
    return record["thought"].count("\n") + 1 > record["difficulty"] - 1


def _part(measure: Mapping[str, Any] | None, keys: Sequence[str]) -> dict[str, Any] | None:
    return None if measure is None else {key: measure[key] for key in keys}


def _summary(seeds: Mapping[str, Any]) -> str:
    """Each stage's accuracy and tokens, a number for each seed."""

    def shown(stage: str, key: str, template: str) -> str:
        return "/".join(template.format(run["rows"][stage][key]) for run in seeds.values())

    stages = next(iter(seeds.values()))["rows"]
    return ", ".join(
        f"{stage} {shown(stage, 'accuracy', '{:.0%}')} at {shown(stage, 'mean_tokens', '{:.0f}')} tokens"
        for stage in stages
    )


def _draw(figures: Mapping[str, Any], path: Path) -> None:
    """Tokens and accuracy of each stage, a bar for each set of variables and a dot for each seed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(12, 4.5))
    for axis, key, label in zip(axes, ("mean_tokens", "accuracy"), ("tokens of a reply", "accuracy"), strict=True):
        for place, (words, seeds) in enumerate(figures.items()):
            stages = list(next(iter(seeds.values()))["rows"])
            shift = 0.8 * (place + 0.5) / len(figures) - 0.4
            values = [[run["rows"][stage][key] for run in seeds.values()] for stage in stages]
            positions = [index + shift for index in range(len(stages))]
            means = [sum(found) / len(found) for found in values]
            axis.bar(positions, means, width=0.75 / len(figures), color=f"C{place}", alpha=0.7, label=words)
            for position, found in zip(positions, values, strict=True):
                axis.plot([position] * len(found), found, "k.", markersize=5)
            axis.set_xticks(range(len(stages)), stages, rotation=20)
        axis.set_title(label)
    axes[0].legend()
    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
