"""The numbers that preference trainers log of each pair."""

from typing import Any

import torch

from ..losses import PreferencePairs, per_token


# Metric: the columns of `pair_columns` above and below the line.
PAIR_METRICS = {
    "lengths/chosen": ("chosen_tokens", "pairs"),
    "lengths/rejected": ("rejected_tokens", "pairs"),
    "lengths/difference": ("more_tokens", "pairs"),
    "lengths/chosen_longer": ("is_longer", "pairs"),
    # A reply without tokens has no average.
    "logps/chosen_per_token": ("chosen_average", "has_chosen"),
    "logps/rejected_per_token": ("rejected_average", "has_rejected"),
    # TRL's, which are means of batch means there.
    "logps/chosen": ("chosen_logp", "pairs"),
    "logps/rejected": ("rejected_logp", "pairs"),
    "rewards/chosen": ("chosen_reward", "pairs"),
    "rewards/rejected": ("rejected_reward", "pairs"),
    "rewards/margins": ("margin", "pairs"),
    "rewards/accuracies": ("is_right", "pairs"),
    "logits/chosen": ("chosen_logits", "chosen_tokens"),
    "logits/rejected": ("rejected_logits", "rejected_tokens"),
    "mean_token_accuracy": ("top1_tokens", "chosen_tokens"),
    "entropy": ("entropy", "tokens"),
}


def pair_columns(
    pairs: PreferencePairs,
    logps: tuple[torch.Tensor, torch.Tensor],
    rewards: tuple[torch.Tensor, torch.Tensor],
    output: Any,
    mask: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """
    One number a pair and column.

    Args:
        pairs ([`~trl_reasoning.losses.PreferencePairs`]):
            N pairs.
        logps (`tuple[torch.Tensor, torch.Tensor]`):
            (N,) each, log-probs of the chosen and the rejected replies as the loss reads them.
        rewards (`tuple[torch.Tensor, torch.Tensor]`):
            (N,) each.
        output (`Any`):
            The policy's, with `mean_logits`, `entropy` and `is_top1` of (2N, T').
        mask (`torch.Tensor`):
            (2N, T) of the replies' tokens, the chosen ones first; T' may be longer at the start.

    Returns:
        `dict[str, torch.Tensor]`: (N,) each.
    """

    def of_replies(values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return values[:, -mask.size(1) :].float().masked_fill(mask == 0, 0.0).sum(dim=1).chunk(2)

    chosen_logits, rejected_logits = of_replies(output.mean_logits)
    chosen_entropy, rejected_entropy = of_replies(output.entropy)
    chosen, rejected = rewards
    return {
        "pairs": torch.ones_like(chosen),
        "chosen_tokens": pairs.chosen_lengths,
        "rejected_tokens": pairs.rejected_lengths,
        "tokens": pairs.chosen_lengths + pairs.rejected_lengths,
        "more_tokens": pairs.chosen_lengths - pairs.rejected_lengths,
        "is_longer": pairs.chosen_lengths > pairs.rejected_lengths,
        "chosen_average": per_token(pairs.chosen_logps, pairs.chosen_lengths),
        "rejected_average": per_token(pairs.rejected_logps, pairs.rejected_lengths),
        "has_chosen": pairs.chosen_lengths > 0,
        "has_rejected": pairs.rejected_lengths > 0,
        "chosen_logp": logps[0],
        "rejected_logp": logps[1],
        "chosen_reward": chosen,
        "rejected_reward": rejected,
        "margin": chosen - rejected,
        "is_right": chosen > rejected,
        "chosen_logits": chosen_logits,
        "rejected_logits": rejected_logits,
        "top1_tokens": of_replies(output.is_top1)[0],
        "entropy": chosen_entropy + rejected_entropy,
    }


def shared_weights(mask: torch.Tensor, alpha: float | None) -> torch.Tensor:
    """
    Weights of the tokens in a reply's log-prob: `ld_alpha` beyond the shorter reply's length, 1 up to it.

    Args:
        mask (`torch.Tensor`):
            (2N, T) of the replies' tokens, the chosen ones first.
        alpha (`float`, *optional*):
            `ld_alpha`; without it all tokens weigh 1.

    Returns:
        `torch.Tensor`: (2N, T).

    Example:

    ```python
    >>> shared_weights(torch.tensor([[0, 1, 1, 1], [1, 1, 0, 0]]), 0.5).tolist()
    [[0.0, 1.0, 1.0, 0.5], [1.0, 1.0, 0.0, 0.0]]

    ```
    """
    if alpha is None:
        return mask.float()
    first, second = mask.sum(dim=1).chunk(2)
    shorter = torch.minimum(first, second).repeat(2).unsqueeze(1)  # (2N, 1)
    return torch.where(mask.cumsum(dim=1) <= shorter, 1.0, alpha) * mask
