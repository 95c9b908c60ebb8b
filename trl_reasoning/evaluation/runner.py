"""Evaluate a model on a dataset: sample, verify, summarize, and write records.jsonl and metrics.json."""

import json
import resource
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..generation import Backend, SamplingParams, sample_problems
from .summary import summarize


if TYPE_CHECKING:
    from datasets import Dataset

RECORDS, METRICS = "records.jsonl", "metrics.json"


def evaluate(
    backend: Backend,
    dataset: "Dataset",
    *,
    samples: int,
    params: SamplingParams,
    output_dir: str | Path,
    kind: str = "auto",
    resume: bool = True,
    chat_template_kwargs: dict[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    extra: Callable[[list[dict[str, Any]]], Mapping[str, Any]] | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """
    Measure a model on problems with gold answers.

    Args:
        backend ([`~trl_reasoning.generation.Backend`]):
            Generation backend.
        dataset ([`~datasets.Dataset`]):
            Problems with `prompt`, `solution` and optionally `difficulty`.
        samples (`int`):
            Completions for each problem.
        params ([`~trl_reasoning.generation.SamplingParams`]):
            How to draw.
        output_dir (`str` or `Path`):
            Where `records.jsonl` (one line a sample, continued after an interruption) and `metrics.json` are written.
        kind (`str`, *optional*, defaults to `"auto"`):
            Kind of answer, see [`~trl_reasoning.answers.verify`].
        resume (`bool`, *optional*, defaults to `True`):
            Keep the samples that are there.
        chat_template_kwargs (`dict`, *optional*):
            Passed to the chat template.
        settings (`Mapping`, *optional*):
            Written into `metrics.json` beside the sampling settings, for instance the task.
        extra (`Callable`, *optional*):
            Called with the records, which have their `token_ids`; gives further metrics.
        progress (`bool`, *optional*, defaults to `False`):
            Show a progress bar.

    Returns:
        `dict`: what [`~trl_reasoning.evaluation.summarize`] and `extra` give, `seconds` (time of sampling and
        verifying, over all interruptions), `tokens_per_second`, `peak_memory_mb` and `settings`; the content of
        `metrics.json`.

    Raises:
        [`~trl_reasoning.errors.UserError`]: when the dataset has no column `solution` or no rows.
    """
    if "solution" not in dataset.column_names:
        raise UserError(
            f"solution: the task has no such column, only {sorted(dataset.column_names)}; map the gold answers with "
            "`columns: {solution: NAME}`, or use `trl-reasoning sample`, which needs none"
        )
    if not len(dataset):
        raise UserError("task: the dataset has no rows")
    folder = Path(output_dir)
    records = sample_problems(
        backend,
        dataset,
        params,
        samples=samples,
        path=folder / RECORDS,
        kind=kind,
        resume=resume,
        chat_template_kwargs=chat_template_kwargs,
        keep_token_ids=True,
        progress=progress,
    )
    seconds = sum(record["seconds"] for record in records)
    metrics = {
        **summarize(records),
        **(extra(records) if extra else {}),
        "seconds": seconds,
        "tokens_per_second": sum(record["tokens"] for record in records) / seconds,
        "peak_memory_mb": peak_memory_mb(),
        "settings": {
            "model": backend.name,
            "samples": samples,
            **asdict(params),
            "stop_strings": list(params.stop_strings),
            **(settings or {}),
        },
    }
    write_metrics(folder, metrics)
    return metrics


def write_metrics(output_dir: str | Path, metrics: Mapping[str, Any]) -> None:
    """Write `metrics.json` into a folder, which is made where it is not there."""
    folder = Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / METRICS).write_text(json.dumps(metrics, indent=2) + "\n")


def finished_metrics(output_dir: str | Path, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """
    The metrics of an evaluation that is already done.

    Args:
        output_dir (`str` or `Path`):
            Folder of the evaluation.
        settings (`Mapping`):
            What its `settings` have to say.

    Returns:
        `dict` or `None`: the content of `metrics.json`, or `None` when there is none or its settings differ.
    """
    path = Path(output_dir) / METRICS
    if not path.is_file():
        return None
    metrics = json.loads(path.read_text())
    wanted = json.loads(json.dumps(dict(settings)))
    same = all(key in metrics["settings"] and metrics["settings"][key] == value for key, value in wanted.items())
    return metrics if same else None


def peak_memory_mb() -> float:
    """Most memory that this process has used, in MB: on the accelerator where torch has one, else resident memory."""
    if "torch" in sys.modules:
        import torch

        if torch.cuda.is_available():
            return torch.cuda.max_memory_allocated() / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10  # bytes on macOS, kilobytes elsewhere
