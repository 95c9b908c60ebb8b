"""The one place that knows think tags: where a thought starts and ends, given how the prompt ended."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


THINK_OPEN = "<think>"
THINK_CLOSE = "</think>"
ANSWER_OPEN = "<answer>"
ANSWER_CLOSE = "</answer>"

END_TOKENS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|end|>",
    "<|pad|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
    "<｜end▁of▁sentence｜>",
)
"""Spellings of end and padding tokens that may be left at the end of a decoded completion."""

# What a chat or R1-Zero template writes right before the assistant's first character.
_REPLY_START = re.compile(r"(?:\A|[Aa]ssistant:?|[|｜]>)\Z")


@dataclass(frozen=True)
class Thought:
    """A completion split at its think tags.

    Args:
        thought (`str`):
            Text of the thought without tags, stripped. The whole rest of the completion when the thought never closes.
        answer (`str`):
            Visible answer: what follows the last closing tag, stripped and without end tokens. Empty when the thought
            never closes.
        valid (`bool`):
            Whether the completion is exactly one thought followed by a non-empty answer. An empty thought is valid.
    """

    thought: str
    answer: str
    valid: bool


def split_thought(text: str, *, opened: bool = False) -> Thought:
    """
    Split a completion into its thought and its visible answer.

    The thought runs from the opening tag (or from the start, when the prompt opened it) to the first closing tag; the
    visible answer is what follows the last closing tag. Tags are case sensitive. A completion is valid when it has one
    closing tag, a non-empty answer and one opening tag at its very start, or none when the prompt already wrote it.

    Args:
        text (`str`):
            Completion, with think tags kept.
        opened (`bool`, *optional*, defaults to `False`):
            Whether the prompt already ended inside the thought, see [`prompt_opens_thought`].

    Returns:
        [`Thought`]

    Example:
    ```python
    >>> split_thought("<think>9-5 is 4.</think>4")
    Thought(thought='9-5 is 4.', answer='4', valid=True)
    >>> split_thought("9-5 is 4.</think>4", opened=True).valid
    True
    >>> split_thought("9-5 is 4.</think>4").valid
    False

    ```
    """
    text = without_end_tokens(text)
    opens, closes = text.count(THINK_OPEN), text.count(THINK_CLOSE)
    head, closed, _ = text.partition(THINK_CLOSE)
    if opened:
        thought = head.lstrip().removeprefix(THINK_OPEN)
    elif THINK_OPEN in head:
        thought = head.partition(THINK_OPEN)[2]
    elif closed:
        thought = head
    else:
        return Thought(thought="", answer=text, valid=False)
    if not closed:
        return Thought(thought=thought.strip(), answer="", valid=False)
    answer = _after_thoughts(text)
    starts_right = opens == 0 if opened else opens == 1 and text.startswith(THINK_OPEN)
    return Thought(thought=thought.strip(), answer=answer, valid=starts_right and closes == 1 and answer != "")


def visible_answer(text: str, *, opened: bool = False) -> str:
    """
    The visible answer of a completion, as [`split_thought`] gives it, without reading the thought.

    Args:
        text (`str`):
            Completion, with think tags kept.
        opened (`bool`, *optional*, defaults to `False`):
            Whether the prompt already ended inside the thought.

    Returns:
        `str`: empty when the thought never closes.

    Example:
    ```python
    >>> visible_answer("<think>9-5 is 4.</think>4"), visible_answer("9-5 is 4.", opened=True)
    ('4', '')

    ```
    """
    text = without_end_tokens(text)
    if THINK_CLOSE in text:
        return _after_thoughts(text)
    return "" if opened or THINK_OPEN in text else text


def _after_thoughts(text: str) -> str:
    # An opening tag after the last closing tag starts a second thought that never closes: it is not visible.
    return text.rpartition(THINK_CLOSE)[2].partition(THINK_OPEN)[0].strip()


def thought_span(text: str, *, opened: bool = False) -> tuple[int, int] | None:
    """
    Where the thought of a completion stands, by the rule of [`split_thought`].

    Args:
        text (`str`):
            Completion, with think tags kept.
        opened (`bool`, *optional*, defaults to `False`):
            Whether the prompt already ended inside the thought.

    Returns:
        `tuple[int, int]` or `None`: first character and the one after the last, without tags, blanks around it
        included; `None` where there is no thought. A thought that never closes goes to the end of the text.

    Example:
    ```python
    >>> text = "<think>9-5 is 4.</think>4"
    >>> start, end = thought_span(text)
    >>> text[start:end]
    '9-5 is 4.'

    ```
    """
    head, closed, _ = text.partition(THINK_CLOSE)
    begin = head.find(THINK_OPEN)
    if opened:
        # A tag that the prompt wrote already and the completion repeats is no part of the thought.
        start = begin + len(THINK_OPEN) if begin >= 0 and not head[:begin].strip() else 0
    elif begin >= 0:
        start = begin + len(THINK_OPEN)
    elif closed:
        start = 0
    else:
        return None
    return start, len(head)


def prompt_opens_thought(rendered_prompt: str) -> bool:
    """
    Say whether a rendered prompt (generation prompt included) ends inside an open thought.

    A tag that the system prompt or the question only mentions does not count: after the last opening tag there must be
    neither a closing tag nor the end of a turn, and the tag must end the prompt or start the assistant's reply.

    Args:
        rendered_prompt (`str`):
            Prompt as the model sees it, as text.

    Returns:
        `bool`

    Example:
    ```python
    >>> prompt_opens_thought("<|user|>2+2=?<|end|><|assistant|><think>\\n")
    True
    >>> prompt_opens_thought("<|user|>Use <think> tags. 2+2=?<|end|><|assistant|>")
    False

    ```
    """
    before, tag, inside = rendered_prompt.rpartition(THINK_OPEN)
    if not tag or THINK_CLOSE in inside or any(token in inside for token in END_TOKENS):
        return False
    return not inside.strip() or _REPLY_START.search(before.rstrip()) is not None


def completion_text(completion: str | Iterable[Mapping[str, Any]], *, opened: bool = False) -> str:
    """
    Give a TRL completion as raw text with think tags.

    Args:
        completion (`str` or `list[dict]`):
            Plain completion, or a message list. Only the assistant's messages count; reasoning that was parsed into
            `reasoning_content` (or `thinking`) gets its tags back. Content may be a list of text blocks.
        opened (`bool`, *optional*, defaults to `False`):
            Whether the prompt ended inside the thought; then parsed reasoning gets its closing tag only, as the model
            wrote it.

    Returns:
        `str`

    Example:
    ```python
    >>> completion_text([{"role": "assistant", "reasoning_content": "9-5 is 4.", "content": "4"}])
    '<think>9-5 is 4.</think>4'

    ```
    """
    if isinstance(completion, str):
        return completion
    texts = []
    for message in completion:
        if message.get("role", "assistant") != "assistant":
            continue
        content = message.get("content") or ""
        if not isinstance(content, str):
            content = "".join(block.get("text", "") for block in content)
        reasoning = message.get("reasoning_content") or message.get("thinking")
        if reasoning:
            # Only the first reply continues the prompt's open thought.
            tag = "" if opened and not texts else THINK_OPEN
            content = f"{tag}{reasoning}{THINK_CLOSE}{content}"
        texts.append(content)
    return "\n".join(texts)


def without_end_tokens(text: str) -> str:
    """The text without blanks around it and without end and padding tokens at its end."""
    text = text.strip()
    while text.endswith(END_TOKENS):
        token = next(token for token in END_TOKENS if text.endswith(token))
        text = text.removesuffix(token).rstrip()
    return text
