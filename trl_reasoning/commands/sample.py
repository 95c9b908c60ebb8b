"""`trl-reasoning sample`: completions with their verdicts."""

import argparse
import statistics
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..config.errors import RecipeError
from ._sampling import SamplingSettings, add_sampling_arguments, load_problems, read_sampling_settings, sampling_params
from ._weights import load_model


if TYPE_CHECKING:
    from datasets import Dataset

    from ..generation import TransformersBackend

EXAMPLE = """example:
  trl-reasoning sample --model builtin:tiny --task builtin:chain --split train --output_dir outputs/samples \\
      --task_params.size 50 --samples 8 --max_new_tokens 64

  trl-reasoning sample ... --score '{name: reward_model, model: outputs/reward/helpful}'    # and a score for each
  trl-reasoning sample ... --score '[accuracy, {name: format, weight: 0.2}]'

  trl-reasoning sample ... --step_rollouts 8    # and step_labels.jsonl, on which `method: prm` trains

writes records.jsonl, one line a sample with its verdict; an interrupted run continues. A recipe trains on them with
`datasets: [{path: outputs/samples/records.jsonl, from_samples: {keep: right, take: shortest}}]`, or with
`pairs: {rule: best_worst}`. With another `score` the samples stay and are scored again."""


@dataclass
class SampleSettings(SamplingSettings):
    """The keys of a `sample` recipe."""

    score: str | dict[str, Any] | list[str | dict[str, Any]] | None = None
    step_rollouts: int | None = None
    step_split: Literal["line", "paragraph"] | None = None


SETTINGS = SampleSettings
OWN_HELP: dict[str, str] = {
    "score": "a reward or a list of rewards as in `reward_funcs`; each record gets their weighted sum as `score`",
    "step_rollouts": "continuations of each step prefix; the share that ends right is its label in step_labels.jsonl",
    "step_split": "what a step is: line (default) or paragraph; with step_rollouts",
}


def check_own(settings: SampleSettings) -> None:
    """Check the keys that `evaluate` does not have."""
    if settings.score is not None:
        from ..config.rewards import make_rewards

        make_rewards(_score_entries(settings), key="score")
    if settings.step_rollouts is None:
        if settings.step_split is not None:
            raise RecipeError("step_split", "has no effect without `step_rollouts`; set it, or remove this key")
    elif settings.step_rollouts < 1:
        raise RecipeError("step_rollouts", f"expected at least 1, got {settings.step_rollouts}")
    elif settings.temperature == 0 and settings.step_rollouts > 1:
        raise RecipeError("step_rollouts", "at temperature 0 all continuations are the same; set `temperature`, or 1")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_sampling_arguments(parser, "sample")


def run(args: argparse.Namespace, extra: list[str]) -> int:
    """Sample what the output folder does not hold yet."""
    from ..generation import sample_problems

    settings, base_dir = read_sampling_settings(args, extra, "sample")
    dataset = load_problems(settings, base_dir)
    if settings.score is not None:
        _check_rewards(settings, dataset)
    backend = load_model(settings)
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
    if settings.step_rollouts is not None:
        _label_steps(settings, backend, records)
    if settings.score is not None:
        del backend  # two models need not be in memory
        _score(settings, dataset, path)
    return 0


def _label_steps(settings: SampleSettings, backend: "TransformersBackend", records: list[dict[str, Any]]) -> None:
    from ..generation.step_labels import label_steps

    assert settings.step_rollouts is not None
    path = Path(settings.output_dir) / "step_labels.jsonl"
    rows = label_steps(
        backend,
        records,
        sampling_params(settings),
        rollouts=settings.step_rollouts,
        by=settings.step_split or "line",
        path=path,
        kind=settings.answer_kind,
        resume=not settings.restart,
        chat_template_kwargs=settings.chat_template_kwargs,
        progress=True,
    )
    labels = [label for row in rows for label in row["labels"]]
    mean = f", mean {statistics.mean(labels):.3f}" if labels else ""
    print(f"{len(labels)} step labels of {len(rows)} solutions in {path}{mean}")


def _score_entries(settings: SampleSettings) -> list[str | dict[str, Any]]:
    assert settings.score is not None
    return settings.score if isinstance(settings.score, list) else [settings.score]


def _check_rewards(settings: SampleSettings, dataset: "Dataset") -> None:
    """Before anything is sampled: a reward that misses a column or its model would stop the run at its end."""
    from ..config.reward_checks import check_ready
    from ..config.rewards import check_reward_models, make_rewards

    rewards = make_rewards(_score_entries(settings), key="score")
    check_reward_models(rewards, key="score")
    check_ready(rewards, key="score")
    for reward in rewards:
        for column in [*reward.columns, *([reward.route.column] if reward.route else [])]:
            if column not in dataset.column_names:
                found = ", ".join(dataset.column_names)
                raise RecipeError("score", f"`{reward.name}` needs the column `{column}` of the task; found: {found}")


def _score(settings: SampleSettings, dataset: "Dataset", path: Path) -> None:
    from ..config.rewards import log_name, make_rewards
    from ..generation import weights_hash
    from ..generation.scoring import WeightedReward, score_records

    entries = _score_entries(settings)
    models = [entry["model"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("model"), str)]
    records = score_records(
        path,
        dataset,
        [
            WeightedReward(log_name(reward.function), reward.function, reward.weight)
            for reward in make_rewards(entries, key="score")
        ],
        {"rewards": entries, "weights": {model: weights_hash(model) for model in models}},
        progress=True,
    )
    scores = [record["score"] for record in records if record["score"] is not None]
    mean = f"mean {statistics.mean(scores):.4g}, standard deviation {statistics.pstdev(scores):.4g}" if scores else ""
    print(f"{len(scores)} of {len(records)} samples have a score{': ' + mean if mean else ''}")
