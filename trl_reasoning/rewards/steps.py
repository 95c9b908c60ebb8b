"""Steps of a thought: how it splits into them, one score from theirs, and a checker for chain arithmetic."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from ..text import THINK_CLOSE, split_thought, thought_span


SPLITS = ("line", "paragraph")
AGGREGATES = ("min", "product", "last")
_SEPARATORS = {"line": re.compile(r"\n"), "paragraph": re.compile(r"\n[^\S\n]*\n\s*")}
_CHAIN_LINE = re.compile(r"(-?\d+)([+-])(\d+)=(-?\d+)")


class StepScore(NamedTuple):
    """
    The reward of one step.

    Args:
        end (`int`):
            Characters of the completion's text up to the end of the step. The step ends at the token that writes the
            last of them, also where that token goes on into the next step.
        score (`float` or `None`):
            Reward, higher is better; `None` where the step cannot be judged and stays out of the statistics.
    """

    end: int
    score: float | None


class StepReward(Protocol):
    """
    A reward for steps: picklable, a list of [`StepScore`] per completion, which may be empty.

    Attributes:
        columns (`tuple[str, ...]`):
            Dataset columns that it needs; they arrive as keyword arguments.
    """

    __name__: str
    columns: tuple[str, ...]

    def __call__(self, prompts: Sequence[Any], texts: Sequence[str], **kwargs: Any) -> list[list[StepScore]]: ...


def split_steps(text: str, *, opened: bool = False, by: str = "line", answer: bool = True) -> list[tuple[int, int]]:
    r"""
    Split a completion into the steps of its thought, and its answer as the last step.

    Args:
        text (`str`):
            Completion, with think tags kept. A text without a thought is split as a whole.
        opened (`bool`, *optional*, defaults to `False`):
            Whether the prompt already ended inside the thought.
        by (`"line"` or `"paragraph"`, *optional*, defaults to `"line"`):
            What a step is; paragraphs are parted by blank lines.
        answer (`bool`, *optional*, defaults to `True`):
            Whether a non-empty visible answer is a step, too.

    Returns:
        `list[tuple[int, int]]`: first character and the one after the last of each step, without blanks around it.

    Raises:
        ValueError: `by` is unknown.

    Example:
    ```python
    >>> text = "<think>7+5=12\n12-3=9</think>9"
    >>> [text[start:end] for start, end in split_steps(text)]
    ['7+5=12', '12-3=9', '9']

    ```
    """
    if by not in _SEPARATORS:
        raise ValueError(f"by: expected one of {list(SPLITS)}, got {by!r}")
    span = thought_span(text, opened=opened)
    start, end = span or (0, len(text))
    ends = [match.span() for match in _SEPARATORS[by].finditer(text, start, end)]
    starts = [start, *(after for _, after in ends)]
    steps = [_stripped(text, left, right) for left, right in zip(starts, [*(at for at, _ in ends), end], strict=True)]
    visible = split_thought(text, opened=opened).answer
    if answer and span is not None and visible:
        begin = text.index(visible, text.rindex(THINK_CLOSE) + len(THINK_CLOSE))
        steps.append((begin, begin + len(visible)))
    return [(left, right) for left, right in steps if left < right]


def aggregate_steps(scores: Iterable[float | None], how: str = "min") -> float | None:
    r"""
    One score of a solution from the scores of its steps.

    $$ \min_k r_k, \qquad \prod_k r_k, \qquad r_K $$

    The least score is what Math-Shepherd ranks solutions by; the product is the probability that every step is right,
    were the scores the probabilities of independent steps; the last is an outcome score.

    Args:
        scores (`Iterable[float | None]`):
            Score of each step in [0, 1]; `None` for a step that was not judged, which is left out.
        how (`"min"`, `"product"` or `"last"`, *optional*, defaults to `"min"`):
            How to put them together.

    Returns:
        `float` or `None`: `None` where no step was judged.

    Raises:
        ValueError: `how` is unknown.

    Reference: Math-Shepherd (https://huggingface.co/papers/2312.08935) for min, Let's Verify Step by Step
    (https://huggingface.co/papers/2305.20050) for the product.

    Example:
    ```python
    >>> scores = [0.9, 0.5, None, 0.8]
    >>> [round(aggregate_steps(scores, how), 2) for how in AGGREGATES]
    [0.5, 0.36, 0.8]
    >>> aggregate_steps([None]) is None
    True

    ```
    """
    if how not in AGGREGATES:
        raise ValueError(f"aggregate: expected one of {list(AGGREGATES)}, got {how!r}")
    judged = [score for score in scores if score is not None]
    if not judged:
        return None
    if how == "product":
        return math.prod(judged)
    return min(judged) if how == "min" else judged[-1]


def make_chain_step_reward(answer: bool = True) -> StepReward:
    r"""
    Make the step reward of `builtin:chain`: 1 for a right line of the thought, 0 for any other.

    A line is right when it is the question's next operation, goes on from the result before it and computes its own
    result rightly. A slip costs its own line alone: the next one is judged by what it goes on from. Lines beyond the
    question's operations are not right, so that none can be earned by repeating.

    Args:
        answer (`bool`, *optional*, defaults to `True`):
            Whether the visible answer is a last step: 1 for the chain's value, else 0.

    Returns:
        [`StepReward`]: needs the column `question`.

    Example:
    ```python
    >>> reward = make_chain_step_reward()
    >>> reward(["?"], ["<think>7+5=13\n13-3=10</think>10"], question=["7+5-3=?"])
    [[StepScore(end=13, score=0.0), StepScore(end=21, score=1.0), StepScore(end=31, score=0.0)]]

    ```
    """
    return _ChainStepReward(answer)


class _ChainStepReward:
    __name__ = "chain_step_reward"
    columns: tuple[str, ...] = ("question",)

    def __init__(self, answer: bool):
        self.answer = answer

    def __call__(
        self,
        prompts: Sequence[Any],
        texts: Sequence[str],
        *,
        question: Sequence[str],
        thought_opened: Sequence[bool | None] | None = None,
        **kwargs: Any,
    ) -> list[list[StepScore]]:
        opened = [False] * len(texts) if thought_opened is None else [bool(value) for value in thought_opened]
        return [
            self._scores(text, asked, is_open) for text, asked, is_open in zip(texts, question, opened, strict=True)
        ]

    def _scores(self, text: str, question: str, opened: bool) -> list[StepScore]:
        first, *operations = [int(number) for number in re.findall(r"[+-]?\d+", question.removesuffix("=?"))]
        span = thought_span(text, opened=opened)
        if span is None:
            return []
        scores, before = [], first
        steps = split_steps(text, opened=opened, answer=False)
        for index, (start, end) in enumerate(steps):
            line = _CHAIN_LINE.fullmatch(text, start, end)
            is_right = False
            if line is not None:
                left, change, result = int(line[1]), int(line[2] + line[3]), int(line[4])
                is_next = index < len(operations) and change == operations[index]
                is_right = is_next and left == before and result == left + change
                before = result
            scores.append(StepScore(end, float(is_right)))
        if self.answer:
            for start, end in split_steps(text, opened=opened)[len(steps) :]:
                scores.append(StepScore(end, float(text[start:end] == str(first + sum(operations)))))
        return scores


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())


STEP_REWARDS: dict[str, Callable[..., StepReward]] = {"chain_steps": make_chain_step_reward}
"""Step rewards without a model, by the names that recipes use."""
