"""Figures of an evaluation, in pure Python (and scipy, imported when first needed)."""

from ._intervals import accuracy_interval, mean_interval
from ._pass_at_k import pass_at_k


__all__ = ["accuracy_interval", "mean_interval", "pass_at_k"]
