"""Held-out accuracy of a model that is being trained."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..generation import SamplingParams, TransformersBackend, sample_problems
from .summary import heldout_metrics


if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase


class LiveMeasure:
    """
    Samples held-out problems with the trainer's model and summarizes them.

    Every call draws with the same seed, so that two measurements of one run differ by the model alone. With several
    processes each one takes its part of the problems.

    Args:
        dataset ([`~datasets.Dataset`]):
            Problems with `prompt`, `solution` and optionally `difficulty`.
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            Tokenizer of the model.
        settings (`Mapping`):
            `samples` (a problem), `temperature`, `max_new_tokens` (`None`: the trainer's `max_completion_length`, or
            1024 where the trainer has none), and optionally `batch_size` (default 64).
    """

    def __init__(self, dataset: "Dataset", tokenizer: "PreTrainedTokenizerBase", settings: Mapping[str, Any]) -> None:
        self.dataset = dataset
        self.tokenizer = tokenizer
        self.settings = settings
        self.trainer: Any = None  # set once the trainer exists

    def __call__(self) -> dict[str, float]:
        """Metrics of [`~trl_reasoning.evaluation.heldout_metrics`]."""
        from accelerate.utils import gather_object

        accelerator, args = self.trainer.accelerator, self.trainer.args
        model = accelerator.unwrap_model(self.trainer.model)
        limit = self.settings.get("max_new_tokens") or vars(args).get("max_completion_length") or 1024
        params = SamplingParams(
            max_new_tokens=limit,
            temperature=self.settings.get("temperature", 1.0),
            stop_strings=tuple(vars(args).get("stop_strings") or ()),
            seed=args.seed,
        )
        backend = TransformersBackend(model, self.tokenizer, self.settings.get("batch_size", 64))
        part = self.dataset.shard(accelerator.num_processes, accelerator.process_index)
        records = sample_problems(
            backend,
            part,
            params,
            samples=self.settings.get("samples", 1),
            chat_template_kwargs=vars(args).get("chat_template_kwargs"),
        )
        for record in records:  # problem numbers of different processes must not meet
            record["id"] = record["id"] * accelerator.num_processes + accelerator.process_index
        return heldout_metrics(gather_object(records))
