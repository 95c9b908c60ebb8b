"""
Reward functions with TRL's signature, made by factories so that a recipe can give each its own parameters.

Each made reward is a picklable callable with a `__name__` (TRL's name for it in the logs) and `columns`, the dataset
columns it needs. `REWARDS` maps the names that recipes use to the factories.
"""

from collections.abc import Callable

from ._accuracy import make_accuracy_reward
from ._closeness import make_closeness_reward
from ._format import make_format_reward
from ._reward import Reward


REWARDS: dict[str, Callable[..., Reward]] = {
    "accuracy": make_accuracy_reward,
    "closeness": make_closeness_reward,
    "format": make_format_reward,
}

__all__ = ["REWARDS", "Reward", "make_accuracy_reward", "make_closeness_reward", "make_format_reward"]
