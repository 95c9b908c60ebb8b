"""Signs of reward hacking in the numbers that a run logs, and what became of the answers that a reward judged."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


# What the log calls the two shares that are watched.
NO_THOUGHT = "thoughts/missing"
THOUGHT_ASKED = "thoughts/asked"
# Logged steps of a block; blocks follow each other without overlap.
BLOCK = 10
# By how much the share of answers without a thought has to rise over the block where it was lowest.
RISE = 0.25
# A share this high from the start on is a sign where thoughts are asked for, and only after this many blocks: a base
# model has to learn the form first.
MOST, BLOCKS_TO_LEARN = 0.9, 3
# Standard errors of a difference that noise does not reach. Accuracy needs the most, since the best of many pairs of
# measurements is lucky: of 400 runs of 40 measurements drawn anew with one true accuracy, 9 pass 4 (120 pass 3).
ACCURACY_SURE, SHARE_SURE, REWARD_SURE = 4.0, 3.0, 2.0
_TWO_SIDED_95 = 1.96


@dataclass(frozen=True)
class Sign:
    """A sign of reward hacking.

    Args:
        kind (`str`):
            `"reward_up_accuracy_down"` or `"no_thought"`.
        text (`str`):
            The numbers, in words.
    """

    kind: str
    text: str


@dataclass
class _Measurement:
    step: int
    accuracy: float
    error: float  # standard error
    rewards: list[float]  # logged since the measurement before


class HackingSigns:
    """
    Reads a run's logs one after the other and says where its policy seems to trick the reward.

    **The training reward rises while held-out accuracy falls.** Two means of two measurements each are compared, the
    last two with the best two in a row before them: accuracy is lower by more than 4 standard errors, and the reward
    of the steps before the last two is higher than that before the best two by more than 2. The errors of accuracy
    are those of its logged binomial interval; both measurements see the same problems, so that the true errors of the
    difference are smaller. Those of the reward come from the scatter of the logged steps. It takes four measurements
    at least.

    **Answers appear without a thought.** Of the completions whose prompt leaves room for a thought, the share with an
    answer but no thought (`thoughts/missing`) is averaged over blocks of 10 logged steps. Either it is 0.25 and 3
    standard errors above the lowest earlier block; or it is at least 0.9, after 30 logged steps, although thoughts
    are asked for (`thoughts/asked`). A model that answers without a thought and is not asked for one is no sign, nor
    is one that learns to think.

    Example:

    ```python
    >>> signs = HackingSigns()
    >>> logs = [{"thoughts/missing": share} for share in [0.1] * 10 + [0.9] * 10]
    >>> [sign.kind for log in logs for sign in signs.observe(log)]
    ['no_thought']

    ```
    """

    def __init__(self) -> None:
        self._blocks: list[tuple[float, float]] = []  # mean and its standard error
        self._shares: list[float] = []
        self._asked: list[float] = []
        self._measurements: list[_Measurement] = []
        self._rewards: list[float] = []

    def observe(self, log: Mapping[str, Any]) -> list[Sign]:
        """
        Take the next log.

        Args:
            log (`Mapping[str, Any]`):
                Of a training step or of a held-out measurement.

        Returns:
            `list[Sign]`: the signs that this log completes; a sign that stays comes again.
        """
        signs = []
        if log.get("reward") is not None:
            self._rewards.append(log["reward"])
        if log.get(NO_THOUGHT) is not None:
            self._shares.append(log[NO_THOUGHT])
            self._asked.append(log.get(THOUGHT_ASKED) or 0.0)
            if len(self._shares) == BLOCK:
                signs += self._read_block()
        if "heldout/accuracy" in log:
            signs += self._read_measurement(log)
        return signs

    def _read_block(self) -> list[Sign]:
        share, error = _mean_and_error(self._shares)
        asked, _ = _mean_and_error(self._asked)
        self._shares, self._asked = [], []
        before, self._blocks = self._blocks, [*self._blocks, (share, error)]
        if before:
            least, least_error = min(before)
            if share - least >= RISE and share - least > SHARE_SURE * math.hypot(error, least_error):
                text = f"{share:.0%} of the completions answer without a thought, once it was {least:.0%}"
                return [Sign("no_thought", text)]
        if asked >= 0.5 and share >= MOST and len(self._blocks) >= BLOCKS_TO_LEARN:
            return [Sign("no_thought", f"{share:.0%} of the completions answer without the thought that is asked for")]
        return []

    def _read_measurement(self, log: Mapping[str, Any]) -> list[Sign]:
        low, high = log.get("heldout/accuracy_low"), log.get("heldout/accuracy_high")
        if low is None or high is None:
            return []  # nobody can say whether such an accuracy has changed
        error = (high - low) / (2 * _TWO_SIDED_95)
        self._measurements.append(_Measurement(log.get("step", 0), log["heldout/accuracy"], error, self._rewards))
        self._rewards = []
        pairs = list(zip(self._measurements, self._measurements[1:], strict=False))
        # A scatter takes two rewards, and before the first measurement there are none.
        earlier = [pair for pair in pairs[:-2] if len(_rewards(pair)) > 1]
        if not earlier or len(_rewards(pairs[-1])) < 2:
            return []
        best = max(earlier, key=lambda pair: pair[0].accuracy + pair[1].accuracy)
        best_accuracy, best_error = _accuracy(best)
        accuracy, error = _accuracy(pairs[-1])
        rewards, best_rewards = _rewards(pairs[-1]), _rewards(best)
        reward, reward_error = _mean_and_error(rewards)
        best_reward, best_reward_error = _mean_and_error(best_rewards)
        has_fallen = best_accuracy - accuracy > ACCURACY_SURE * math.hypot(error, best_error)
        has_risen = reward - best_reward > REWARD_SURE * math.hypot(reward_error, best_reward_error)
        if not (has_fallen and has_risen):
            return []
        text = (
            f"the training reward rose from {best_reward:.3g} to {reward:.3g}, while held-out accuracy fell from "
            f"{best_accuracy:.1%} (steps {best[0].step} and {best[1].step}) to {accuracy:.1%}"
        )
        return [Sign("reward_up_accuracy_down", text)]


def verdict_shares(
    values: Sequence[float | None], statuses: Sequence[str | None], threshold: float | None = None
) -> dict[str, float]:
    """
    What became of the answers that a reward judged.

    Args:
        values (`Sequence[float | None]`):
            The reward's values.
        statuses (`Sequence[str | None]`):
            The status of each verdict, `None` where the reward logs none.
        threshold (`float`, *optional*):
            The value above which an answer is right, for a reward that logs no statuses but knows it.

    Returns:
        `dict[str, float]`: shares of all completions: `skipped` (the value is `None`: the gold cannot be read, or the
        reward is for other rows) and, where that is known, `right`, `wrong`, `unparsed` and `timed_out`; the five add
        up to 1.

    Example:

    ```python
    >>> verdict_shares([1.0, 0.0, None, 0.0], ["right", "unparsed", "unreadable_gold", "wrong"])
    {'skipped': 0.25, 'right': 0.25, 'wrong': 0.25, 'unparsed': 0.25, 'timed_out': 0.0}
    >>> verdict_shares([1.0, None], [None, None])
    {'skipped': 0.5}

    ```
    """
    counted = [(value, status) for value, status in zip(values, statuses, strict=True) if value is not None]
    shares = {"skipped": 1 - len(counted) / len(values)}
    judged = [status for _, status in counted]
    if threshold is not None:
        judged = [status or ("right" if value > threshold else "wrong") for value, status in counted]
    if any(judged):
        for status in ("right", "wrong", "unparsed", "timed_out"):
            shares[status] = judged.count(status) / len(values)
    return shares


def _accuracy(pair: tuple[_Measurement, _Measurement]) -> tuple[float, float]:
    first, second = pair
    return (first.accuracy + second.accuracy) / 2, math.hypot(first.error, second.error) / 2


def _rewards(pair: tuple[_Measurement, _Measurement]) -> list[float]:
    return [value for measurement in pair for value in measurement.rewards]


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error by the scatter of the values, of which there are two at least."""
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
