"""Reward for the Countdown game: an arithmetic expression of given numbers that makes a target."""

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, get_args

from ..answers.verdict import Status, Verdict
from ._expressions import MAX_DIGITS, ExpressionError, read_expression, value_of
from ._free_answer import find_free_answer
from ._reward import Completion, LogExtra, LogMetric, Reward, read_rows
from ._verdicts import log_verdicts


Use = Literal["all", "some"]
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_LATEX = (("\\times", "*"), ("\\cdot", "*"), ("\\div", "/"), ("\\left", ""), ("\\right", ""), ("$", ""))


def make_countdown_reward(use: Use = "all", form: float = 0.0) -> Reward:
    r"""
    Make the Countdown reward: 1 for an expression of the given numbers that equals the target, else 0.

    The answer is the content of `<answer>` tags or of a box, else the whole visible answer, read by
    [`check_countdown`]: exact fractions, `+ - * /` and parentheses, no evaluation of the text as a program. A row
    whose numbers or target cannot be read gets `None`.

    Args:
        use (`str`, *optional*, defaults to `"all"`):
            `"all"`: each given number exactly once; `"some"`: each at most once.
        form (`float`, *optional*, defaults to `0.0`):
            Credit, in [0, 1), of an expression that uses the numbers as it should and misses the target (TinyZero
            gives 0.1 to any answer in the right tags).

    Returns:
        [`Reward`]: needs the columns `target` (a number) and `nums` (a list of numbers).

    Raises:
        ValueError: when `use` or `form` is none of these.

    Reference: the Countdown task of TinyZero (https://github.com/Jiayi-Pan/TinyZero).

    Example:

    ```python
    >>> reward = make_countdown_reward(form=0.1)
    >>> completions = ["<answer>(7-3)*6</answer>", "<answer>7*3+6</answer>", "<answer>24</answer>", "no idea"]
    >>> reward(["?"] * 4, completions, [[1]] * 4, target=[24] * 4, nums=[[3, 6, 7]] * 4)
    [1.0, 0.1, 0.0, 0.0]

    ```
    """
    if use not in get_args(Use):
        raise ValueError(f"use: expected one of {', '.join(get_args(Use))}, got {use!r}")
    if not 0 <= form < 1:
        raise ValueError(f"form: expected a credit from 0 to below 1, got {form}")
    return _CountdownReward(use, form)


def check_countdown(answer: str, target: Any, nums: Sequence[Any], use: Use = "all") -> str:
    """
    Judge one Countdown answer.

    Allowed are the given numbers as they are written, `+ - * /` (also × ÷ ·, and LaTeX's `\\times`, `\\cdot`,
    `\\div`), parentheses, and a minus in front of a value. `expression = target` counts as the expression. Powers,
    factorials, functions, joined digits (`12` of 1 and 2), leading zeros, and the bare target do not.

    Args:
        answer (`str`):
            The answer without tags or box.
        target (`int`, `float` or `str`):
            What the expression has to equal, exactly.
        nums (`Sequence[int | float]`):
            The given numbers.
        use (`str`, *optional*, defaults to `"all"`):
            `"all"`: each number exactly once; `"some"`: each at most once.

    Returns:
        `str`: `"right"`, `"wrong_value"`, `"wrong_numbers"` or `"unreadable"`.

    Raises:
        ValueError: the target or a number cannot be read.

    Example:

    ```python
    >>> check_countdown("8/(3-8/3)", 24, [3, 3, 8, 8]), check_countdown("12*2", 24, [1, 2, 2])
    ('right', 'wrong_numbers')

    ```
    """
    goal = _exact(target)
    given = Counter(_written(number) for number in nums)
    text = answer
    for latex, plain in _LATEX:
        text = text.replace(latex, plain)
    left, equals, right = text.partition("=")
    if equals:
        if _is_number(left, goal):
            left, right = right, left
        if not _is_number(right, goal):
            return "unreadable"
        text = left
    try:
        value = value_of(read_expression(text, operators=("+", "-", "*", "/", "neg")))
    except ExpressionError:
        return "unreadable"
    used = Counter(_NUMBER.findall(text))
    if not used <= given or (use == "all" and used != given):
        return "wrong_numbers"
    return "right" if value == goal else "wrong_value"


def _exact(number: Any) -> Fraction:
    text = str(number).strip()
    # Fraction reads "1e999999999", too, and then needs all memory there is.
    if len(text) > MAX_DIGITS or not _NUMBER.fullmatch(text.removeprefix("-")):
        raise ValueError(f"expected a number, got {text[:MAX_DIGITS]!r}")
    return Fraction(text)


def _written(number: Any) -> str:
    value = _exact(number)
    return str(value.numerator) if value.denominator == 1 else str(number).strip()


def _is_number(text: str, goal: Fraction) -> bool:
    try:
        return _exact(text) == goal
    except ValueError:
        return False


class _CountdownReward:
    __name__ = "countdown_reward"
    columns: tuple[str, ...] = ("target", "nums")

    def __init__(self, use: Use, form: float):
        self.use: Use = use
        self.form = form

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        *,
        target: Sequence[Any],
        nums: Sequence[Any],
        thought_opened: Sequence[bool | None] | None = None,
        log_metric: LogMetric | None = None,
        log_extra: LogExtra | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        texts, opened = read_rows(completions, thought_opened)
        scores: list[float | None] = []
        verdicts = []
        for text, is_open, goal, numbers in zip(texts, opened, target, nums, strict=True):
            answer = find_free_answer(text, opened=is_open)
            status: Status
            try:
                outcome = check_countdown(answer or "", goal, numbers, self.use)
            except (ValueError, TypeError, ZeroDivisionError):
                status, score = "unreadable_gold", None
            else:
                status = "right" if outcome == "right" else "unparsed" if outcome == "unreadable" else "wrong"
                score = {"right": 1.0, "wrong_value": self.form}.get(outcome, 0.0)
            scores.append(score)
            verdicts.append(Verdict(status, answer, None if goal is None else str(goal), "countdown"))
        log_verdicts(verdicts, completion_ids, log_metric, log_extra)
        return scores
