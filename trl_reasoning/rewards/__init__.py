"""
Reward functions with TRL's signature, made by factories so that a recipe can give each its own parameters.

Each made reward is a picklable callable with a `__name__` (TRL's name for it in the logs) and `columns`, the dataset
columns it needs. `REWARDS` maps the names that recipes use to the factories.
"""

from collections.abc import Callable

from ._accuracy import accuracy_gap, make_accuracy_reward, right_above
from ._closeness import make_closeness_reward
from ._format import make_format_reward
from ._reward import Reward
from .code import make_code_tests_reward
from .cosine import make_cosine_length_reward
from .countdown import check_countdown, make_countdown_reward
from .instructions import make_instructions_reward, write_instructions
from .language import make_language_consistency_reward
from .length import (
    KimiLengthReward,
    check_length_weight,
    kimi_length_rewards,
    length_judge,
    make_kimi_length_reward,
)
from .overlong import SoftOverlongReward, make_soft_overlong_reward
from .puzzles import judge_puzzles, make_reasoning_gym_reward
from .repetition import make_repetition_reward
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
    "code_tests": make_code_tests_reward,
    "cosine_length": make_cosine_length_reward,
    "countdown": make_countdown_reward,
    "format": make_format_reward,
    "instructions": make_instructions_reward,
    "kimi_length": make_kimi_length_reward,
    "language_consistency": make_language_consistency_reward,
    "reasoning_gym": make_reasoning_gym_reward,
    "repetition": make_repetition_reward,
    "soft_overlong": make_soft_overlong_reward,
}

__all__ = [
    "AGGREGATES",
    "REWARDS",
    "STEP_REWARDS",
    "KimiLengthReward",
    "ReplayBuffer",
    "Reward",
    "ScoredSample",
    "SoftOverlongReward",
    "StepReward",
    "StepScore",
    "accuracy_gap",
    "aggregate_steps",
    "check_countdown",
    "check_length_weight",
    "judge_puzzles",
    "kimi_length_rewards",
    "length_judge",
    "make_accuracy_reward",
    "make_chain_step_reward",
    "make_closeness_reward",
    "make_code_tests_reward",
    "make_cosine_length_reward",
    "make_countdown_reward",
    "make_format_reward",
    "make_instructions_reward",
    "make_kimi_length_reward",
    "make_language_consistency_reward",
    "make_reasoning_gym_reward",
    "make_repetition_reward",
    "make_routed_reward",
    "make_soft_overlong_reward",
    "right_above",
    "split_steps",
    "write_instructions",
]
