"""Rows of public preference sets as prompt, chosen and rejected message lists."""

import re

from .errors import DataError
from .rows import Message, Row


_SPEAKER = re.compile(r"\n\n(Human|Assistant):")
_ROLES = {"Human": "user", "Assistant": "assistant"}


def parse_transcript(transcript: str) -> list[Message]:
    r"""
    An HH-RLHF transcript as messages.

    Two turns of one speaker in a row (a labelling slip of the data set) are joined, so that roles always alternate.

    Args:
        transcript (`str`):
            Turns that start with two line ends and `Human:` or `Assistant:`.

    Returns:
        `list[Message]`: dicts with `role` (`user` or `assistant`) and `content`.

    Raises:
        `DataError`: when the text does not start with a turn.

    Example:

    ```python
    >>> parse_transcript("\n\nHuman: 1+1?\n\nAssistant: 2")
    [{'role': 'user', 'content': '1+1?'}, {'role': 'assistant', 'content': '2'}]

    ```
    """
    before, *turns = _SPEAKER.split(transcript)
    if before.strip() or not turns:
        raise DataError(f"a transcript should start with '\\n\\nHuman:', got {transcript[:80]!r}")
    messages: list[Message] = []
    for speaker, content in zip(turns[::2], turns[1::2], strict=True):
        role, content = _ROLES[speaker], content.strip()
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] = f"{messages[-1]['content']}\n\n{content}".strip()
        else:
            messages.append({"role": role, "content": content})
    return messages


def convert_hh_rlhf(row: Row) -> Row:
    """HH-RLHF: both transcripts share everything before the last reply. An empty reply is kept as it is."""
    return _as_pair(parse_transcript(_given(row, "chosen")), parse_transcript(_given(row, "rejected")))


def convert_ultrafeedback(row: Row) -> Row:
    """UltraFeedback: whole dialogues (`prompt` repeats the first turn), or plain replies to `prompt`."""
    chosen, rejected = _given(row, "chosen"), _given(row, "rejected")
    if isinstance(chosen, str) and isinstance(rejected, str):
        question = {"role": "user", "content": _given(row, "prompt")}
        chosen, rejected = [[question, {"role": "assistant", "content": reply}] for reply in (chosen, rejected)]
    return _as_pair(_messages(chosen), _messages(rejected))


def convert_nectar(row: Row) -> Row:
    """Nectar: a transcript that ends with an empty reply, and several answers; rank 1 is the best."""
    prompt = parse_transcript(_given(row, "prompt"))
    if prompt[-1]["role"] == "assistant":
        if prompt[-1]["content"]:
            raise DataError(f"`prompt` should end with the user's turn, got {prompt[-1]}")
        prompt = prompt[:-1]
    answers = _given(row, "answers")
    replies = [[{"role": "assistant", "content": answer["answer"].strip()}] for answer in answers]
    return {"prompt": prompt, "replies": replies, "scores": [-float(answer["rank"]) for answer in answers]}


def _given(row: Row, column: str):
    value = row.get(column)
    if not value:
        raise DataError(f"`{column}` is missing or empty")
    return value


def _messages(turns) -> list[Message]:
    """The turns with their role and content alone."""
    if isinstance(turns, str):
        raise DataError(f"one of `chosen` and `rejected` is plain text and the other a message list: {turns[:80]!r}")
    return [{"role": turn["role"], "content": turn["content"]} for turn in turns]


def _as_pair(chosen: list[Message], rejected: list[Message]) -> Row:
    for name, turns in (("chosen", chosen), ("rejected", rejected)):
        if turns[-1]["role"] != "assistant" or len(turns) < 2:
            raise DataError(f"`{name}` should be a question and end with an assistant turn, got {turns[-1]}")
    if chosen[:-1] != rejected[:-1]:
        raise DataError("`chosen` and `rejected` answer different prompts")
    return {"prompt": chosen[:-1], "chosen": chosen[-1:], "rejected": rejected[-1:]}
