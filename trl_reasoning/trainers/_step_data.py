"""From step-labelled rows to the batches of a process reward model."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from datasets import Dataset
from trl.trainer.utils import global_then_local_main_first, pad

from ..data.errors import DataError
from ..data.step_rows import as_step_rows, check_step_row
from ..generation.step_tokens import StepFormat
from ..losses.prm import IGNORED


logger = logging.getLogger(__name__)

_COLUMNS = ("input_ids", "step_ends", "step_labels")


@dataclass
class StepCollator:
    """
    Pads tokenized solutions on the right and spreads their labels over the tokens.

    Args:
        pad_to_multiple_of (`int`, *optional*):
            As of [`~trl.RewardConfig`].

    Returns from a call:
        `dict`: `input_ids` and `attention_mask` (N, T), and `labels` (N, T), [`~trl_reasoning.losses.prm.IGNORED`]
        but at the ends of labelled steps.
    """

    pad_to_multiple_of: int | None = None

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        ids = [torch.tensor(row["input_ids"]) for row in rows]
        labels = [torch.full((len(row),), IGNORED) for row in ids]
        for target, row in zip(labels, rows, strict=True):
            target[torch.tensor(row["step_ends"])] = torch.tensor(row["step_labels"], dtype=target.dtype)
        masks = [torch.ones_like(row) for row in ids]
        parts = {"input_ids": (ids, 0), "attention_mask": (masks, 0), "labels": (labels, IGNORED)}
        return {
            name: pad(values, padding_value=fill, pad_to_multiple_of=self.pad_to_multiple_of)  # type: ignore[arg-type]
            for name, (values, fill) in parts.items()
        }


def prepare_steps(dataset: Any, tokenizer: Any, step_format: StepFormat, args: Any, name: str) -> Dataset:
    """
    Tokenize step-labelled rows, cut them at `max_length`, and leave out those that keep no label.

    Args:
        dataset ([`~datasets.Dataset`]):
            Rows with `prompt`, `steps` (or TRL's `completions`) and `labels`.
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The model's.
        step_format ([`~trl_reasoning.generation.step_tokens.StepFormat`]):
            How the rows become tokens.
        args ([`PRMConfig`]):
            `max_length`, `train_on_last_step_only`, `label_threshold`, `dataset_num_proc`.
        name (`str`):
            What messages call the rows.

    Returns:
        [`~datasets.Dataset`] with `input_ids`, `step_ends` (places of the labelled steps' ends) and `step_labels`.

    Raises:
        `DataError`: A row is not as it should be, or none keeps a label.
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"{name}_dataset: expected a datasets.Dataset, got {type(dataset).__name__}")
    if set(_COLUMNS) <= set(dataset.column_names):
        return dataset
    rows = as_step_rows(dataset)
    settings = {
        "step_format": step_format,
        "max_length": args.max_length,
        "last_only": args.train_on_last_step_only,
        "threshold": args.label_threshold,
    }
    with global_then_local_main_first():
        tokenized = rows.map(
            _tokenize,
            with_indices=True,
            remove_columns=rows.column_names,
            fn_kwargs={"tokenizer": tokenizer, **settings},
            num_proc=args.dataset_num_proc,
            desc=f"Tokenizing {name} dataset",
        )
        kept = [row for row, ends in enumerate(tokenized["step_ends"]) if ends]
    if not kept:
        raise DataError(
            f"max_length: no step of the {len(tokenized)} rows has a label within {args.max_length} tokens; row 0 has "
            f"its first step's end beyond that, or no label. Set `max_length` higher"
        )
    if len(kept) == len(tokenized):
        return tokenized
    logger.warning(
        "%d of %d %s rows have no labelled step within max_length %s and are left out",
        len(tokenized) - len(kept), len(tokenized), name, args.max_length,
    )  # fmt: skip
    return tokenized.select(kept)


def _tokenize(
    row: dict[str, Any],
    index: int,
    *,
    tokenizer: Any,
    step_format: StepFormat,
    max_length: int | None,
    last_only: bool,
    threshold: float | None,
) -> dict[str, Any]:
    check_step_row(row, index)
    ids, ends = step_format.token_ids(tokenizer, row["prompt"], row["steps"])
    ids = ids[:max_length]
    labelled = list(zip(ends, row["labels"], strict=True))
    labelled = [
        (end, label)
        for end, label in (labelled[-1:] if last_only else labelled)
        if label is not None and end < len(ids)
    ]
    return {
        "input_ids": ids,
        "step_ends": [end for end, _ in labelled],
        "step_labels": [float(label if threshold is None else label > threshold) for _, label in labelled],
    }
