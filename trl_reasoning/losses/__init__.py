"""Objectives in pure torch: policy gradients, advantages, averages over tokens and rows, divergences."""

from .advantages import group_advantages, normalize_steps, process_advantages, spread_steps
from .divergence import k1, k2, k3
from .policy import cispo_loss, clipped_loss, sapo_loss, vespo_loss
from .reduction import REDUCTIONS, row_weights
from .squared import kimi_baseline, kimi_loss
from .tokens import LossOutput, PolicyTokens
from .value import clipped_value_loss, generalized_advantages, shaped_rewards, whiten


__all__ = [
    "REDUCTIONS",
    "LossOutput",
    "PolicyTokens",
    "cispo_loss",
    "clipped_loss",
    "clipped_value_loss",
    "generalized_advantages",
    "group_advantages",
    "k1",
    "k2",
    "k3",
    "kimi_baseline",
    "kimi_loss",
    "normalize_steps",
    "process_advantages",
    "row_weights",
    "sapo_loss",
    "shaped_rewards",
    "spread_steps",
    "vespo_loss",
    "whiten",
]
