"""From places in a completion's text to its tokens."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import UserError
from .tokens import hidden_token_ids


if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def text_with_token_ends(tokenizer: "PreTrainedTokenizerBase", token_ids: Sequence[int]) -> tuple[str, list[int]]:
    """
    Text of a completion, and how far each token takes it.

    Special tokens add nothing, think tags are kept. A character of several tokens is written by the last of them.

    Args:
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            A fast tokenizer.
        token_ids (`Sequence[int]`):
            Token ids of the completion.

    Returns:
        `tuple[str, list[int]]`: the text, and for each token the number of its characters that are written with it.

    Raises:
        [`~trl_reasoning.errors.UserError`]: the tokenizer is a slow one.

    Example:

    ```python
    >>> from transformers import AutoTokenizer
    >>> from trl_reasoning.builtin import resolve_model
    >>> tokenizer = AutoTokenizer.from_pretrained(resolve_model("builtin:tiny"))
    >>> text_with_token_ends(tokenizer, tokenizer("<think></think>4<|end|>")["input_ids"])
    ('<think></think>4', [7, 15, 16, 16])

    ```
    """
    from tokenizers.decoders import DecodeStream

    if not tokenizer.is_fast:
        raise UserError(
            "places in a text need a fast tokenizer (one of the tokenizers library), and this is a slow one"
        )
    hidden = hidden_token_ids(tokenizer)
    stream = DecodeStream(skip_special_tokens=False)
    text, ends = "", []
    for token in token_ids:
        if token not in hidden:
            text += stream.step(tokenizer.backend_tokenizer, token) or ""  # type: ignore[attr-defined]
        ends.append(len(text))
    return text, ends


def token_at(ends: Sequence[int], position: int) -> int:
    """
    Index of the token that writes the character before `position`.

    Args:
        ends (`Sequence[int]`):
            Of [`text_with_token_ends`]; rising.
        position (`int`):
            Number of characters, at least 1.

    Returns:
        `int`: the first token with which `position` characters are written, the last one where the text is shorter.

    Example:

    ```python
    >>> token_at([2, 5, 5, 9], 4), token_at([2, 5, 5, 9], 5), token_at([2, 5, 5, 9], 6)
    (1, 1, 3)

    ```
    """
    return min(bisect_left(ends, position), len(ends) - 1)
