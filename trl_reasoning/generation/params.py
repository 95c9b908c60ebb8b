"""How completions are drawn, and what one completion is."""

from dataclasses import dataclass

from ..errors import UserError
from .tokens import FinishReason


@dataclass(frozen=True)
class SamplingParams:
    """
    How completions are drawn.

    Args:
        max_new_tokens (`int`):
            Token limit of a completion, at least 1.
        temperature (`float`, *optional*, defaults to `1.0`):
            0 decodes greedily; then the other sampling settings have no effect.
        top_p (`float`, *optional*, defaults to `1.0`):
            Nucleus mass in (0, 1].
        top_k (`int`, *optional*, defaults to `0`):
            Number of most likely tokens kept; 0 keeps all.
        min_p (`float`, *optional*):
            Least probability relative to the most likely token, in [0, 1].
        repetition_penalty (`float`, *optional*, defaults to `1.0`):
            Greater than 0; 1 is no penalty.
        stop_strings (`tuple[str, ...]`, *optional*, defaults to `()`):
            Strings that end a completion; they stay in its text.
        seed (`int`, *optional*, defaults to `0`):
            Batch `i` of a call is drawn with `seed + i`.
    """

    max_new_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float | None = None
    repetition_penalty: float = 1.0
    stop_strings: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.stop_strings, str):
            raise UserError(f"stop_strings: expected a list of strings, got the string {self.stop_strings!r}")
        object.__setattr__(self, "stop_strings", tuple(self.stop_strings))
        if not all(self.stop_strings):
            raise UserError("stop_strings: an empty string would end every completion at once")
        limits = {
            "max_new_tokens": (self.max_new_tokens >= 1, "at least 1"),
            "temperature": (self.temperature >= 0, "0 (greedy) or more"),
            "top_p": (0 < self.top_p <= 1, "in (0, 1]"),
            "top_k": (self.top_k >= 0, "0 (all tokens) or more"),
            "min_p": (self.min_p is None or 0 <= self.min_p <= 1, "in [0, 1]"),
            "repetition_penalty": (self.repetition_penalty > 0, "greater than 0"),
        }
        for key, (fits, expected) in limits.items():
            if not fits:
                raise UserError(f"{key}: expected a value {expected}, got {getattr(self, key)}")


@dataclass(frozen=True)
class Generation:
    """
    One completion.

    Args:
        token_ids (`list[int]`):
            The completion's own tokens with the EOS that ended it, without padding.
        text (`str`):
            Decoded without special tokens; think tags are kept.
        finish_reason (`str`):
            `"stop"` (EOS), `"stop_string"`, or `"length"` (cut by the token limit).
    """

    token_ids: list[int]
    text: str
    finish_reason: FinishReason
