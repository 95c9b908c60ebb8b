"""The one place that replaces TRL's `_compute_loss` of the GRPO family."""

from typing import Any

import torch

from ..losses.divergence import k3
from ..losses.reduction import row_weights
from ..losses.tokens import LossOutput, PolicyTokens
from ._metrics import WindowMetrics


# What the forward pass takes of a batch with images, as the parent names it.
_MULTIMODAL = (
    "pixel_values",
    "image_grid_thw",
    "num_images",
    "pixel_attention_mask",
    "spatial_shapes",
    "num_tiles",
    "image_sizes",
    "token_type_ids",
    "mm_token_type_ids",
    "image_position_ids",
)


class PolicyLoss:
    """
    Mixin for subclasses of [`~trl.GRPOTrainer`]: an objective is one method, `policy_loss`.

    Everything around the objective is the parent's: tool mask, entropy mask, off-policy mask, the correction for
    vLLM's numbers, the KL term, the entropy bonus with its controller, the auxiliary loss of mixtures of experts, the
    division for gradient accumulation and the names of the metrics. The average over tokens and rows is a weighted
    sum whose weights are known before the forward pass ([`~trl_reasoning.losses.row_weights`]), so that a caller may
    pass the rows of an optimizer step in any split, with the weights under `"row_weights"`.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        self._window_metrics = WindowMetrics()
        super().__init__(*args, **kwargs)

    @property
    def reduction(self) -> str:
        """Name of the average, one of [`~trl_reasoning.losses.REDUCTIONS`]."""
        raise NotImplementedError

    @property
    def applies_sampler_correction(self) -> bool:
        """Whether the correction for vLLM's numbers is multiplied on; False where the objective has it inside."""
        return True

    def policy_loss(self, tokens: PolicyTokens) -> LossOutput:
        """The objective before masks and averages; all that a method has to write."""
        raise NotImplementedError

    def has_gradient(self, batch: dict[str, Any]) -> torch.Tensor:
        """
        Rows that can move the policy.

        Args:
            batch (`dict`):
                Rows as the trainer keeps them.

        Returns:
            `torch.Tensor` of shape (N,), bool: False only where the gradient is exactly 0. With a KL term or an
            entropy bonus that is a row without loss tokens; else also one whose advantages are all 0.
        """
        weight = self.loss_mask(batch)  # (N, T)
        if self.beta == 0.0 and not self._entropy_bonus_enabled:  # type: ignore[attr-defined]
            weight = weight * _column(batch["advantages"])
            if self.applies_sampler_correction and batch.get("importance_sampling_ratio") is not None:
                weight = weight * batch["importance_sampling_ratio"]
        return (weight != 0).any(dim=1)

    def loss_mask(self, batch: dict[str, Any]) -> torch.Tensor:
        """(N, T), 1 for tokens that the policy wrote."""
        mask = batch["completion_mask"]
        return mask if batch.get("tool_mask") is None else mask * batch["tool_mask"]

    def batch_row_weights(self, batch: dict[str, Any]) -> torch.Tensor:
        """(N, 1): weights of one micro-batch's rows in the loss, accumulation and processes included."""
        accumulation = self._accumulation()
        batch_tokens = 1.0
        if self.reduction == "batch_tokens":
            # The count spans a generation batch in all processes; an optimizer step is a part or a multiple of it.
            batch_tokens = batch["num_items_in_batch"].clamp(min=1.0) / self.accelerator.num_processes  # type: ignore[attr-defined]
            if self.model.training:  # type: ignore[attr-defined]
                batch_tokens = batch_tokens * accumulation / self.args.steps_per_generation  # type: ignore[attr-defined]
        return row_weights(
            self.reduction,
            self.loss_mask(batch),
            accumulation=accumulation,
            constant=self.max_completion_length,  # type: ignore[attr-defined]
            batch_tokens=batch_tokens,
        )

    def _accumulation(self) -> float:
        return self.current_gradient_accumulation_steps if self.model.training else 1.0  # type: ignore[attr-defined]

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        mode = "train" if self.model.training else "eval"  # type: ignore[attr-defined]
        is_packed = "row_weights" in inputs
        mask = self.loss_mask(inputs)  # (N, T)
        per_token_logps, entropies, aux_loss = self._get_per_token_logps_and_entropies(  # type: ignore[attr-defined]
            model,
            torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1),
            torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1),
            inputs["completion_ids"].size(1),
            compute_entropy=True,
            compute_aux_loss=self.aux_loss_enabled,  # type: ignore[attr-defined]
            **{key: inputs.get(key) for key in _MULTIMODAL},
        )  # (N, T)
        entropy_mask = None
        if self.top_entropy_quantile < 1.0:  # type: ignore[attr-defined]
            entropy_mask = self.get_high_entropy_mask(entropies, mask, 1 - self.top_entropy_quantile)  # type: ignore[attr-defined]
        old_per_token_logps = per_token_logps.detach()
        if inputs.get("old_per_token_logps") is not None:
            # NaN marks rows that the live policy sampled, in a step that has others as well.
            recorded = inputs["old_per_token_logps"]
            old_per_token_logps = torch.where(recorded.isnan(), old_per_token_logps, recorded)
        log_ratio = per_token_logps - old_per_token_logps  # (N, T)
        if self.importance_sampling_level == "sequence":  # type: ignore[attr-defined]
            log_weights = (log_ratio * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1.0)
        else:
            log_weights = log_ratio
        tokens = PolicyTokens(
            per_token_logps=per_token_logps,
            old_per_token_logps=old_per_token_logps,
            ref_per_token_logps=inputs["ref_per_token_logps"] if self.beta != 0.0 else None,  # type: ignore[attr-defined]
            entropies=entropies,
            advantages=_column(inputs["advantages"]),
            mask=mask,
            log_weights=log_weights,
            importance_sampling_ratio=inputs.get("importance_sampling_ratio"),
            share=inputs.get("share", 1.0 / self._accumulation()),
            batch=inputs,
            model=model,
        )
        output = self.policy_loss(tokens)
        weights = inputs["row_weights"] if is_packed else self.batch_row_weights(inputs)  # (N, 1)
        loss, kl = self._weighted_sum(tokens, output, weights, entropy_mask)
        policy_loss = loss.detach()

        metrics = self._window_metrics
        is_counted = not inputs.get("is_filler", False)
        if self._entropy_bonus_enabled:  # type: ignore[attr-defined]
            loss = loss - self._entropy_bonus(inputs, entropies, mask, entropy_mask)
            metrics.add_scalar("policy_loss", policy_loss * self._policy_loss_scale(is_packed))
        if output.extra is not None:
            loss = loss + output.extra
        if self.aux_loss_enabled:  # type: ignore[attr-defined]
            loss = loss + self.router_aux_loss_coef * aux_loss * tokens.share  # type: ignore[attr-defined]
            metrics.add_scalar("aux_loss", aux_loss.detach() * (tokens.share * self._accumulation()))
        metrics.add_output(output, mask, is_counted)
        metrics.add_mean("entropy", entropies, mask, is_counted)
        if kl is not None:
            metrics.add_mean("kl", kl, mask, is_counted)
        if is_packed:
            self.keep_logps(inputs, per_token_logps.detach())
        else:
            self._finish_window(mode)
        return loss

    def keep_logps(self, batch: dict[str, Any], per_token_logps: torch.Tensor) -> None:
        """Called with the log-probs (N, T) of packed rows, whose numbers in the window are `batch["rows"]`."""

    def _weighted_sum(
        self, tokens: PolicyTokens, output: LossOutput, weights: torch.Tensor, entropy_mask: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The loss, and the KL estimate (N, T) that is part of it."""
        loss, mask = output.loss, tokens.mask
        if self.off_policy_mask_threshold is not None:  # type: ignore[attr-defined]
            loss = loss * self.get_off_policy_mask(  # type: ignore[attr-defined]
                advantages=tokens.advantages,
                per_token_logps=tokens.per_token_logps,
                # The sampler's own numbers, where known, also show how far the two engines differ.
                sampling_per_token_logps=tokens.batch.get("sampling_per_token_logps", tokens.old_per_token_logps),
                mask=mask,
                off_policy_threshold=self.off_policy_mask_threshold,  # type: ignore[attr-defined]
            )
        if entropy_mask is not None:
            loss = loss * entropy_mask
        if tokens.importance_sampling_ratio is not None and self.applies_sampler_correction:
            loss = loss * tokens.importance_sampling_ratio
        if self.reduction != "rows":
            loss = loss * mask
        total = (loss * weights).sum()
        if tokens.ref_per_token_logps is None:
            return total, None
        kl = k3(tokens.per_token_logps, tokens.ref_per_token_logps)  # (N, T)
        if self.args.use_bias_correction_kl:  # type: ignore[attr-defined]
            kl = kl * torch.exp(tokens.log_weights)
        return total + self.beta * (kl * mask * weights).sum(), kl  # type: ignore[attr-defined]

    def entropy_row_weights(self, batch: dict[str, Any]) -> torch.Tensor:
        """(N, 1): weights of the entropy bonus, a mean over a micro-batch's tokens."""
        return row_weights("token_mean", self.loss_mask(batch), accumulation=self._accumulation())

    def _entropy_bonus(
        self, inputs: dict[str, Any], entropies: torch.Tensor, mask: torch.Tensor, entropy_mask: torch.Tensor | None
    ) -> torch.Tensor:
        weights = inputs.get("entropy_row_weights")
        if entropy_mask is not None:
            mask = mask * entropy_mask
        if weights is None:
            weights = row_weights("token_mean", mask, accumulation=self._accumulation())
        coefficient = self.entropy_coef  # type: ignore[attr-defined]
        if self.use_adaptive_entropy:  # type: ignore[attr-defined]
            if self._last_world_entropy > self.args.entropy_target:  # type: ignore[attr-defined]
                coefficient = 0.0
            if self.model.training:  # type: ignore[attr-defined]
                sums = torch.stack([(entropies * mask).sum(), mask.sum()]).detach()
                sums = sums * float(not inputs.get("is_filler", False))
                earlier = self._entropy_window_stats
                self._entropy_window_stats = sums if earlier is None else earlier + sums
        return coefficient * (entropies * mask * weights).sum()

    def _policy_loss_scale(self, is_packed: bool) -> float:
        """The parent logs a micro-batch's mean, not yet divided for accumulation but by a whole step's tokens."""
        scale = 1.0 if self.reduction == "batch_tokens" else self._accumulation()
        return scale / self._accumulation() if is_packed else scale

    def _finish_window(self, mode: str) -> None:
        """Log what the passes since the last call gathered; all processes call this together."""
        for name, value in self._window_metrics.reduce(self.accelerator).items():  # type: ignore[attr-defined]
            self._metrics[mode][name].append(value)  # type: ignore[attr-defined]
        if mode == "train" and self._entropy_bonus_enabled and self.accelerator.sync_gradients:  # type: ignore[attr-defined]
            if self.use_adaptive_entropy:  # type: ignore[attr-defined]
                self._steer_entropy()
            self._metrics[mode]["entropy_coef"].append(self.entropy_coef)  # type: ignore[attr-defined]

    def _steer_entropy(self) -> None:
        sums: Any = self.accelerator.reduce(self._entropy_window_stats, reduction="sum")  # type: ignore[attr-defined]
        entropy = (sums[0] / sums[1].clamp(min=1.0)).item()
        args: Any = self.args  # type: ignore[attr-defined]
        if entropy <= args.entropy_target:
            self.entropy_coef = min(self.entropy_coef + args.entropy_coef_delta, args.entropy_coef_max)
        else:
            self.entropy_coef = max(self.entropy_coef - args.entropy_coef_delta, args.entropy_coef_min)
        self._last_world_entropy = entropy
        self._entropy_window_stats = None


def _column(advantages: torch.Tensor) -> torch.Tensor:
    """(N,) to (N, 1); (N, T) as it is."""
    return advantages.unsqueeze(1) if advantages.dim() == 1 else advantages
