"""Metrics that are sums over rows divided by counts, whatever the batches were."""

from collections.abc import Mapping
from typing import Any

import torch


class RowTotals:
    """
    Sums of columns over all rows since the last log, in all processes, for training and evaluation apart.

    A mean of batch means would count the rows of a small last batch more than others.

    Args:
        accelerator ([`~accelerate.Accelerator`]):
            The trainer's.
    """

    def __init__(self, accelerator: Any):
        self._accelerator = accelerator
        self._sums: dict[str, dict[str, float]] = {"train": {}, "eval": {}}

    def add(self, mode: str, columns: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """
        Add the rows of a batch.

        Args:
            mode (`str`):
                `"train"` or `"eval"`.
            columns (`Mapping[str, torch.Tensor]`):
                (N,) each.

        Returns:
            `dict[str, torch.Tensor]`: the columns of this batch in all processes.
        """
        local = torch.stack([column.detach().float() for column in columns.values()], dim=1)  # (N, C)
        # Rows that only fill up the last batch of an evaluation in several processes are left out. In training they
        # are learnt from, and all micro-batches of an epoch's last step would be cut to the size of the last one.
        gather = self._accelerator.gather_for_metrics if mode == "eval" else self._accelerator.gather
        rows = gather(local).cpu().double()  # (N_global, C)
        found = dict(zip(columns, rows.unbind(1), strict=True))
        sums = self._sums[mode]
        for name, column in found.items():
            sums[name] = sums.get(name, 0.0) + column.sum().item()
        return found

    def shares(self, mode: str, metrics: Mapping[str, tuple[str, str]]) -> dict[str, list[float]]:
        """
        Quotients of the sums so far, as the one-element lists that TRL's log takes the mean of.

        Args:
            mode (`str`):
                `"train"` or `"eval"`.
            metrics (`Mapping[str, tuple[str, str]]`):
                By metric the columns above and below the line.

        Returns:
            `dict[str, list[float]]`: without the metrics that no row counts for.
        """
        sums = self._sums[mode]
        return {name: [sums[above] / sums[below]] for name, (above, below) in metrics.items() if sums[below]}

    def clear(self, mode: str) -> None:
        """Start anew, after a log."""
        self._sums[mode] = {}
