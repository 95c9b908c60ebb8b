"""Log-probs without gradient, by length: of the policy that sampled, and of a reference."""

from typing import Any

import torch
from accelerate.utils import DistributedType
from trl.models.utils import disable_gradient_checkpointing

from ._packing import join_batches, plan_passes, row_lengths, take_rows


class PackedScoring:
    """
    Mixin over [`~trl.GRPOTrainer`]: rows are scored in passes of like length, and only where the scores are read.

    The log-probs of the policy that sampled, which TRL computes for all rows at once when it samples, may wait for
    [`PackedUpdate`], whose own passes give most of them.
    """

    # Keys with one value per completion token. A method that adds one extends this.
    token_keys: frozenset[str] = frozenset(
        (
            "completion_ids",
            "completion_mask",
            "tool_mask",
            "old_per_token_logps",
            "ref_per_token_logps",
            "sampling_per_token_logps",
            "importance_sampling_ratio",
            "advantages",
        )
    )
    # Whether the log-probs of the sampling policy may wait for the first update; False for a method that needs them
    # at once.
    defers_old_logps = True

    def __init__(self, *args: Any, **kwargs: Any):
        self._deferring = False
        super().__init__(*args, **kwargs)
        plugin_free = self.accelerator.distributed_type not in (  # type: ignore[attr-defined]
            DistributedType.DEEPSPEED,
            DistributedType.FSDP,
        )
        self._packs = bool(
            self.args.pack_updates  # type: ignore[attr-defined]
            and plugin_free
            and self.top_entropy_quantile == 1.0  # type: ignore[attr-defined]
            and not self.aux_loss_enabled  # type: ignore[attr-defined]
            and self.pad_to_multiple_of is None  # type: ignore[attr-defined]
            and not self._is_vlm  # type: ignore[attr-defined]
        )

    def needs_logps(self, batch: dict[str, Any]) -> torch.Tensor:
        """(N,) bool: rows whose sampling log-probs a later update will read; by default those with a gradient."""
        return self.has_gradient(batch)  # type: ignore[attr-defined]

    def _token_budget(self, window: list[dict[str, Any]]) -> int:
        """Tokens of a pass: at most those of TRL's micro-batch."""
        if self.args.max_tokens_per_pass is not None:  # type: ignore[attr-defined]
            return self.args.max_tokens_per_pass  # type: ignore[attr-defined]
        rows = max(len(chunk["completion_mask"]) for chunk in window)
        return rows * max(chunk["prompt_ids"].size(1) + chunk["completion_ids"].size(1) for chunk in window)

    def _score(self, chunks: list[dict[str, Any]]) -> None:
        """Log-probs under the live policy, for those rows of the chunks that need them and have none."""
        if not chunks:
            return
        batch = join_batches(chunks, self.token_keys)
        needs = self.needs_logps(batch)
        if "old_per_token_logps" in batch:
            needs = needs & batch["old_per_token_logps"].isnan().all(dim=1)
        logps = self._packed_logps(self.model, batch, needs.nonzero().squeeze(1).tolist(), self._token_budget(chunks))  # type: ignore[attr-defined]
        start = 0
        for chunk in chunks:
            rows, width = chunk["completion_mask"].shape
            fresh = logps[start : start + rows, :width]
            old = chunk.get("old_per_token_logps", torch.full_like(fresh, torch.nan))
            # What no pass gave is never read; it must not be NaN, which means "the live policy".
            chunk["old_per_token_logps"] = torch.where(old.isnan(), fresh, old)
            start += rows

    def _packed_logps(self, model: Any, batch: dict[str, Any], rows: list[int], budget: int) -> torch.Tensor:
        """(N, T) log-probs without gradient, by length; 0 for the other rows and for padding."""
        logps = torch.zeros_like(batch["completion_mask"], dtype=torch.float32)
        lengths = row_lengths(batch)
        keys = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")
        needed = {key: batch[key] for key in keys}
        # Not the wrapper of several processes: they may make different numbers of these passes.
        model = self.accelerator.unwrap_model(model)  # type: ignore[attr-defined]
        with torch.no_grad(), disable_gradient_checkpointing(model, self.args.gradient_checkpointing_kwargs):  # type: ignore[attr-defined]
            for taken_rows in plan_passes(lengths, rows, budget):
                taken = take_rows(needed, taken_rows, lengths, self.token_keys)
                width = taken["completion_ids"].size(1)
                values, _, _ = super()._get_per_token_logps_and_entropies(  # type: ignore[misc]
                    model,
                    torch.cat([taken["prompt_ids"], taken["completion_ids"]], dim=1),
                    torch.cat([taken["prompt_mask"], taken["completion_mask"]], dim=1),
                    width,
                )
                logps[torch.tensor(taken_rows, device=logps.device), :width] = values.float()
        return logps

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        # The parent names a batch size where it scores a whole generation batch, without gradient.
        if not self._packs or batch_size is None:
            return super()._get_per_token_logps_and_entropies(  # type: ignore[misc]
                model, input_ids, attention_mask, logits_to_keep, batch_size, **kwargs
            )
        if self._deferring:
            self._deferring = False
            return torch.zeros_like(input_ids[:, -logits_to_keep:], dtype=torch.float32), None, None
        prompt = input_ids.size(1) - logits_to_keep
        batch = {
            "prompt_ids": input_ids[:, :prompt],
            "prompt_mask": attention_mask[:, :prompt],
            "completion_ids": input_ids[:, prompt:],
            "completion_mask": attention_mask[:, prompt:],
        }
        rows = list(range(len(input_ids)))
        return self._packed_logps(model, batch, rows, batch_size * input_ids.size(1)), None, None

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        args: Any = self.args  # type: ignore[attr-defined]
        wants_old = args.gradient_accumulation_steps % (args.steps_per_generation * self.num_iterations) != 0  # type: ignore[attr-defined]
        corrects = self.use_vllm and self.vllm_importance_sampling_correction  # type: ignore[attr-defined]
        defers = (
            self._packs and self.defers_old_logps and wants_old and not corrects and self.model.training  # type: ignore[attr-defined]
        )
        self._deferring = defers
        output = super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        if defers:
            del output["old_per_token_logps"]
        return output
