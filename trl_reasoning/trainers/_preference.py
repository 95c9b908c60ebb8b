"""What all preference methods share, and the one place that replaces TRL's `_compute_loss` of DPO."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from datasets import Dataset
from trl import DPOConfig, DPOTrainer

from ..errors import UserError
from ..losses import PreferencePairs
from ._checkpointing import settle_activation_checkpointing
from ._collapse import ACTIONS, CollapseCallback
from ._pair_metrics import PAIR_METRICS, pair_columns, shared_weights
from ._quantized import QuantizedBase
from ._row_totals import RowTotals
from ._saving import AdapterOnlySaving


logger = logging.getLogger(__name__)


@dataclass
class PreferenceConfig(DPOConfig):
    """
    [`~trl.DPOConfig`] with an alarm and a time limit.

    Args:
        collapse_alarm (`str`, *optional*, defaults to `"warn"`):
            What happens when the preferred replies become unlikely, too: `"warn"` once, `"stop"` the run with a
            checkpoint, or `"off"`. The mean of `logps/chosen_per_token` over the last ten logged steps is looked at.
        collapse_floor (`float`, *optional*):
            Average log-prob of the preferred replies, in nats per token, under which that is so. Unset, it is 1 nat
            below the mean of the run's first ten steps.
        max_seconds (`float`, *optional*):
            Stop after this many seconds of training, at the end of a step; a checkpoint is saved.
    """

    activation_checkpointing: bool | None = field(
        default=True, metadata={"help": "Whether to recompute activations in the backward pass, to save memory."}
    )
    collapse_alarm: str = field(
        default="warn",
        metadata={"help": "What to do when the preferred replies become unlikely, too.", "choices": list(ACTIONS)},
    )
    collapse_floor: float | None = field(
        default=None, metadata={"help": "Nats per token. Unset: 1 nat below the mean of the first ten steps."}
    )
    max_seconds: float | None = field(
        default=None,
        metadata={"help": "Stop after this many seconds of training, at the end of a step."},
    )

    def __post_init__(self) -> None:
        settle_activation_checkpointing(self)
        super().__post_init__()
        if self.beta <= 0:
            raise ValueError(f"beta: expected more than 0, got {self.beta}")
        if self.collapse_alarm not in ACTIONS:
            raise ValueError(f"collapse_alarm: expected one of {list(ACTIONS)}, got {self.collapse_alarm!r}")
        if self.collapse_floor is not None and self.collapse_floor >= 0:
            raise ValueError(
                f"collapse_floor: expected a log-prob per token, below 0, got {self.collapse_floor}; did you mean "
                f"{-self.collapse_floor or -5.0}?"
            )


class PreferenceTrainer(QuantizedBase, AdapterOnlySaving, DPOTrainer):
    """
    [`~trl.DPOTrainer`] that logs lengths and log-probs per token, and watches the likelihood of the preferred replies.

    A method whose loss TRL does not have writes `preference_loss`, one whose rewards are not TRL's `pair_rewards`.
    Everything around them is the parent's: forward passes and the auxiliary loss of mixtures of experts.

    A pair weighs alike wherever it stands: the loss is the mean over the pairs of the optimizer step, also where the
    last micro-batch is smaller (with the parent a smaller one weighs as much as a full one), and metrics are means
    over all pairs (or their tokens) since the last log, of an evaluation over each pair once. Only the terms that TRL
    computes over a whole micro-batch keep depending on how a step is split: `aot`, `aot_unpaired`, and `sft`, which is
    a mean over tokens.
    """

    # By the pairs of the optimizer step.
    loss_is_scaled_for_ga = True

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._totals = RowTotals(self.accelerator)
        config: Any = self.args
        if config.collapse_alarm != "off":
            self.add_callback(CollapseCallback(config.collapse_alarm, config.collapse_floor, self.collapse_advice))

    @property
    def collapse_advice(self) -> str:
        """What helps against a collapse, in this method's keys."""
        raise NotImplementedError

    def preference_loss(self, pairs: PreferencePairs) -> torch.Tensor | None:
        """(N,) losses of the pairs; None for TRL's own loss."""

    def pair_rewards(self, pairs: PreferencePairs) -> tuple[torch.Tensor, torch.Tensor] | None:
        """(N,) and (N,): rewards of the chosen and the rejected replies for the log; None for TRL's own."""

    def _get_num_items_in_batch(self, batch_samples: list, device: torch.device) -> torch.Tensor:
        """The pairs of the optimizer step, in all processes."""
        count = torch.tensor(sum(len(batch["input_ids"]) // 2 for batch in batch_samples), device=device)
        gathered: Any = self.accelerator.gather(count)
        return gathered.sum()

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        result = super().compute_loss(model, inputs, return_outputs)
        if num_items_in_batch is None:
            return result
        # Gradients are averaged over the processes.
        share = len(inputs["input_ids"]) // 2 * self.accelerator.num_processes / num_items_in_batch
        return (result[0] * share, result[1]) if return_outputs else result * share

    def _compute_loss(self, model: Any, inputs: dict[str, Any], return_outputs: bool) -> Any:
        policy = _Tap(model)
        with self._last_reference_output() as reference:
            result = super()._compute_loss(policy, inputs, return_outputs)
        pairs = self._pairs(policy.output, reference, inputs)
        losses = self.preference_loss(pairs)
        if losses is not None:
            loss = losses.mean()
            if self.aux_loss_enabled:
                loss = loss + self.router_aux_loss_coef * policy.output.aux_loss
            result = (loss, result[1]) if return_outputs else loss
        self._log_pairs(pairs, policy.output, reference, inputs)
        return result

    @contextmanager
    def _last_reference_output(self) -> Iterator[list[Any]]:
        """Fills the list with the output of the reference's forward pass; empty where there is none."""
        outputs: list[Any] = []
        if self.precompute_ref_logps:
            yield outputs
            return
        # Without a model of its own the reference is the policy's base or start adapter, which runs after the policy.
        reference: Any = self.model if self.ref_model is None else self.ref_model

        def keep(module: Any, args: Any, output: Any) -> None:
            outputs[:] = [output]

        handle = reference.register_forward_hook(keep)
        try:
            yield outputs
        finally:
            handle.remove()

    def _pairs(self, output: Any, reference: list[Any], inputs: dict[str, Any]) -> PreferencePairs:
        mask = inputs["completion_mask"][:, 1:]  # (2N, T), the chosen replies first
        chosen_lengths, rejected_lengths = mask.sum(dim=1).chunk(2)
        # Prompt tuning puts virtual tokens before the real ones.
        chosen_logps, rejected_logps = output.log_probs[:, -mask.size(1) :].sum(dim=1).chunk(2)
        if self.precompute_ref_logps:
            ref_chosen_logps, ref_rejected_logps = inputs["ref_chosen_logps"], inputs["ref_rejected_logps"]
        else:
            ref_logps = reference[0].log_probs[:, -mask.size(1) :].sum(dim=1)
            ref_chosen_logps, ref_rejected_logps = ref_logps.chunk(2)
        return PreferencePairs(
            chosen_logps, rejected_logps, chosen_lengths, rejected_lengths, ref_chosen_logps, ref_rejected_logps
        )

    def _log_pairs(self, pairs: PreferencePairs, output: Any, reference: list[Any], inputs: dict[str, Any]) -> None:
        mask = inputs["completion_mask"][:, 1:]  # (2N, T)
        weights = shared_weights(mask, self.ld_alpha)  # (2N, T)
        chosen, rejected = _weighted_sums(output, weights)
        rewards = self.pair_rewards(pairs)
        if rewards is None:  # TRL's
            known = pairs.ref_chosen_logps, pairs.ref_rejected_logps
            references = _weighted_sums(reference[0], weights) if reference else known
            rewards = self.beta * (chosen - references[0]), self.beta * (rejected - references[1])
        mode = self._mode()
        self._totals.add(mode, pair_columns(pairs, (chosen, rejected), rewards, output, mask))
        self._metrics[mode].update(self._totals.shares(mode, PAIR_METRICS))  # in the place of TRL's

    def _mode(self) -> str:
        model: Any = self.model
        return "train" if model.training else "eval"

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        self._totals.clear(self._mode())
        super().log(logs, start_time)

    def _prepare_dataset(self, dataset: Any, processing_class: Any, args: Any, dataset_name: str) -> Any:
        prepared = super()._prepare_dataset(dataset, processing_class, args, dataset_name)
        if isinstance(prepared, Dataset):
            dropped = len(dataset) - len(prepared)
            if len(prepared) == 0:
                raise UserError(
                    f"max_length: every prompt of the {dataset_name} rows fills {args.max_length} tokens, which "
                    "leaves none for a reply; raise it, or take shorter prompts"
                )
            if dropped:
                logger.warning(
                    "max_length: %d of %d %s rows are left out, their prompts fill %d tokens",
                    dropped, len(dataset), dataset_name, args.max_length,
                )  # fmt: skip
        return prepared


def _weighted_sums(output: Any, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(N,) and (N,): log-probs of the chosen and the rejected replies."""
    chosen, rejected = (output.log_probs[:, -weights.size(1) :].detach() * weights).sum(dim=1).chunk(2)
    return chosen, rejected


class _Tap:
    """Passes calls on to the policy and keeps what the first one gives."""

    def __init__(self, model: Any):
        self.policy = model
        self.output: Any = None

    def __call__(self, **kwargs: Any) -> Any:
        output = self.policy(**kwargs)
        if self.output is None:
            self.output = output
        return output
