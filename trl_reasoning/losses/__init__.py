"""Objectives in pure torch: policy gradients, averages over tokens and rows, divergences."""

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
    "k1",
    "k2",
    "k3",
    "kimi_baseline",
    "kimi_loss",
    "row_weights",
    "sapo_loss",
    "shaped_rewards",
    "vespo_loss",
    "whiten",
]
