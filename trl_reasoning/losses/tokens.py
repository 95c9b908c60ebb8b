"""What a policy objective gets to see and what it gives back."""

from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass
class PolicyTokens:
    """
    The completions of one forward pass, N rows padded on the right to T tokens.

    Args:
        per_token_logps (`torch.Tensor`):
            (N, T) log-probabilities under the live policy, in nats, with gradient.
        old_per_token_logps (`torch.Tensor`):
            (N, T) under the policy that sampled; `per_token_logps.detach()` where that is the live one.
        ref_per_token_logps (`torch.Tensor`, *optional*):
            (N, T) under the reference; only where the trainer has a KL term.
        entropies (`torch.Tensor`):
            (N, T) entropy of the next-token distribution, in nats.
        advantages (`torch.Tensor`):
            (N, 1) or (N, T).
        mask (`torch.Tensor`):
            (N, T), 1 where a token takes part in the loss.
        log_weights (`torch.Tensor`):
            Log of the importance ratio to the policy that sampled: (N, T), or (N, 1) at the sequence level (the mean
            over a row's tokens).
        importance_sampling_ratio (`torch.Tensor`, *optional*):
            (N, T) or (N, 1), correction for a sampler whose numbers differ from the trainer's. The trainer applies it.
        share (`float`):
            Share of this pass in the optimizer step; the shares of one process add up to 1.
        batch (`dict[str, Any]`):
            All that the trainer keeps of these rows.
        model (`Any`):
            The model of this pass, as the trainer wrapped it.
    """

    per_token_logps: torch.Tensor
    old_per_token_logps: torch.Tensor
    ref_per_token_logps: torch.Tensor | None
    entropies: torch.Tensor
    advantages: torch.Tensor
    mask: torch.Tensor
    log_weights: torch.Tensor
    importance_sampling_ratio: torch.Tensor | None = None
    share: float = 1.0
    batch: dict[str, Any] = field(default_factory=dict)
    model: Any = None


@dataclass
class LossOutput:
    """
    An objective's value before masks, corrections, the KL term and the average.

    Args:
        loss (`torch.Tensor`):
            (N, T) for each token, or (N, 1) for each row.
        metrics (`dict[str, torch.Tensor]`):
            (N, T) or (N, 1); logged as the mean over the loss tokens, or the rows, of all processes.
        flags (`dict[str, torch.Tensor]`):
            Like `metrics`, for 0/1 values that are 0 in every row without a gradient: such rows count although they
            were left out of the pass.
        minima, maxima (`dict[str, torch.Tensor]`):
            Flags whose least or greatest mean over a row is logged.
        extra (`torch.Tensor`, *optional*):
            Scalar that is added to the loss as it is; scale it with [`PolicyTokens`]`.share`.
    """

    loss: torch.Tensor
    metrics: dict[str, torch.Tensor] = field(default_factory=dict)
    flags: dict[str, torch.Tensor] = field(default_factory=dict)
    minima: dict[str, torch.Tensor] = field(default_factory=dict)
    maxima: dict[str, torch.Tensor] = field(default_factory=dict)
    extra: torch.Tensor | None = None
