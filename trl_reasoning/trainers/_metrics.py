"""Metrics of one optimizer step, gathered over its forward passes and reduced over the processes once."""

import math
from typing import Any

import torch

from ..losses.tokens import LossOutput


class WindowMetrics:
    """Sums and counts by name, and the least and greatest row means."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._sums: dict[str, torch.Tensor] = {}  # name: [sum, count]
        self._ratios: dict[str, tuple[float, float]] = {}
        self._scalars: dict[str, torch.Tensor] = {}
        self._minima: dict[str, list[torch.Tensor]] = {}
        self._maxima: dict[str, list[torch.Tensor]] = {}
        self._row_flags: set[str] = set()
        self._token_flags: set[str] = set()
        self._left_out = (0, 0)  # rows, tokens

    def add_output(self, output: LossOutput, mask: torch.Tensor, is_counted: bool = True) -> None:
        """
        Take the metrics of one pass; `mask` is (N, T).

        A pass that is not counted only makes the names known, which have to be the same in all processes.
        """
        for name, values in {**output.metrics, **output.flags}.items():
            self.add_mean(name, values, mask, is_counted)
        for name, values in output.flags.items():
            (self._row_flags if values.size(1) == 1 else self._token_flags).add(name)
        self._row_flags.update(
            name for name, values in {**output.minima, **output.maxima}.items() if values.size(1) == 1
        )
        for name, values in output.minima.items():
            self._minima.setdefault(name, []).append(_row_means(values, mask)[: None if is_counted else 0])
        for name, values in output.maxima.items():
            self._maxima.setdefault(name, []).append(_row_means(values, mask)[: None if is_counted else 0])

    def add_mean(self, name: str, values: torch.Tensor, mask: torch.Tensor, is_counted: bool = True) -> None:
        """A mean over loss tokens for values (N, T), over rows for (N, 1)."""
        values = values.detach()
        if values.size(1) == 1:
            pair = [values.sum(), values.new_tensor(float(len(values)))]
        else:
            pair = [(values * mask).sum(), mask.sum()]
        total = torch.stack([part.float() for part in pair])
        self._sums[name] = self._sums.get(name, 0.0) + (total if is_counted else torch.zeros_like(total))

    def add_ratio(self, name: str, numerator: float, denominator: float) -> None:
        """A share of numbers that each process counts for itself."""
        self._ratios[name] = (numerator, denominator)

    def add_scalar(self, name: str, value: torch.Tensor) -> None:
        """Values that are summed over passes and averaged over processes."""
        self._scalars[name] = self._scalars.get(name, 0.0) + value.float()

    def leave_out(self, rows: int, tokens: int) -> None:
        """Rows without a gradient, which no pass held, and their loss tokens: the flags are 0 there."""
        self._left_out = (rows, tokens)

    def reduce(self, accelerator: Any) -> dict[str, float]:
        """
        Reduce over the processes, which all call this with the same names, and start anew.

        Returns:
            `dict[str, float]`: NaN where nothing was gathered.
        """
        results: dict[str, float] = {}
        for name, pair in self._ratios.items():
            self._sums[name] = torch.tensor(pair, device=accelerator.device)
        if self._sums:
            rows, tokens = self._left_out
            for names, count in ((self._row_flags, rows), (self._token_flags, tokens)):
                for name in names & self._sums.keys():
                    self._sums[name][1] += count
            totals = accelerator.reduce(torch.stack(list(self._sums.values())), reduction="sum")
            for name, (total, count) in zip(self._sums, totals.tolist(), strict=True):
                results[name] = total / count if count else math.nan
        for name, value in self._scalars.items():
            results[name] = accelerator.gather(value).nanmean().item()
        for found, smallest in ((self._minima, True), (self._maxima, False)):
            for name, parts in found.items():
                means = torch.cat(parts)
                rows, tokens = self._left_out
                if rows if name in self._row_flags else tokens:
                    means = torch.cat([means, means.new_zeros(1)])
                means = means[~means.isnan()]  # rows without loss tokens
                worst = torch.tensor(math.inf if smallest else -math.inf, device=means.device)
                local = torch.cat([means, worst.view(1)])
                gathered = accelerator.gather(local.min() if smallest else local.max())
                value = (gathered.min() if smallest else gathered.max()).item()
                results[name] = value if abs(value) != math.inf else math.nan
        self._clear()
        return results


def _row_means(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """(N,), NaN for a row without loss tokens."""
    values = values.detach()
    if values.size(1) == 1:
        return values.squeeze(1)
    return (values * mask).sum(-1) / mask.sum(-1)
