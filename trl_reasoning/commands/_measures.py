"""What `evaluate` measures beside accuracy: held-out pairs, KL to a start model, win rate against other samples."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..config.convert import check_choice
from ..config.errors import RecipeError
from ._best_of import best_of_line, make_best_of
from ._sampling import SamplingSettings, source_errors
from ._weights import load_model


if TYPE_CHECKING:
    from datasets import Dataset

    from ..generation import TransformersBackend

# What a sampling setting has to be for the samples to be the model's own.
_OWN_DISTRIBUTION: dict[str, tuple[float | None, ...]] = {
    "temperature": (1.0,),
    "top_p": (1.0,),
    "top_k": (0,),
    "min_p": (None, 0.0),
    "repetition_penalty": (1.0,),
}


@dataclass
class EvaluateSettings(SamplingSettings):
    """The keys of an `evaluate` recipe."""

    task: str | dict[str, Any] | None = field(default=None, kw_only=True)  # pairs need none
    pairs: str | dict[str, Any] | None = None
    pairs_by: Literal["sum", "mean"] | None = None
    reference: str | None = None
    against: str | None = None
    judge: str | dict[str, Any] | None = None
    best_of: dict[str, Any] | None = None


MEASURE_HELP: dict[str, str] = {
    "pairs": "held-out preference pairs to measure accuracy on: a source like `task`; needs no task",
    "pairs_by": "log-probability that rates a reply of a pair: sum (default), or mean over its tokens",
    "reference": "model that this one started from: KL divergence to it on the task, implicit rewards on the pairs",
    "against": "records.jsonl of another model's evaluation on the same task: win rate against it",
    "best_of": "choose among samples: {model: FOLDER of a (process) reward model, aggregate: min, product, last}",
    "judge": "of the win rate: verifier (default), shorter_right, {name: reward_model, model: ...} or a dotted path",
}


def check_measures(settings: EvaluateSettings) -> None:
    """Check the keys that `sample` does not have."""
    from ..evaluation import is_reward_model

    if settings.task is None and settings.pairs is None:
        raise RecipeError("task", "is missing: the problems to solve; or give `pairs`, which can be measured without")
    if is_reward_model(settings.model):
        for key in ("task", "reference", "against", "adapter"):
            if getattr(settings, key) is not None:
                raise RecipeError(
                    key,
                    f"{settings.model} is a reward model, which writes no text: remove this key, `pairs` measure it",
                )
    needed = {"pairs_by": "pairs", "against": "task", "judge": "against", "best_of": "task"}
    for key, other in needed.items():
        if getattr(settings, key) is not None and getattr(settings, other) is None:
            raise RecipeError(key, f"has no effect without `{other}`; set it, or remove this key")
    if settings.reference is not None and settings.task is not None:
        for key, values in _OWN_DISTRIBUTION.items():
            if getattr(settings, key) not in values:
                raise RecipeError(
                    "reference",
                    "the KL divergence is measured on samples of the model's own distribution, which needs "
                    f"`{key}: {values[-1]}`, got {getattr(settings, key)}; set it, or remove `reference`",
                )
    if settings.pairs is not None:
        from ..data.source_spec import parse_source

        with source_errors("pairs"):
            parse_source(_pair_source(settings))
    if settings.judge is not None:
        _make_judge(settings)
    if settings.best_of is not None:
        make_best_of(settings.best_of)


def measure_identity(settings: EvaluateSettings) -> dict[str, str]:
    """Hashes of what the measures read beside the model: two runs with the same ones give the same numbers."""
    from ..generation import weights_hash

    found = {}
    if settings.reference is not None:
        found["reference_weights"] = weights_hash(settings.reference)
    if isinstance(settings.judge, dict) and "model" in settings.judge:
        found["judge_weights"] = weights_hash(settings.judge["model"])
    if settings.best_of is not None:
        found["best_of_weights"] = weights_hash(settings.best_of["model"])
    if settings.against is not None:
        found["against_hash"] = hashlib.sha256(_against(settings).read_bytes()).hexdigest()
    return found


class Measures:
    """
    The measures that the settings ask for; data is read at once, models when they are needed.

    Args:
        settings (`EvaluateSettings`):
            The settings.
        base_dir (`Path`, *optional*):
            Folder of the recipe file.
    """

    def __init__(self, settings: EvaluateSettings, base_dir: Path | None) -> None:
        from ..generation import read_records

        self.settings = settings
        self.pairs = load_measured_pairs(settings, base_dir)
        self.records = read_records(_against(settings)) if settings.against is not None else None

    def of_reward_model(self) -> dict[str, Any]:
        """Accuracy of a reward model on the pairs."""
        from ..evaluation import pair_score_accuracy
        from ..generation import RewardModelScorer

        settings = self.settings
        scorer = RewardModelScorer(
            settings.model, dtype=settings.dtype, device=settings.device, batch_size=settings.batch_size
        )
        assert self.pairs is not None
        return {"pairs": pair_score_accuracy(self.pairs, scorer)}

    def of_samples(self, records: list[dict[str, Any]], backend: "TransformersBackend") -> dict[str, Any]:
        """KL divergence and win rate of samples, and the model's accuracy on the pairs."""
        from ..evaluation import best_of_accuracy, divergence, win_rate

        settings, kwargs = self.settings, self.settings.chat_template_kwargs
        start = self._load_reference()
        metrics = {} if self.pairs is None else self.of_pairs(backend, start)
        if start is not None:
            metrics["divergence"] = {
                "reference": settings.reference,
                **divergence(records, backend, start, chat_template_kwargs=kwargs),
            }
        if self.records is not None:
            name, judge = _make_judge(settings)
            metrics["win_rate"] = {
                "against": settings.against,
                "judge": name,
                **win_rate(records, self.records, judge),
            }
        if settings.best_of is not None:
            scorer, aggregate = make_best_of(settings.best_of)
            how = {"model": scorer.path, "aggregate": aggregate}
            metrics["best_of"] = {**how, **best_of_accuracy(records, scorer, aggregate or "min")}
        return metrics

    def of_pairs(self, backend: "TransformersBackend", start: "TransformersBackend | None" = None) -> dict[str, Any]:
        """Accuracy of a language model on the pairs."""
        from ..evaluation import pair_accuracy

        assert self.pairs is not None
        settings = self.settings
        return {
            "pairs": pair_accuracy(
                self.pairs,
                backend,
                by=settings.pairs_by or "sum",
                reference=start or self._load_reference(),
                chat_template_kwargs=settings.chat_template_kwargs,
            )
        }

    def _load_reference(self) -> "TransformersBackend | None":
        if self.settings.reference is None:
            return None
        from dataclasses import replace

        return load_model(replace(self.settings, model=self.settings.reference, adapter=None))


