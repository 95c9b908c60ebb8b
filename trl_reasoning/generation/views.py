"""What a model that scores completions is shown of them, and where it is loaded."""

from typing import Any, Literal

from ..text import THINK_OPEN, split_thought


Sees = Literal["answer", "everything"]
Conversation = str | list[dict[str, Any]]


def shown_parts(prompt: Conversation, text: str, opened: bool, sees: Sees) -> tuple[Conversation, str]:
    """
    Prompt and reply as a scoring model is shown them.

    Args:
        prompt (`str` or `list[dict]`):
            Plain text or messages.
        text (`str`):
            The completion as raw text.
        opened (`bool`):
            Whether the prompt ended inside the thought.
        sees (`"answer"` or `"everything"`):
            The final answer alone, or the whole completion.

    Returns:
        `tuple`: the prompt, and the reply as text.
    """
    if sees == "answer":
        answer = split_thought(text, opened=opened).answer
        # A plain text prompt that opened the thought would leave its tag without a thought.
        is_tagged = opened and isinstance(prompt, str)
        return prompt.rstrip().removesuffix(THINK_OPEN) if is_tagged else prompt, answer  # type: ignore[union-attr]
    # The policy's chat template wrote the opening tag, which messages do not show.
    return prompt, THINK_OPEN + text if opened and not isinstance(prompt, str) else text


def process_device() -> str:
    """The device that accelerate chose for this process."""
    from accelerate import PartialState

    return str(PartialState().device)
