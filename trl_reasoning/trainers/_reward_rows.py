"""Rows of a reward model: rankings and demonstrations as tokens, and the batches of pairs and rankings."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from datasets import Dataset
from transformers.data.data_collator import DataCollatorMixin
from trl.trainer.utils import global_then_local_main_first, pad

from ..data import DataError, load_source
from ..data.rankings import check_rankings
from ..errors import UserError
from ..generation.reward_model import scored_token_ids


logger = logging.getLogger(__name__)


@dataclass
class RankingCollator(DataCollatorMixin):
    """
    Makes batches of pairs (`chosen_ids`, `rejected_ids`, optional `margin` or `preference`) or of rankings
    (`reply_ids`, `scores`); a pair is a ranking of two.

    A batch has one row for each reply, prompt after prompt, padded on the right: `input_ids` and `attention_mask`
    (R, L), `ranks` (R,), and for each prompt its number of replies, `sizes` (P,), with `margin` or `preference` (P,).

    Args:
        pad_token_id (`int`):
            Token to pad with.
        pad_to_multiple_of (`int`, *optional*):
            Pad to a multiple of this many tokens.
        preference_bounds (`tuple[float, float]`, *optional*):
            Clamp soft labels to this range.

    Example:

    ```python
    >>> batch = RankingCollator(pad_token_id=0)([{"chosen_ids": [1, 2, 3], "rejected_ids": [4]}])
    >>> batch["input_ids"].tolist(), batch["ranks"].tolist(), batch["sizes"].tolist()
    ([[1, 2, 3], [4, 0, 0]], [1, 0], [2])

    ```
    """

    pad_token_id: int
    pad_to_multiple_of: int | None = None
    preference_bounds: tuple[float, float] | None = None
    return_tensors: str = "pt"

    def torch_call(self, examples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """The batch of these rows; see the class."""
        if "reply_ids" in examples[0]:
            rows = [example["reply_ids"] for example in examples]
            ranks = [_dense_ranks(example["scores"]) for example in examples]
        else:
            rows = [[example["chosen_ids"], example["rejected_ids"]] for example in examples]
            ranks = [[1, 0]] * len(examples)
        # The first entry has one value a prompt: transformers weighs an evaluation batch by its length.
        batch = {"sizes": torch.tensor([len(row) for row in rows])}
        batch["ranks"] = torch.tensor([rank for row in ranks for rank in row])
        batch |= pad_replies([reply for row in rows for reply in row], self.pad_token_id, self.pad_to_multiple_of)
        for label in ("margin", "preference"):
            if label in examples[0]:
                batch[label] = torch.tensor([example[label] for example in examples], dtype=torch.float)
        if "preference" in batch and self.preference_bounds is not None:
            batch["preference"] = batch["preference"].clamp(*self.preference_bounds)
        return batch


def pad_replies(replies: list[list[int]], pad_token_id: int, multiple: int | None = None) -> dict[str, torch.Tensor]:
    """`input_ids` and `attention_mask`, (R, L), padded on the right."""
    ids = [torch.tensor(reply) for reply in replies]
    masks = [torch.ones_like(row) for row in ids]
    return {
        "input_ids": pad(ids, padding_value=pad_token_id, padding_side="right", pad_to_multiple_of=multiple),
        "attention_mask": pad(masks, padding_value=0, padding_side="right", pad_to_multiple_of=multiple),
    }


def tokenize_rankings(dataset: Dataset, tokenizer: Any, args: Any, name: str) -> Dataset:
    """
    Tokenize rankings; leave out replies that are too long and prompts of which no two replies differ in rank.

    Args:
        dataset ([`~datasets.Dataset`]):
            `prompt`, `replies`, `scores`.
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The model's.
        args ([`ReasoningRewardConfig`]):
            For `max_length` and `dataset_num_proc`.
        name (`str`):
            What the notes call the rows.

    Returns:
        [`~datasets.Dataset`]: `reply_ids`, `scores`.

    Raises:
        [`~trl_reasoning.errors.UserError`]: A row that is no ranking, or none is left.
    """
    check_rankings(dataset)
    with global_then_local_main_first():
        rows = dataset.map(
            _tokenize_ranking,
            fn_kwargs={"tokenizer": tokenizer, "max_length": args.max_length},
            num_proc=args.dataset_num_proc,
            remove_columns=dataset.column_names,
            desc=f"Tokenizing {name} dataset",
        )
        kept = rows.filter(_is_ranking, num_proc=args.dataset_num_proc, desc=f"Leaving out ties in {name} dataset")
    dropped = sum(rows["dropped"])
    if dropped:
        logger.warning("max_length: %d replies of the %s rows do not fit and are left out", dropped, name)
    if not len(kept):
        raise UserError(
            f"max_length: with {args.max_length} tokens no {name} row has two replies of different rank left; raise it"
        )
    if len(kept) < len(rows):
        logger.warning(
            "%d of %d %s rows are left out: no two of their replies differ in rank",
            len(rows) - len(kept),
            len(rows),
            name,
        )
    return kept


def tokenize_demonstrations(
    source: Dataset | Mapping[str, Any], tokenizer: Any, max_length: int | None
) -> list[list[int]]:
    """
    The tokens of demonstrations: `messages`, or `prompt` and `completion`.

    Args:
        source ([`~datasets.Dataset`] or `Mapping`):
            The rows, or an entry as in a recipe's `datasets`.
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The model's.
        max_length (`int`, *optional*):
            Longer demonstrations are left out.

    Returns:
        `list[list[int]]`: one row for each.

    Raises:
        `DataError`: The columns are missing, or no row is left.
    """
    dataset = source if isinstance(source, Dataset) else load_source(source)
    names = dataset.column_names
    if "messages" in names:
        rows = [scored_token_ids(tokenizer, messages, []) for messages in dataset["messages"]]
    elif {"prompt", "completion"} <= set(names):
        pairs = zip(dataset["prompt"], dataset["completion"], strict=True)
        rows = [scored_token_ids(tokenizer, prompt, completion) for prompt, completion in pairs]
    else:
        raise DataError(f"demonstrations: need `messages`, or `prompt` and `completion`; found: {', '.join(names)}")
    kept = [row for row in rows if max_length is None or len(row) <= max_length]
    if len(kept) < len(rows):
        logger.warning("demonstrations: %d of %d are longer than max_length", len(rows) - len(kept), len(rows))
    if not kept:
        raise DataError(f"demonstrations: none of {len(rows)} rows fits max_length {max_length}")
    return kept


def _tokenize_ranking(row: dict[str, Any], tokenizer: Any, max_length: int | None) -> dict[str, Any]:
    ids = [scored_token_ids(tokenizer, row["prompt"], reply) for reply in row["replies"]]
    fits = [number for number, reply in enumerate(ids) if max_length is None or len(reply) <= max_length]
    scores = [float(row["scores"][number]) for number in fits]
    return {"reply_ids": [ids[number] for number in fits], "scores": scores, "dropped": len(ids) - len(fits)}


def _dense_ranks(scores: list[float]) -> list[int]:
    """Places of the scores, the least 0; equal scores share one, and close ones are kept apart on every device."""
    places = {score: place for place, score in enumerate(sorted(set(scores)))}
    return [places[score] for score in scores]


def _is_ranking(row: dict[str, Any]) -> bool:
    return len(set(row["scores"])) > 1
