"""What a model thinks of the next token: logits of words that could follow a prompt."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from .backends import TransformersBackend, length_batches


if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def next_word_shares(
    backend: TransformersBackend, prompt_ids: Sequence[Sequence[int]], first: str, second: str
) -> list[float]:
    r"""
    $P(a) / (P(a) + P(b))$ of two words as the next one, each over the tokens that begin it.

    Args:
        backend ([`TransformersBackend`]):
            The model, in evaluation mode.
        prompt_ids (`Sequence[Sequence[int]]`):
            Token ids of each prompt.
        first (`str`):
            The word $a$.
        second (`str`):
            The word $b$.

    Returns:
        `list[float]`: in [0, 1], in the order of the prompts.

    Raises:
        [`~trl_reasoning.errors.UserError`]: as [`first_tokens`].
    """
    ours, theirs = first_tokens(backend.tokenizer, (first, second))
    shares = []
    for logits in next_token_logits(backend, prompt_ids, [*ours, *theirs]):
        weights = [math.exp(logit - max(logits)) for logit in logits]
        shares.append(sum(weights[: len(ours)]) / sum(weights))
    return shares


def first_tokens(tokenizer: "PreTrainedTokenizerBase", words: Sequence[str]) -> list[list[int]]:
    """
    The tokens that begin each of some words, in small, capital and mixed letters, with and without a blank before.

    A token that begins two of the words, a blank of its own for instance, tells nothing and is left out.

    Args:
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The tokenizer.
        words (`Sequence[str]`):
            The words.

    Returns:
        `list[list[int]]`: sorted token ids of each word.

    Raises:
        [`~trl_reasoning.errors.UserError`]: when nothing is left of a word.
    """
    found: list[set[int]] = []
    for word in words:
        spellings = {
            blank + form for form in (word, word.lower(), word.upper(), word.capitalize()) for blank in ("", " ")
        }
        ids: list[Any] = [tokenizer(spelling, add_special_tokens=False)["input_ids"] for spelling in spellings]
        found.append({row[0] for row in ids if row and row[0] != tokenizer.unk_token_id})
    own = [ids.difference(*found[:place], *found[place + 1 :]) for place, ids in enumerate(found)]
    for word, mine in zip(words, own, strict=True):
        if not mine:
            raise UserError(f"mode: the tokenizer has no token that begins {word!r} alone; use `mode: grade`")
    return [sorted(ids) for ids in own]


def next_token_logits(
    backend: TransformersBackend, prompt_ids: Sequence[Sequence[int]], token_ids: Sequence[int]
) -> list[list[float]]:
    """
    Logits of some tokens after each prompt.

    Args:
        backend ([`TransformersBackend`]):
            The model, in evaluation mode.
        prompt_ids (`Sequence[Sequence[int]]`):
            Token ids of each prompt, at least one.
        token_ids (`Sequence[int]`):
            The tokens in question.

    Returns:
        `list[list[float]]`: for each prompt one logit a token, in the order of `token_ids`.
    """
    import torch
    from transformers import GenerationConfig

    device = backend.model.device
    # `generate` knows how each architecture counts positions beside padding, and keeps the last logits alone.
    config = GenerationConfig(
        max_new_tokens=1, do_sample=False, output_logits=True, return_dict_in_generate=True,
        eos_token_id=backend.eos_ids, pad_token_id=backend.pad_id,
    )  # fmt: skip
    found: dict[int, list[float]] = {}
    for rows in length_batches([len(ids) for ids in prompt_ids], backend.batch_size):
        padding = [max(len(prompt_ids[row]) for row in rows) - len(prompt_ids[row]) for row in rows]
        padded = [[backend.pad_id] * pad + list(prompt_ids[row]) for pad, row in zip(padding, rows, strict=True)]
        mask = [[0] * pad + [1] * len(prompt_ids[row]) for pad, row in zip(padding, rows, strict=True)]
        with torch.no_grad():
            output: Any = backend.model.generate(  # type: ignore[operator]
                input_ids=torch.tensor(padded, device=device),  # (N, T)
                attention_mask=torch.tensor(mask, device=device),  # (N, T)
                generation_config=config,
            )
        logits = output.logits[0][:, list(token_ids)].float()  # (N, K)
        found.update(zip(rows, logits.tolist(), strict=True))
    return [found[row] for row in range(len(prompt_ids))]
