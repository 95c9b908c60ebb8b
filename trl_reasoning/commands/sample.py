"""`trl-reasoning sample`: completions with their verdicts."""

import argparse
from collections import Counter
from pathlib import Path

from ._sampling import add_sampling_arguments, load_all, read_sampling_settings, sampling_params


EXAMPLE = """example:
  trl-reasoning sample --model builtin:tiny --task builtin:chain --split train --output_dir outputs/samples \\
      --task_params.size 50 --samples 8 --max_new_tokens 64

writes records.jsonl, one line a sample with its verdict; an interrupted run continues."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_sampling_arguments(parser)


def run(args: argparse.Namespace, extra: list[str]) -> int:
    """Sample what the output folder does not hold yet."""
    from ..generation import sample_problems

    settings, base_dir = read_sampling_settings(args, extra, "sample")
    backend, dataset = load_all(settings, base_dir)
    path = Path(settings.output_dir) / "records.jsonl"
    records = sample_problems(
        backend,
        dataset,
        sampling_params(settings),
        samples=settings.samples,
        path=path,
        kind=settings.answer_kind,
        resume=not settings.restart,
        chat_template_kwargs=settings.chat_template_kwargs,
        progress=True,
    )
    verdicts = Counter(record["status"] or "not judged" for record in records)
    shares = ", ".join(f"{status} {count / len(records):.1%}" for status, count in verdicts.most_common())
    print(f"{len(records)} samples of {len(dataset)} problems in {path}: {shares}")
    return 0
