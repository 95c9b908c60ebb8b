"""Kimi k1.5's length reward: among the answers to one problem, short ones are worth more than long ones."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from ..answers import check_kind
from ._reward import Completion, Reward
from ._verdicts import read_verdicts
from .routing import _RoutedReward, make_routed_reward


def kimi_length_rewards(lengths: Sequence[int], right: Sequence[bool | None]) -> list[float | None]:
    r"""
    Length rewards of the completions of one problem.

    $$\lambda_i = 0.5 - \frac{\mathrm{len}_i - \mathrm{min}}{\mathrm{max} - \mathrm{min}}$$

    for a right answer, $\min(0, \lambda_i)$ for a wrong one, and 0 for all where all lengths are equal. A wrong answer
    is never paid for being short.

    Args:
        lengths (`Sequence[int]`):
            Tokens of each completion.
        right (`Sequence[bool | None]`):
            Whether its answer is right; `None` where that cannot be told, which takes the completion out of the least
            and the greatest length.

    Returns:
        `list[float | None]`: in [-0.5, 0.5], `None` where `right` is.

    Reference: Kimi k1.5 (https://huggingface.co/papers/2501.12599), section 2.3.3.

    Example:

    ```python
    >>> kimi_length_rewards([100, 150, 200, 250, 300], [True, True, False, False, True])
    [0.5, 0.25, 0.0, -0.25, -0.5]

    ```
    """
    known = [length for length, is_right in zip(lengths, right, strict=True) if is_right is not None]
    least, span = min(known, default=0), max(known, default=0) - min(known, default=0)
    rewards: list[float | None] = []
    for length, is_right in zip(lengths, right, strict=True):
        if is_right is None:
            rewards.append(None)
        elif span == 0:
            rewards.append(0.0)
        else:
            middle = 0.5 - (length - least) / span
            rewards.append(middle if is_right else min(0.0, middle))
    return rewards


def make_kimi_length_reward(kind: str = "auto") -> Reward:
    r"""
    Make the length reward of Kimi k1.5, to be weighed below accuracy: see [`kimi_length_rewards`].

    The paper does not publish the weight w. With an accuracy reward of weight 1 and the values 1 and 0, every right
    answer ranks above every wrong one for 0 <= w < 2, and other weights are refused. The paper switches the reward on
    late, at a constant weight, since from the start it slows learning: `length_reward_start_step` or
    `length_reward_patience` of the trainer's configuration.

    Args:
        kind (`str`, *optional*, defaults to `"auto"`):
            What the gold is, see [`trl_reasoning.answers.verify`].

    Returns:
        [`KimiLengthReward`]: needs the column `solution`; `None` where the gold answer cannot be read.

    Raises:
        ValueError: when `kind` is unknown.

    Example:

    ```python
    >>> reward = make_kimi_length_reward()
    >>> completions = [r"\boxed{4}", r"\boxed{4}", r"\boxed{5}", r"\boxed{5}"]
    >>> reward(["9-5=?"] * 4, completions, [[1], [1] * 5, [1] * 3, [1] * 4], solution=["4"] * 4)
    [0.5, -0.5, 0.0, -0.25]

    ```
    """
    return KimiLengthReward(kind)


class KimiLengthReward:
    """
    [`kimi_length_rewards`] as a reward function.

    Called on its own it takes neighbouring rows with the same prompt for one problem. The trainers of this package
    know the groups, which may be spread over processes: they call [`KimiLengthReward.judge`] and put the groups
    together themselves.
    """

    __name__ = "kimi_length_reward"
    columns: tuple[str, ...] = ("solution",)

    def __init__(self, kind: str):
        self.kind = check_kind(kind)

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        **kwargs: Any,
    ) -> list[float | None]:
        right = self.judge(prompts, completions, completion_ids, **kwargs)
        rows = zip(prompts, completion_ids, right, strict=True)
        rewards: list[float | None] = []
        for _, group in groupby(rows, key=lambda row: row[0]):
            _, ids, is_right = zip(*group, strict=True)
            rewards += kimi_length_rewards([len(row) for row in ids], is_right)
        return rewards

    def judge(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        *,
        solution: Sequence[str | None],
        thought_opened: Sequence[bool | None] | None = None,
        **kwargs: Any,
    ) -> list[bool | None]:
        """Whether each answer is right, `None` where the gold cannot be read; takes what a reward function takes."""
        verdicts = read_verdicts(completions, solution, thought_opened, kind=self.kind)
        return [None if verdict.score is None else verdict.is_right for verdict in verdicts]


def length_judge(reward: Any) -> Callable[..., list[bool | None]] | None:
    """
    The judge of a length reward, also of one that is for some rows only; `None` for any other reward.

    Args:
        reward (`Any`):
            A reward function.

    Returns:
        `Callable` or `None`: to be called as the reward function; says per row whether the answer is right.
    """
    if isinstance(reward, KimiLengthReward):
        return reward.judge
    if isinstance(reward, _RoutedReward) and isinstance(reward.reward, KimiLengthReward):
        routed: Any = make_routed_reward(reward.reward.judge, reward.column, reward.values, reward.columns)
        return routed
    return None


def check_length_weight(weight: float, gap: float = 1.0) -> None:
    """
    Check the weight of [`KimiLengthReward`].

    Args:
        weight (`float`):
            Its weight w.
        gap (`float`, *optional*, defaults to `1.0`):
            What a right answer earns above any other: the weight of the accuracy reward times its [`accuracy_gap`].

    Raises:
        ValueError: when w is not in [0, 2 gap), so that a short wrong answer could rank above a long right one.
    """
    if not 0 <= weight < 2 * gap:
        raise ValueError(
            f"reward_weights: kimi_length needs a weight of at least 0 and below {2 * gap:g} (twice what a right "
            f"answer earns above a wrong one), got {weight:g}: else a short wrong answer may be worth more than a "
            f"long right one; write for instance {0.5 * gap:g}"
        )
