"""Graded reward for numeric answers, for models that are seldom right."""

import re
from collections.abc import Sequence
from typing import Any

from ..answers import Verdict, numeric_value
from ..text import split_thought
from ._reward import Completion, Reward, read_rows
from ._verdicts import read_verdicts


# Long digit runs are no answer, and a float could not hold them.
_NUMBER = re.compile(r"(?<![\d.,])[+-]?\d{1,12}(?:,\d{3}){0,4}(?:\.\d{1,12})?(?![\d,]*\d)")


def make_closeness_reward(parsable: float = 0.2, near: float = 0.6, unmarked: float = 0.5) -> Reward:
    r"""
    Make the closeness reward: 1 for a right answer, else graded by how near a numeric answer comes to the gold.

    $$ r = \text{parsable} + \text{near} \cdot \frac{1}{1 + |a - g| / \max(|g|, 1)} $$

    for a wrong answer $a$ to the gold $g$. Without a marked answer the last number in the visible text counts as $a$,
    and $r$ is multiplied by `unmarked`; without any number $r$ is 0. It gives groups a spread where a weak model never
    hits the exact answer. It can be earned without solving anything, so weigh it below accuracy and drop it once
    accuracy moves.

    Args:
        parsable (`float`, *optional*, defaults to `0.2`):
            Reward of any number, in [0, 1].
        near (`float`, *optional*, defaults to `0.6`):
            Reward on top for nearness, at least 0; `parsable + near` is below 1, so that being right pays most.
        unmarked (`float`, *optional*, defaults to `0.5`):
            Factor in [0, 1] for a number without an answer mark.

    Returns:
        [`Reward`]: needs the column `solution`; `None` for golds that are not a number.

    Raises:
        ValueError: when a parameter is outside its range.

    Example:
    ```python
    >>> reward = make_closeness_reward()
    >>> completions = [r"\boxed{18}", r"\boxed{27}", "She makes 27 dollars a day.", "I do not know."]
    >>> [round(value, 3) for value in reward(["?"] * 4, completions, [[1]] * 4, solution=["18"] * 4)]
    [1.0, 0.6, 0.3, 0.0]

    ```
    """
    return _ClosenessReward(parsable, near, unmarked)


class _ClosenessReward:
    __name__ = "closeness_reward"
    columns: tuple[str, ...] = ("solution",)

    def __init__(self, parsable: float, near: float, unmarked: float):
        if parsable < 0 or near < 0 or parsable + near >= 1:
            raise ValueError(
                "closeness reward: parsable and near must be at least 0 and sum to less than 1 (the reward of a right "
                f"answer), got parsable={parsable} and near={near}"
            )
        if not 0 <= unmarked <= 1:
            raise ValueError(f"closeness reward: unmarked must be in [0, 1], got {unmarked}")
        self.parsable = parsable
        self.near = near
        self.unmarked = unmarked

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        *,
        solution: Sequence[str | None],
        thought_opened: Sequence[bool | None] | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        verdicts = read_verdicts(completions, solution, thought_opened, kind="number")
        texts, opened = read_rows(completions, thought_opened)
        rows = zip(verdicts, texts, opened, strict=True)
        return [self._score(verdict, text, is_open) for verdict, text, is_open in rows]

    def _score(self, verdict: Verdict, text: str, is_open: bool) -> float | None:
        gold_value = None if verdict.gold is None else numeric_value(verdict.gold)
        if verdict.score is None or gold_value is None:
            return None
        if verdict.is_right:
            return 1.0
        marked = None if verdict.extracted is None else numeric_value(verdict.extracted)
        if marked is not None:
            return self._graded(marked, gold_value)
        numbers = _NUMBER.findall(split_thought(text, opened=is_open).answer)
        if not numbers:
            return 0.0
        return self.unmarked * self._graded(float(numbers[-1].replace(",", "")), gold_value)

    def _graded(self, answer: float, gold: float) -> float:
        distance = abs(answer - gold) / max(abs(gold), 1.0)
        return self.parsable + self.near / (1.0 + distance)
