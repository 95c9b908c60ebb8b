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
from .length import (
    KimiLengthReward,
    check_length_weight,
    kimi_length_rewards,
    length_judge,
    make_kimi_length_reward,
)
from .replay import ReplayBuffer, ScoredSample
from .routing import make_routed_reward
from .steps import (
    AGGREGATES,
    STEP_REWARDS,
    StepReward,
    StepScore,
    aggregate_steps,
    make_chain_step_reward,
    split_steps,
)


REWARDS: dict[str, Callable[..., Reward]] = {
    "accuracy": make_accuracy_reward,
    "closeness": make_closeness_reward,
    "format": make_format_reward,
    "kimi_length": make_kimi_length_reward,
}

__all__ = [
    "AGGREGATES",
    "REWARDS",
    "STEP_REWARDS",
    "KimiLengthReward",
    "ReplayBuffer",
    "Reward",
    "ScoredSample",
    "StepReward",
    "StepScore",
    "aggregate_steps",
    "check_length_weight",
    "kimi_length_rewards",
    "length_judge",
    "make_accuracy_reward",
    "make_chain_step_reward",
    "make_closeness_reward",
    "make_format_reward",
    "make_kimi_length_reward",
    "make_routed_reward",
    "split_steps",
]
