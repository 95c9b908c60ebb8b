"""What a model thinks of given replies: the log-probability of each token, and its divergence from another model."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from .backends import TransformersBackend, length_batches
from .tokens import render_prompt


if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

Conversation = str | list[dict[str, Any]]
Reply = tuple[Sequence[int], Sequence[int]]
# Most logits of one forward pass: 0.5 GB in bfloat16. A vocabulary of 150,000 makes them the largest thing in memory.
_MOST_LOGITS = 2**28
# Positions of a row whose probabilities are computed at once, in float32.
_CHUNK = 256


def render_replies(
    tokenizer: "PreTrainedTokenizerBase",
    prompt: Conversation,
    replies: Sequence[Conversation],
    **chat_template_kwargs: Any,
) -> list[tuple[list[int], list[int]]]:
    """
    Token ids of a prompt and of replies to it, as TRL's DPO trainer makes them.

    Messages go through the chat template, without and with the reply; a plain text reply gets the end token. The reply
    begins where the two differ, at the same token for all replies of the prompt.

    Args:
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The tokenizer, with a chat template when the prompt is a message list.
        prompt (`str` or `list[dict]`):
            Plain text, or messages.
        replies (`Sequence`):
            Texts, or lists of messages, like the prompt.
        **chat_template_kwargs:
            Passed to the chat template.

    Returns:
        `list[tuple[list[int], list[int]]]`: for each reply the tokens of the prompt and its own.
    """
    start = render_prompt(tokenizer, prompt, **chat_template_kwargs)
    wholes = [_render_whole(tokenizer, prompt, reply, chat_template_kwargs) for reply in replies]
    length = min(_common_length(start, whole) for whole in wholes)
    return [(start[:length], whole[length:]) for whole in wholes]


def reply_logprobs(backend: TransformersBackend, replies: Sequence[Reply]) -> list[list[float]]:
    r"""
    $\log \pi(y_t \mid x, y_{<t})$ of each token of each reply, in nats.

    Args:
        backend ([`TransformersBackend`]):
            The model, in evaluation mode.
        replies (`Sequence`):
            Token ids of prompt and reply of each row.

    Returns:
        `list[list[float]]`: in the order of the rows; an empty list for an empty reply.

    Raises:
        [`~trl_reasoning.errors.UserError`]: when a row has no prompt, or more tokens than the model has positions.
    """
    import torch

    found: list[list[float]] = [[] for _ in replies]
    for row, logits in _rows_of_logits([backend], replies):
        target = torch.tensor(replies[row][1], device=logits[0].device)  # (T,)
        for part, chunk in zip(target.split(_CHUNK), logits[0].split(_CHUNK), strict=True):
            logprobs = chunk.float().log_softmax(-1)  # (C, V)
            found[row] += logprobs.gather(-1, part[:, None]).squeeze(-1).tolist()
    return found


def reply_divergences(
    backend: TransformersBackend, start: TransformersBackend, replies: Sequence[Reply]
) -> list[list[float]]:
    r"""
    $\mathrm{KL}(\pi(\cdot \mid x, y_{<t}) \,\|\, \pi_0(\cdot \mid x, y_{<t}))$ over the vocabulary, at each token of
    each reply, in nats.

    Args:
        backend ([`TransformersBackend`]):
            The model $\pi$, in evaluation mode.
        start ([`TransformersBackend`]):
            The model $\pi_0$ with the same vocabulary.
        replies (`Sequence`):
            Token ids of prompt and reply of each row.

    Returns:
        `list[list[float]]`: in the order of the rows; an empty list for an empty reply.

    Raises:
        [`~trl_reasoning.errors.UserError`]: when the vocabularies differ, a row has no prompt, or more tokens than a
            model has positions.
    """
    if backend.tokenizer.get_vocab() != start.tokenizer.get_vocab():
        raise UserError(
            f"reference: the vocabularies of {backend.name} and {start.name} differ, so that their probabilities are "
            "about different tokens; take the model that this one was trained from"
        )
    found: list[list[float]] = [[] for _ in replies]
    for row, (ours, theirs) in _rows_of_logits([backend, start], replies):
        # Rows of an embedding beyond the vocabulary are padding, of which two models may have different numbers.
        width = min(ours.shape[-1], theirs.shape[-1])
        for part, other in zip(ours.split(_CHUNK), theirs.split(_CHUNK), strict=True):
            logprobs = part[:, :width].float().log_softmax(-1)  # (C, V)
            others = other[:, :width].float().log_softmax(-1).to(logprobs.device)  # (C, V)
            divergence = (logprobs.exp() * (logprobs - others)).sum(-1)  # (C,)
            found[row] += divergence.clamp_min(0.0).tolist()  # rounding may leave it a little below 0
    return found


def _rows_of_logits(
    backends: Sequence[TransformersBackend], replies: Sequence[Reply]
) -> "Iterator[tuple[int, list[torch.Tensor]]]":
    """The logits of every model at the tokens of each reply, `(T, V)`, row by row."""
    for backend in backends:
        _check_rows(backend, replies)
    rows = [row for row, (_, reply) in enumerate(replies) if len(reply)]
    lengths = [len(replies[row][0]) + len(replies[row][1]) for row in rows]
    for batch in length_batches(lengths, min(backend.batch_size for backend in backends)):
        width = max(backend.model.config.get_text_config().vocab_size for backend in backends)
        size = max(1, _MOST_LOGITS // (width * max(lengths[place] for place in batch)))
        for first in range(0, len(batch), size):
            part = [rows[place] for place in batch[first : first + size]]
            logits = [_forward(backend, [replies[row] for row in part]) for backend in backends]
            for place, row in enumerate(part):
                start, end = len(replies[row][0]) - 1, len(replies[row][0]) + len(replies[row][1]) - 1
                yield row, [of_model[place, start:end] for of_model in logits]


def _forward(backend: TransformersBackend, rows: Sequence[Reply]) -> "torch.Tensor":
    import torch

    ids = [[*prompt, *reply] for prompt, reply in rows]
    longest = max(map(len, ids))
    padded = [row + [backend.pad_id] * (longest - len(row)) for row in ids]
    mask = [[1] * len(row) + [0] * (longest - len(row)) for row in ids]
    device = backend.model.device
    with torch.inference_mode():
        return backend.model(  # (N, T, V)
            input_ids=torch.tensor(padded, device=device), attention_mask=torch.tensor(mask, device=device)
        ).logits


def _check_rows(backend: TransformersBackend, replies: Sequence[Reply]) -> None:
    room = backend.model.config.get_text_config().max_position_embeddings
    for row, (prompt, reply) in enumerate(replies):
        if not len(prompt):
            raise UserError(f"reply {row} has no prompt, so that nothing predicts its first token")
        if len(prompt) + len(reply) > room:
            raise UserError(
                f"reply {row} has {len(prompt) + len(reply)} tokens with its prompt, more than the {room} positions "
                f"of {backend.name}"
            )


def _render_whole(
    tokenizer: "PreTrainedTokenizerBase", prompt: Conversation, reply: Conversation, chat_template_kwargs: dict
) -> list[int]:
    if isinstance(prompt, str):
        assert isinstance(reply, str)
        end = "" if reply.endswith(str(tokenizer.eos_token)) else str(tokenizer.eos_token)
        return tokenizer(text=prompt + reply + end)["input_ids"]  # type: ignore[return-value]
    messages: Any = [*prompt, *reply]
    rendered: Any = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=True, **chat_template_kwargs)
    return rendered["input_ids"]


def _common_length(first: Sequence[int], second: Sequence[int]) -> int:
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    return shared
