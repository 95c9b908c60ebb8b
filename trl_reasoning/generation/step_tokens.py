"""How a process reward model reads a solution: the same tokens in training and in scoring."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from .tokens import render_prompt


if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

STEP_FORMAT_FILE = "process_reward.json"
"""File in a process reward model's folder that says how the model was trained to read."""


@dataclass(frozen=True)
class StepFormat:
    r"""
    How a prompt and its steps become tokens.

    The prompt comes first, then each step followed by the separator. The separator is tokenized alone, so that it is
    the same tokens after every step; the model's verdict on a step stands at the separator's last token.

    Args:
        separator (`str`, *optional*, defaults to `"\n"`):
            What follows each step.
        plain_prompt (`bool`, *optional*, defaults to `False`):
            Whether messages are read as the text of the last user message, without a chat template. A tokenizer
            without a chat template always reads them so.

    Example:

    ```python
    >>> from transformers import AutoTokenizer
    >>> from trl_reasoning.builtin import resolve_model
    >>> tokenizer = AutoTokenizer.from_pretrained(resolve_model("builtin:tiny"))
    >>> ids, ends = StepFormat(separator=";").token_ids(tokenizer, "7+5-3=?", ["7+5=12", "12-3=9"])
    >>> tokenizer.decode(ids), ends
    ('7+5-3=?7+5=12;12-3=9;', [13, 20])

    ```
    """

    separator: str = "\n"
    plain_prompt: bool = False

    def token_ids(
        self, tokenizer: "PreTrainedTokenizerBase", prompt: Any, steps: Sequence[str]
    ) -> tuple[list[int], list[int]]:
        """
        Tokens of a prompt and its steps.

        Args:
            tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
                The process reward model's.
            prompt (`str` or `list[dict]`):
                Plain text, or messages.
            steps (`Sequence[str]`):
                The steps, without separators.

        Returns:
            `tuple[list[int], list[int]]`: the token ids, and for each step the place of its separator's last token.

        Raises:
            [`~trl_reasoning.errors.UserError`]: the separator has no token.
        """
        if not isinstance(prompt, str) and (self.plain_prompt or tokenizer.chat_template is None):
            prompt = next(message["content"] for message in reversed(prompt) if message["role"] == "user")
        ids = list(render_prompt(tokenizer, prompt))
        separator = _tokens(tokenizer, self.separator)
        if not separator:
            raise UserError(f"separator: the tokenizer makes no token of {self.separator!r}; choose another text")
        ends = []
        for step in steps:
            ids += [*_tokens(tokenizer, step), *separator]
            ends.append(len(ids) - 1)
        return ids, ends

    def save(self, folder: str | Path) -> None:
        """Write it into a model's folder."""
        (Path(folder) / STEP_FORMAT_FILE).write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")


def settle_step_format(
    trained: StepFormat | None, model: str, *, separator: str | None, plain_prompt: bool | None
) -> StepFormat:
    """
    The format to score with: what the model was trained with where it says so, else what is asked for.

    Args:
        trained ([`StepFormat`], *optional*):
            Of the model's folder, see [`read_step_format`].
        model (`str`):
            The model's name, for the message.
        separator (`str`, *optional*):
            As asked for.
        plain_prompt (`bool`, *optional*):
            As asked for.

    Returns:
        [`StepFormat`]

    Raises:
        ValueError: what is asked for contradicts the training.
    """
    asked = {"separator": separator, "plain_prompt": plain_prompt}
    given = {key: value for key, value in asked.items() if value is not None}
    if trained is None:
        return StepFormat(**given)
    for key, value in given.items():
        if value != getattr(trained, key):
            raise ValueError(
                f"{key}: {model} was trained with {getattr(trained, key)!r}, got {value!r}; remove the key, "
                f"{STEP_FORMAT_FILE} in the model's folder sets it"
            )
    return trained


def read_step_format(file: str | Path | None) -> StepFormat | None:
    """The format in a `process_reward.json`; `None` where there is no such file."""
    if file is None or not Path(file).is_file():
        return None
    return StepFormat(**json.loads(Path(file).read_text(encoding="utf-8")))


def _tokens(tokenizer: "PreTrainedTokenizerBase", text: str) -> list[int]:
    return tokenizer(text=text, add_special_tokens=False)["input_ids"]  # type: ignore[return-value]
