"""From prompts to token ids and from generated token ids to a finished completion."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from ..errors import UserError
from ..text import THINK_CLOSE, THINK_OPEN


if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FinishReason = Literal["stop", "length", "stop_string"]


def render_prompt(
    tokenizer: "PreTrainedTokenizerBase", prompt: str | list[dict[str, Any]], **chat_template_kwargs: Any
) -> list[int]:
    """
    Token ids of a prompt as the model sees it, as TRL's online trainers make them.

    A string is tokenized as it is. A message list goes through the chat template with the generation prompt; when its
    last message is the assistant's, that message is continued instead.

    Args:
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The tokenizer, with a chat template when `prompt` is a message list.
        prompt (`str` or `list[dict]`):
            Plain text, or messages with the keys `role` and `content`.
        **chat_template_kwargs:
            Passed to the chat template, for instance `enable_thinking=False`.

    Returns:
        `list[int]`: the token ids.

    Raises:
        [`~trl_reasoning.errors.UserError`]: for a message list when the tokenizer has no chat template.
    """
    if isinstance(prompt, str):
        return tokenizer(text=prompt)["input_ids"]  # type: ignore[return-value]
    if tokenizer.chat_template is None:
        raise UserError(
            "the prompt is a list of messages but the tokenizer has no chat template; set `chat_template:` or use a "
            "prompt template that gives plain text (`prompt_template: r1_zero`)"
        )
    continues = prompt[-1]["role"] == "assistant"
    rendered = tokenizer.apply_chat_template(
        prompt,
        add_generation_prompt=not continues,
        continue_final_message=continues,
        tokenize=True,
        return_dict=True,
        **chat_template_kwargs,
    )
    return rendered["input_ids"]  # type: ignore[index, return-value]


def completion_to_text(tokenizer: "PreTrainedTokenizerBase", token_ids: Sequence[int]) -> str:
    """
    Text of a completion without special tokens.

    Think tags are kept even where a tokenizer declares them special, so that verification sees the thought's end.

    Args:
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The tokenizer.
        token_ids (`Sequence[int]`):
            Token ids of the completion.

    Returns:
        `str`: the decoded text.
    """
    hidden = hidden_token_ids(tokenizer)
    return _decode(tokenizer, [token for token in token_ids if token not in hidden])


def trim_at_stop(
    token_ids: Sequence[int],
    tokenizer: "PreTrainedTokenizerBase",
    stop_strings: Sequence[str],
    eos_ids: Collection[int],
    pad_id: int,
) -> tuple[list[int], FinishReason]:
    """
    Cut the padding off a generated row and say how the row ended.

    A row ends at its first EOS token, which is kept, or at the first token that completes a stop string, which is kept
    too. What follows is padding, whether the pad token is an EOS token or not. A row with neither was cut by the token
    limit.

    Args:
        token_ids (`Sequence[int]`):
            Generated tokens of one row, without the prompt, possibly padded on the right.
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            Used to look for stop strings in the text; not used without them.
        stop_strings (`Sequence[str]`):
            Strings that end a row, for instance `("</answer>",)`. May be empty.
        eos_ids (`Collection[int]`):
            Every token id that ends a row.
        pad_id (`int`):
            Token id that follows the end of a row; may be one of `eos_ids`.

    Returns:
        `tuple[list[int], str]`: the row's own tokens, and `"stop"` (EOS), `"stop_string"` or `"length"`.
    """
    row = list(token_ids)
    end = next((index for index, token in enumerate(row) if token in eos_ids), None)
    body = row if end is None else row[:end]
    stop = _stop_string_end(body, tokenizer, stop_strings) if stop_strings else None
    if stop is not None:
        return row[:stop], "stop_string"
    if end is not None:
        return row[: end + 1], "stop"
    kept = len(row)
    while kept and row[kept - 1] == pad_id:
        kept -= 1
    # Only an ended row is padded. Without EOS and with stop strings, one began in the prompt's last characters.
    padded = kept < len(row) and bool(stop_strings)
    return row[:kept], "stop_string" if padded else "length"


def _stop_string_end(body: list[int], tokenizer: "PreTrainedTokenizerBase", stop_strings: Sequence[str]) -> int | None:
    """Least number of tokens whose text holds a stop string; found by bisection: a longer text keeps what it holds."""

    def holds(count: int) -> bool:
        text = _decode(tokenizer, body[:count])
        return any(stop_string in text for stop_string in stop_strings)

    if not holds(len(body)):
        return None
    low, high = 0, len(body)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _decode(tokenizer: "PreTrainedTokenizerBase", token_ids: list[int]) -> str:
    return tokenizer.decode(token_ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)  # type: ignore[return-value]


@lru_cache(maxsize=8)
def hidden_token_ids(tokenizer: "PreTrainedTokenizerBase") -> frozenset[int]:
    """Special tokens, which a completion's text does not show; think tags are not among them."""
    special = {index: token.content for index, token in tokenizer.added_tokens_decoder.items() if token.special}
    special.update(zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True))
    return frozenset(index for index, token in special.items() if token not in (THINK_OPEN, THINK_CLOSE))
