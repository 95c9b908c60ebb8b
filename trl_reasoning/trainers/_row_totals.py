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

    def pop(self, mode: str) -> dict[str, float]:
        """The sums since the last call, empty where no row came."""
        sums, self._sums[mode] = self._sums[mode], {}
        return sums


def shares(sums: Mapping[str, float], of: Mapping[str, tuple[str, str]]) -> dict[str, list[float]]:
    """
    Quotients of sums, as one-element lists for the log; a metric of no row is left out.

    Args:
        sums (`Mapping[str, float]`):
            From [`RowTotals.pop`].
        of (`Mapping[str, tuple[str, str]]`):
            By metric the columns above and below the line.

    Returns:
        `dict[str, list[float]]`

    Example:

    ```python
    >>> shares({"right": 3.0, "rows": 4.0, "none": 0.0}, {"accuracy": ("right", "rows"), "other": ("right", "none")})
    {'accuracy': [0.75]}

    ```
    """
    return {name: [sums[above] / sums[below]] for name, (above, below) in of.items() if sums.get(below)}
