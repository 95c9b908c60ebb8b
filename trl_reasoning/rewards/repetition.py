"""A penalty for saying the same again."""

import math
import re
from collections.abc import Hashable, Sequence
from typing import Any, Literal, get_args

from ..errors import did_you_mean
from ._reward import Completion, Reward, read_rows


Unit = Literal["tokens", "words"]
# Letters of scripts that write no blanks between words: each is a unit, as a whole clause would be one word otherwise.
_WITHOUT_BLANKS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNITS = re.compile(rf"[{_WITHOUT_BLANKS}]|(?:(?![{_WITHOUT_BLANKS}])[^\W_])+|[^\w\s]|_")


def make_repetition_reward(ngram: int = 20, max_penalty: float = 1.0, unit: Unit = "tokens") -> Reward:
    r"""
    Make the repetition penalty: 0 where no sequence of `ngram` units comes twice, down to almost `-max_penalty`.

    $$r = -p \left(1 - \frac{\text{different } n\text{-grams}}{\text{all } n\text{-grams}}\right)$$

    with $p$ the greatest penalty. A completion with fewer than `ngram` units gets 0. The whole completion counts,
    thought and answer, and so do code and formulas: loops happen there as well.

    Honest text repeats short sequences, and the more the longer it is: worked solutions of olympiad problems, 860
    tokens on average, have -0.37 with sequences of 3 tokens, -0.28 with 4, -0.02 with 20 and -0.01 with 40, and worked
    answers of GSM8K, 92 tokens, -0.16, -0.07, 0 and 0 (measured, greatest penalty 1). A loop has about -1 with all of
    them. The paper takes 40, for thoughts of thousands of tokens.

    Args:
        ngram (`int`, *optional*, defaults to `20`):
            Units of a sequence n, at least 1.
        max_penalty (`float`, *optional*, defaults to `1.0`):
            What a text made of one repeated sequence comes near to losing, above 0.
        unit (`str`, *optional*, defaults to `"tokens"`):
            `"tokens"`: the tokens of the completion, its end token included; for any language. `"words"`: words
            without regard to case, numbers, and other marks one by one; each character of Chinese, Japanese, Thai and
            other scripts without blanks is a word. Words do not depend on how a tokenizer cuts.

    Returns:
        [`Reward`]: in [-`max_penalty`, 0]; needs no column.

    Raises:
        ValueError: when a parameter is outside its range.

    Reference: "Demystifying Long Chain-of-Thought Reasoning in LLMs" (https://huggingface.co/papers/2502.03373),
    appendix C.2, per token there and per completion here.

    Example:
    ```python
    >>> reward = make_repetition_reward(ngram=2)
    >>> reward(["?"] * 3, [""] * 3, [[1, 2, 3, 4], [5, 5, 5, 5, 5], [1]])
    [0.0, -0.75, 0.0]
    >>> reward = make_repetition_reward(ngram=2, unit="words")
    >>> reward(["?"], ["So it is 4. So it is 4."], [[1]])  # 5 of the 9 pairs are different
    [-0.4444444444444444]

    ```
    """
    return _RepetitionReward(ngram, max_penalty, unit)


class _RepetitionReward:
    __name__ = "repetition_reward"
    columns: tuple[str, ...] = ()

    def __init__(self, ngram: int, max_penalty: float, unit: Unit):
        if ngram < 1:
            raise ValueError(f"ngram: expected at least 1, got {ngram}")
        if not (math.isfinite(max_penalty) and max_penalty > 0):
            raise ValueError(f"max_penalty: expected a number above 0, which is subtracted, got {max_penalty}")
        if unit not in get_args(Unit):
            hint = did_you_mean(str(unit), get_args(Unit))
            raise ValueError(f"unit: expected tokens or words, got {unit!r}.{hint}")
        self.ngram = ngram
        self.max_penalty = max_penalty
        self.unit = unit

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        *,
        thought_opened: Sequence[bool | None] | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        if self.unit == "tokens":
            return [self._score(ids) for ids in completion_ids]
        texts, _ = read_rows(completions, thought_opened)
        return [self._score(_UNITS.findall(text.casefold())) for text in texts]

    def _score(self, units: Sequence[Hashable]) -> float:
        total = len(units) - self.ngram + 1
        if total < 1:
            return 0.0
        different = len(set(zip(*(units[start : start + total] for start in range(self.ngram)), strict=True)))
        # Written so that a text without repetition has 0.0 and not -0.0.
        return (different / total - 1.0) * self.max_penalty
