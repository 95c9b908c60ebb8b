"""`trl-reasoning evaluate`: accuracy, length and format of a model on a task."""

import argparse
from typing import Any

from ._sampling import add_sampling_arguments, identity, load_all, read_sampling_settings, sampling_params


EXAMPLE = """examples:
  trl-reasoning evaluate --model builtin:tiny --task builtin:chain --output_dir outputs/eval \\
      --task_params '{"operands": [3, 5], "size": 50}' --samples 4 --max_new_tokens 64
  trl-reasoning evaluate eval.yaml --temperature 0 --samples 1      # a file with the same keys and `kind: evaluate`

writes metrics.json and records.jsonl (one line a sample); an interrupted evaluation continues."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_sampling_arguments(parser)


def run(args: argparse.Namespace, extra: list[str]) -> int:
    """Evaluate, unless `metrics.json` already holds the result of the same settings."""
    from ..evaluation import evaluate, finished_metrics

    settings, base_dir = read_sampling_settings(args, extra, "evaluate")
    same = identity(settings)
    metrics = None if settings.restart else finished_metrics(settings.output_dir, same)
    if metrics is not None:
        print(f"{settings.output_dir}/metrics.json has these settings already; --restart draws again")
    else:
        backend, dataset = load_all(settings, base_dir)
        metrics = evaluate(
            backend,
            dataset,
            samples=settings.samples,
            params=sampling_params(settings),
            output_dir=settings.output_dir,
            kind=settings.answer_kind,
            resume=not settings.restart,
            chat_template_kwargs=settings.chat_template_kwargs,
            settings=same,
            progress=True,
        )
    _show(metrics)
    return 0


def _show(metrics: dict[str, Any]) -> None:
    """One line, and a table by difficulty where the task has one."""
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
