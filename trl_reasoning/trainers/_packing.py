"""Splitting the rows of an optimizer step into forward passes by length, without the padding of the longest row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F


# Padded on the left to the longest prompt; everything else that has one value a token follows the completion.
_PROMPT_KEYS = ("prompt_ids", "prompt_mask")


@dataclass(frozen=True)
class RowLengths:
    """Tokens of each row: `prompt` and `completion`, both of length N."""

    prompt: list[int]
    completion: list[int]

    def padded(self, rows: Sequence[int]) -> int:
        """Tokens of these rows side by side, padding included."""
        if not rows:
            return 0
        return len(rows) * (max(self.prompt[row] for row in rows) + max(self.completion[row] for row in rows))


def row_lengths(batch: dict[str, Any]) -> RowLengths:
    """Lengths of the rows of a batch; a completion counts up to its last attended token, and 1 at least."""
    mask = batch["completion_mask"]  # (N, T)
    ends = (mask * torch.arange(1, mask.size(1) + 1, device=mask.device)).amax(dim=1).clamp(min=1)
    return RowLengths(prompt=batch["prompt_mask"].sum(dim=1).tolist(), completion=ends.tolist())


def plan_passes(lengths: RowLengths, rows: Sequence[int], budget: int) -> list[list[int]]:
    """
    Group rows of like length, the longest first.

    Args:
        lengths ([`RowLengths`]):
            Lengths of all rows.
        rows (`Sequence[int]`):
            Those to group.
        budget (`int`):
            Most tokens of one pass, padding included; a row that is longer alone gets a pass of its own.

    Returns:
        `list[list[int]]`: each row once.

    Example:

    ```python
    >>> lengths = RowLengths(prompt=[2, 2, 2, 2], completion=[8, 3, 2, 3])
    >>> plan_passes(lengths, range(4), budget=19)  # (2 + 8) x 1, then (2 + 3) x 3
    [[0], [1, 3, 2]]

    ```
    """
    order = sorted(rows, key=lambda row: (-(lengths.completion[row] + lengths.prompt[row]), -lengths.completion[row]))
    passes: list[list[int]] = []
    for row in order:
        if passes and lengths.padded([*passes[-1], row]) <= budget:
            passes[-1].append(row)
        else:
            passes.append([row])
    return passes


def split_to_count(passes: list[list[int]], lengths: RowLengths, count: int) -> list[list[int]]:
    """Halve the largest passes until there are `count`, or one row a pass; processes have to agree on the number."""
    passes = list(passes)
    while len(passes) < count and any(len(rows) > 1 for rows in passes):
        largest = max((rows for rows in passes if len(rows) > 1), key=lengths.padded)
        index = passes.index(largest)
        middle = (len(largest) + 1) // 2
        passes[index : index + 1] = [largest[:middle], largest[middle:]]
    return passes


def join_batches(batches: Sequence[dict[str, Any]], token_keys: frozenset[str]) -> dict[str, Any]:
    """
    The rows of several micro-batches as one batch.

    Args:
        batches (`Sequence[dict]`):
            Micro-batches with the same keys; their widths may differ.
        token_keys (`frozenset[str]`):
            Keys with one value per completion token.

    Returns:
        `dict`: without scalars, which belong to a generation batch and not to rows.
    """
    joined: dict[str, Any] = {}
    for key, first in batches[0].items():
        values = [batch[key] for batch in batches]
        if first is None or (isinstance(first, torch.Tensor) and first.dim() == 0):
            continue
        if isinstance(first, torch.Tensor) and first.dim() > 1 and (key in token_keys or key in _PROMPT_KEYS):
            width = max(value.size(1) for value in values)
            on_left = key in _PROMPT_KEYS
            values = [_widen(value, width, on_left) for value in values]
        joined[key] = (
            torch.cat(values) if isinstance(first, torch.Tensor) else [row for rows in values for row in rows]
        )
    return joined


def take_rows(
    batch: dict[str, Any], rows: Sequence[int], lengths: RowLengths, token_keys: frozenset[str]
) -> dict[str, Any]:
    """The given rows of a batch, cut to the longest prompt and the longest completion among them."""
    prompt = max(lengths.prompt[row] for row in rows)
    completion = max(lengths.completion[row] for row in rows)
    taken: dict[str, Any] = {}
    index = None
    for key, value in batch.items():
        if isinstance(value, torch.Tensor):
            index = torch.tensor(rows, device=value.device) if index is None else index
            if key in _PROMPT_KEYS:
                value = value[:, value.size(1) - prompt :]
            elif key in token_keys and value.dim() > 1:
                # (N, 1) is a value a row, whatever it is called: at the sequence level the ratios have that shape.
                value = value[:, :completion]
            taken[key] = value[index]
        else:
            taken[key] = [value[row] for row in rows]
    return taken


def _widen(value: torch.Tensor, width: int, on_left: bool) -> torch.Tensor:
    missing = width - value.size(1)
    return F.pad(value, (missing, 0) if on_left else (0, missing))