def measure_lines(metrics: Mapping[str, Any]) -> list[str]:
    """One line for each measure that `metrics.json` holds."""
    from ..evaluation import format_accuracy

    lines = []
    if pairs := metrics.get("pairs"):
        kinds = ", ".join(
            f"{kind.replace('_', ' ')} {row['accuracy']:.1%} of {row['pairs']}"
            for kind, row in pairs["by_length"].items()
        )
        lines.append(
            f"pairs: accuracy {format_accuracy(pairs['accuracy'], pairs['interval'])} by {pairs['by']} ({kinds}), "
            f"mean tokens chosen {pairs['chosen_tokens']:.1f}, rejected {pairs['rejected_tokens']:.1f}"
        )
    if found := metrics.get("divergence"):
        interval = "" if found["interval"] is None else " [{:.3f}, {:.3f}]".format(*found["interval"])
        lines.append(
            f"KL to {found['reference']}: {found['per_reply']:.3f}{interval} nats a reply, "
            f"{found['per_token']:.4f} a token"
        )
    if (found := metrics.get("win_rate")) and found["rate"] is not None:
        lines.append(
            f"win rate {format_accuracy(found['rate'], found['interval'])} against {found['against']} by "
            f"{found['judge']}: won {found['won']:.1%}, tied {found['tied']:.1%}, lost {found['lost']:.1%}"
        )
    if (found := metrics.get("best_of")) and found["accuracy"] is not None:
        lines.append(best_of_line(found))
    return lines


def load_measured_pairs(settings: EvaluateSettings, base_dir: Path | None) -> "Dataset | None":
    """The held-out pairs, where the settings name some."""
    from ..evaluation import load_pairs

    if settings.pairs is None:
        return None
    with source_errors("pairs"):
        return load_pairs(_pair_source(settings), base_dir=base_dir)


def _pair_source(settings: EvaluateSettings) -> dict[str, Any]:
    from ..evaluation import task_source

    assert settings.pairs is not None
    return task_source(settings.pairs)


def _against(settings: EvaluateSettings) -> Path:
    path = Path(str(settings.against))
    if not path.is_file():
        raise RecipeError("against", f"no file {str(path)!r}; expected the records.jsonl of another evaluation")
    return path


def _make_judge(settings: EvaluateSettings) -> tuple[str, Callable[..., float]]:
    from ..config.rewards import make_reward
    from ..evaluation import JUDGES

    entry = settings.judge or "verifier"
    name = entry.get("name") if isinstance(entry, dict) else entry
    if not isinstance(name, str) or "." not in name:
        check_choice(name, tuple(JUDGES), "judge")
    judge = make_reward(entry, "judge", JUDGES).function
    return str(name), judge
