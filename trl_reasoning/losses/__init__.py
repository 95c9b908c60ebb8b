"""Objectives in pure torch: policy gradients, advantages, averages over tokens and rows, divergences, pairs."""

from .advantages import group_advantages, normalize_steps, process_advantages, spread_steps
from .distillation import TopKLoss, chunked_top_k_loss, distillation_divergence, top_k_loss
from .divergence import k1, k2, k3
from .policy import cispo_loss, clipped_loss, sapo_loss, vespo_loss
from .preference import PreferencePairs, dpo_loss, ln_dpo_loss, per_token, simpo_loss
from .prm import prm_loss
from .reduction import REDUCTIONS, row_weights
from .reward import (
    bradley_terry_loss,
    demonstration_bias,
    option_preference,
    ordered_pairs,
    prompt_means,
    ranking_loss,
)
from .squared import kimi_baseline, kimi_loss
from .tokens import LossOutput, PolicyTokens
from .value import clipped_value_loss, generalized_advantages, shaped_rewards, whiten


__all__ = [
    "REDUCTIONS",
    "LossOutput",
    "PolicyTokens",
    "PreferencePairs",
    "TopKLoss",
    "bradley_terry_loss",
    "chunked_top_k_loss",
    "cispo_loss",
    "clipped_loss",
    "clipped_value_loss",
    "demonstration_bias",
    "distillation_divergence",
    "dpo_loss",
    "generalized_advantages",
    "group_advantages",
    "k1",
    "k2",
    "k3",
    "kimi_baseline",
    "kimi_loss",
    "ln_dpo_loss",
    "normalize_steps",
    "option_preference",
    "ordered_pairs",
    "per_token",
    "prm_loss",
    "process_advantages",
    "prompt_means",
    "ranking_loss",
    "row_weights",
    "sapo_loss",
    "shaped_rewards",
    "simpo_loss",
    "spread_steps",
    "top_k_loss",
    "vespo_loss",
    "whiten",
]
