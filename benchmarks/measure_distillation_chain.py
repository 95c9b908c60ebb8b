"""Measure ways to a better small student: RL, traces and log-probs of a teacher, on-policy distillation; and costs."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml


FOLDER = Path(__file__).resolve().parent


def measure(name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Run the pipeline once a seed, and count what each arm cost on top of the student's base.

    Tokens are counted where they occur: `generated` by the student and by the teacher (completions), `trained` by the
    student and `scored` by the teacher (prompts included). GFLOP are 2 a parameter and token for a forward pass and 6
    for a training pass. The teacher's own training is not counted.

    Args:
        name (`str`):
            Name of the experiment; its runs are kept in `benchmarks/runs/NAME/seed_N`.
        settings (`dict[str, Any]`):
            `pipeline` (path of the file, from the repository's top), `seeds` and `arms`: for each row of the table the
            stages whose cost it bears, the last one being the model that is measured.

    Returns:
        `tuple[dict[str, Any], str]`: for each seed and arm accuracy, interval, tokens of an answer and cost.
    """
    figures = {f"seed_{seed}": _run(name, settings, seed) for seed in settings["seeds"]}
    return figures, "; ".join(f"{seed}: {_summary(arms)}" for seed, arms in figures.items())


def _run(name: str, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    output = FOLDER / "runs" / name / f"seed_{seed}"
    arguments = [str(FOLDER.parent / settings["pipeline"]), "--output_dir", str(output), "--seed", str(seed)]
    subprocess.run([sys.executable, "-m", "trl_reasoning", "pipeline", *arguments], check=True)
    rows = {row["name"]: row for row in json.loads((output / "report.json").read_text())["stages"]}
    arms = {}
    for arm, stages in settings["arms"].items():
        costs = [_cost(output / "stages", stage) for stage in stages]
        cost = {key: round(sum(each.get(key, 0.0) for each in costs), 1) for key in _COSTS}
        row = rows[stages[-1] if stages else arm]
        arms[arm] = {key: row[key] for key in ("accuracy", "interval", "mean_tokens", "format_share")} | cost
    return arms


_COSTS = ("student_generated", "teacher_generated", "trained", "teacher_scored", "gflop", "seconds")


def _cost(stages: Path, stage: str) -> dict[str, float]:
    """What one stage took of student and teacher."""
    folder = stages / stage
    seconds = json.loads((folder / "stage.json").read_text())["seconds"]
    if (folder / "records.jsonl").exists():  # the teacher's traces
        records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
        tokens = sum(record["tokens"] for record in records)
        gflop = 2e-9 * _parameters(stages / "teacher") * tokens
        return {"teacher_generated": tokens, "gflop": gflop, "seconds": seconds}
    recipe = yaml.safe_load((folder / "resolved.yaml").read_text())
    log = [json.loads(line) for line in (folder / "train_log.jsonl").read_text().splitlines()]
    read = max(row["num_tokens"] for row in log if "num_tokens" in row)
    rows = recipe["per_device_train_batch_size"] * recipe.get("gradient_accumulation_steps", 1)
    generated = sum(row.get("completions/mean_length", 0.0) for row in log) * rows
    # A generated token is also read with its prompt: all of `read` passes forward once more.
    passes = 6 + (2 if generated else 0)
    gflop = 1e-9 * passes * _parameters(folder) * read
    cost = {"student_generated": generated, "trained": read, "seconds": seconds}
    if "teacher_model_name_or_path" in recipe:
        # Stored log-probs are made once, whatever the number of epochs.
        scored = read if generated else read / recipe["num_train_epochs"]
        cost["teacher_scored"] = scored
        gflop += 2e-9 * _parameters(stages / "teacher") * scored
    return {**cost, "gflop": gflop}


def _parameters(folder: Path) -> int:
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", framework="numpy") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118 (not a dict)


def _summary(arms: dict[str, Any]) -> str:
    return ", ".join(
        f"{arm} {row['accuracy']:.1%} [{row['interval'][0]:.1%}, {row['interval'][1]:.1%}] at {row['gflop']:.0f} GFLOP"
        for arm, row in arms.items()
    )
