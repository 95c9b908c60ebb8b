"""How much a backend's model can still write after what it has read."""

import logging
import math
from collections.abc import Hashable, Mapping
from typing import TypeVar

from ..errors import UserError
from .backends import Backend


logger = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)


def longest_prompt(backend: Backend, max_new_tokens: int) -> float:
    """
    Most tokens of a prompt that leave room for a completion.

    Args:
        backend ([`Backend`]):
            The engine.
        max_new_tokens (`int`):
            Most tokens of the completion.

    Returns:
        `float`: without a bound where the backend does not have its model at hand.
    """
    model = getattr(backend, "model", None)
    return math.inf if model is None else model.config.max_position_embeddings - max_new_tokens


def without_room(backend: Backend, lengths: Mapping[Key, int], max_new_tokens: int) -> set[Key]:
    """
    What is to be left out, found before the first of hours of work and named in a warning.

    Args:
        backend ([`Backend`]):
            The engine.
        lengths (`Mapping[Hashable, int]`):
            For each solution the tokens of its longest prefix that is continued.
        max_new_tokens (`int`):
            Most tokens of a continuation.

    Returns:
        `set[Hashable]`: the solutions that leave no room for a continuation.

    Raises:
        [`~trl_reasoning.errors.UserError`]: none leaves room.
    """
    limit = longest_prompt(backend, max_new_tokens)
    full = {key for key, length in lengths.items() if length > limit}
    if not full:
        return full
    reason = (
        f"{len(full)} of {len(lengths)} solutions have prefixes of more than {max(limit, 0)} tokens, which with "
        f"max_new_tokens {max_new_tokens} exceed the positions of {backend.name}"
    )
    if len(full) == len(lengths):
        raise UserError(f"step labels: {reason}; lower max_new_tokens")
    logger.warning("step labels: %s; they are left out", reason)
    return full
