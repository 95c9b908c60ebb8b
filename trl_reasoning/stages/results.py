"""What the finished stages found, as rows and curves of the pipeline's report."""

import json
from pathlib import Path
from typing import Any

from .definition import Pipeline, Stage
from .state import read_state


# A trained model's row keeps the cost of its training, not that of its evaluation.
_COST = ("seconds", "peak_memory_mb")


def report_rows(pipeline: Pipeline, root: Path) -> list[dict[str, Any]]:
    """
    One row a model: a stage that makes a model, with the numbers of its first evaluation (`of:`).

    Any other stage has a row of its own. A stage that failed or was stopped says so in its row's `note`; one that
    never ran has no row.

    Args:
        pipeline (`Pipeline`):
            The pipeline.
        root (`Path`):
            Its output folder.

    Returns:
        `list[dict[str, Any]]`: rows in the order of the stages with `name`, `kind` (the stage's role), `stage_kind`,
        `accuracy` and `interval` (`None` where the model was not evaluated), the other metrics of the evaluation,
        `seconds` and `peak_memory_mb` (of the training where the stage trained) and `records` (path of the samples).
    """
    rows: dict[str, dict[str, Any]] = {}
    for stage in pipeline.stages:
        folder = root / "stages" / stage.name
        state = read_state(folder)
        if not state:
            continue
        facts = _facts(stage, folder, state)
        model = rows.get(stage.of) if stage.of else None
        if model is not None and model["accuracy"] is None:
            model.update({key: value for key, value in facts.items() if key not in _COST or model[key] is None})
        else:
            names = {"name": stage.name, "kind": stage.role, "stage_kind": stage.kind}
            rows[stage.name] = {**names, "accuracy": None, "interval": None, **facts}
    return list(rows.values())


def report_curves(pipeline: Pipeline, root: Path) -> dict[str, list[dict[str, Any]]]:
    """
    The training logs of the finished stages.

    Args:
        pipeline (`Pipeline`):
            The pipeline.
        root (`Path`):
            Its output folder.

    Returns:
        `dict[str, list[dict[str, Any]]]`: for each training stage the rows of its `train_log.jsonl`.
    """
    curves = {}
    for stage in pipeline.stages:
        path = root / "stages" / stage.name / "train_log.jsonl"
        if stage.kind == "train" and path.is_file():
            curves[stage.name] = [json.loads(line) for line in path.read_text().splitlines()]
    return curves


def _facts(stage: Stage, folder: Path, state: dict[str, Any]) -> dict[str, Any]:
    """Cost and metrics of one stage from the files that its command wrote."""
    if state["status"] != "finished":
        note = f"stage {stage.name} did not finish ({state['status']}), its log is stages/{stage.name}/log.txt"
        return {**dict.fromkeys(_COST), "note": note}
    facts: dict[str, Any] = {"seconds": state["seconds"], "peak_memory_mb": None}
    if stage.kind == "train":
        run = json.loads((folder / "run.json").read_text())
        facts.update({key: run[key] for key in ("seconds", "peak_memory_mb", "steps", "method")})
    elif stage.kind == "evaluate":
        metrics = json.loads((folder / "metrics.json").read_text())
        facts.update({key: value for key, value in metrics.items() if key != "settings"})
        if (folder / "records.jsonl").is_file():  # an evaluation of pairs alone draws no samples
            facts["records"] = str(folder / "records.jsonl")
    return facts
