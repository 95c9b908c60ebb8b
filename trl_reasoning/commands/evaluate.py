"""`trl-reasoning evaluate`: accuracy, length and format of a model on a task, and what else its recipe asks for."""

import argparse
from pathlib import Path
from typing import Any

from ._measures import MEASURE_HELP, EvaluateSettings, Measures, check_measures, measure_identity, measure_lines
from ._sampling import (
    add_sampling_arguments,
    identity,
    load_problems,
    read_sampling_settings,
    sampling_params,
)
from ._weights import load_model


EXAMPLE = """examples:
  trl-reasoning evaluate --model builtin:tiny --task builtin:chain --output_dir outputs/eval \\
      --task_params '{"operands": [3, 5], "size": 50}' --samples 4 --max_new_tokens 64
  trl-reasoning evaluate eval.yaml --temperature 0 --samples 1      # a file with the same keys and `kind: evaluate`
  trl-reasoning evaluate eval.yaml --model outputs/dpo --reference builtin:tiny --against outputs/eval/records.jsonl
  trl-reasoning evaluate --model outputs/reward --pairs builtin:chain_pairs --output_dir outputs/eval_reward

writes metrics.json and records.jsonl (one line a sample); an interrupted evaluation continues."""

SETTINGS = EvaluateSettings
OWN_HELP = MEASURE_HELP
check_own = check_measures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_sampling_arguments(parser, "evaluate")


def run(args: argparse.Namespace, extra: list[str]) -> int:
    """Evaluate, unless `metrics.json` already holds the result of the same settings."""
    from ..evaluation import finished_metrics

    settings, base_dir = read_sampling_settings(args, extra, "evaluate")
    same = {**identity(settings), **measure_identity(settings)}
    metrics = None if settings.restart else finished_metrics(settings.output_dir, same)
    if metrics is not None:
        print(f"{settings.output_dir}/metrics.json has these settings already; --restart draws again")
    elif settings.task is None:
        metrics = _measure_pairs(settings, base_dir, same)
    else:
        metrics = _evaluate(settings, base_dir, same)
    _show(metrics)
    return 0


def _measure_pairs(settings: EvaluateSettings, base_dir: Path | None, same: dict[str, Any]) -> dict[str, Any]:
    """Pairs alone, without a task: nothing is generated."""
    import time

    from ..evaluation import is_reward_model, peak_memory_mb, write_metrics

    started = time.perf_counter()
    measures = Measures(settings, base_dir)
    found = measures.of_reward_model() if is_reward_model(settings.model) else measures.of_pairs(load_model(settings))
    seconds = time.perf_counter() - started
    metrics = {**found, "seconds": seconds, "peak_memory_mb": peak_memory_mb(), "settings": same}
    write_metrics(settings.output_dir, metrics)
    return metrics


def _evaluate(settings: EvaluateSettings, base_dir: Path | None, same: dict[str, Any]) -> dict[str, Any]:
    from ..evaluation import evaluate

    dataset = load_problems(settings, base_dir)
    measures = Measures(settings, base_dir)
    backend = load_model(settings)
    return evaluate(
        backend,
        dataset,
        samples=settings.samples,
        params=sampling_params(settings),
        output_dir=settings.output_dir,
        kind=settings.answer_kind,
        resume=not settings.restart,
        chat_template_kwargs=settings.chat_template_kwargs,
        settings=same,
        extra=lambda records: measures.of_samples(records, backend),
        progress=True,
    )


def _show(metrics: dict[str, Any]) -> None:
    """One line a measure, and a table by difficulty where the task has one."""
    if "by_difficulty" in metrics:
        _show_accuracy(metrics)
    for line in measure_lines(metrics):
        print(line)


def _show_accuracy(metrics: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from ..evaluation import format_accuracy

    if metrics["by_difficulty"]:
        table = Table("difficulty", "accuracy (95 % interval)", "mean tokens", "problems", "samples")
        for level, row in metrics["by_difficulty"].items():
            accuracy = format_accuracy(row["accuracy"], row["interval"])
            table.add_row(level, accuracy, f"{row['mean_tokens']:.1f}", str(row["problems"]), str(row["samples"]))
        Console().print(table)
    if metrics["accuracy"] is None:
        print("no accuracy: no gold answer of the task can be read")
        return
    left_out = metrics["unreadable_gold_problems"]
    print(
        f"accuracy {format_accuracy(metrics['accuracy'], metrics['interval'])} "
        f"({metrics['problems']} problems, {metrics['samples']} samples"
        f"{f', {left_out} problems with an unreadable gold left out' if left_out else ''}), "
        f"mean tokens {metrics['mean_tokens']:.1f}, cut {metrics['cut_share']:.1%}, "
        f"unparsed {metrics['unparsed_share']:.1%}, {metrics['seconds']:.0f} s"
    )
