"""Preference pairs that a run cannot use: two equal replies, or a reply that `max_length` would cut."""

from typing import TYPE_CHECKING, Any

from .errors import RecipeError
from .recipe import Recipe


if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase


def fit_pairs(dataset: "Dataset", tokenizer: "PreTrainedTokenizerBase", recipe: Recipe, notes: list[str]) -> "Dataset":
    """
    Leave out pairs of identical replies, and pairs of which a reply does not fit `max_length`.

    A reply that is cut has no end token, and cutting shortens the longer reply of a pair alone: its log-prob then says
    something else than the data.

    Args:
        dataset ([`~datasets.Dataset`]):
            Rows with `prompt`, `chosen` and `rejected`, checked.
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            Renders the rows as the trainer will.
        recipe ([`Recipe`]):
            For `max_length`.
        notes (`list[str]`):
            Gets a line for each reason with the number of rows left out.

    Returns:
        [`~datasets.Dataset`]: the pairs that are left.

    Raises:
        RecipeError: No pair is left; names `max_length`, the row and its tokens.
    """
    from ..data.pairs import identical_pairs

    limit = recipe.setting("max_length")
    if "chosen" not in dataset.column_names:  # rankings, whose trainer leaves out single replies
        return dataset
    same = set(identical_pairs(dataset))
    if same:
        notes.append(f"{len(same)} of {len(dataset)} pairs have two identical replies and are left out")
        dataset = dataset.select([row for row in range(len(dataset)) if row not in same])
    if limit is None:
        return dataset
    lengths = dataset.map(
        _pair_tokens, fn_kwargs={"tokenizer": tokenizer}, remove_columns=dataset.column_names, desc="length of pairs"
    )["tokens"]
    kept = [row for row, tokens in enumerate(lengths) if tokens <= limit]
    if not kept:
        raise RecipeError(
            "max_length",
            f"{limit} tokens hold no pair: row 0 has {lengths[0]} tokens with its longer reply, and the shortest pair "
            f"{min(lengths)}; a reply that is cut teaches not to end, so write at least {min(lengths)}",
        )
    if len(kept) < len(dataset):
        first = next(row for row, tokens in enumerate(lengths) if tokens > limit)
        notes.append(
            f"max_length: {len(dataset) - len(kept)} of {len(dataset)} pairs do not fit into {limit} tokens and are "
            f"left out (the first is row {first} with {lengths[first]})"
        )
        dataset = dataset.select(kept)
    return dataset


def _pair_tokens(row: dict[str, Any], tokenizer: Any) -> dict[str, int]:
    """Tokens of the prompt with the longer of the two replies."""
    return {"tokens": max(_tokens(row["prompt"], row[column], tokenizer) for column in ("chosen", "rejected"))}


def _tokens(prompt: Any, reply: Any, tokenizer: Any) -> int:
    if isinstance(prompt, str):
        text = prompt + reply
        if not reply.endswith(tokenizer.eos_token):
            text += tokenizer.eos_token
        return len(tokenizer(text)["input_ids"])
    return len(tokenizer.apply_chat_template([*prompt, *reply], tokenize=True, return_dict=True)["input_ids"])
