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
from ..losses import PreferencePairs, per_token
from ._checkpointing import settle_activation_checkpointing
from ._collapse import ACTIONS, CollapseCallback
from ._quantized import QuantizedBase
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
    Everything around them is the parent's: forward passes, the auxiliary loss of mixtures of experts, metrics.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
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
        self._log_pairs(pairs)
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

    def _log_pairs(self, pairs: PreferencePairs) -> None:
        columns = [
            pairs.chosen_lengths,
            pairs.rejected_lengths,
            per_token(pairs.chosen_logps, pairs.chosen_lengths),
            per_token(pairs.rejected_logps, pairs.rejected_lengths),
            *(self.pair_rewards(pairs) or ()),
        ]
        local = torch.stack([column.detach().float() for column in columns], dim=1)  # (N, 4) or (N, 6)
        rows: Any = self.accelerator.gather(local)
        chosen_lengths, rejected_lengths, chosen_logps, rejected_logps, *rewards = rows.unbind(dim=1)
        values = {
            "lengths/chosen": chosen_lengths.mean(),
            "lengths/rejected": rejected_lengths.mean(),
            "lengths/difference": (chosen_lengths - rejected_lengths).mean(),
            "lengths/chosen_longer": (chosen_lengths > rejected_lengths).float().mean(),
        }
        for name, logps, lengths in (
            ("chosen", chosen_logps, chosen_lengths),
            ("rejected", rejected_logps, rejected_lengths),
        ):
            if (lengths > 0).any():  # a reply without tokens has no average
                values[f"logps/{name}_per_token"] = logps[lengths > 0].mean()
        model: Any = self.model
        metrics = self._metrics["train" if model.training else "eval"]
        for name, value in values.items():
            metrics[name].append(value.item())
        if rewards:
            chosen, rejected = rewards
            own = {
                "rewards/chosen": chosen,
                "rewards/rejected": rejected,
                "rewards/margins": chosen - rejected,
                "rewards/accuracies": (chosen > rejected).float(),
            }
            for name, value in own.items():
                metrics[name][-1] = value.mean().item()  # in the place of TRL's

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
