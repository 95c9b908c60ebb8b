"""Checks of `reward_gates`."""

from collections.abc import Sequence
from typing import Any

from ..rewards.combine import read_gates
from .errors import RecipeError
from .recipe import Recipe
from .rewards import RewardFunction, log_name


def check_gates(recipe: Recipe, rewards: Sequence[RewardFunction]) -> None:
    """
    Check that gates name rewards of the recipe, and that a gated reward and the one that opens its gate share rows.

    Args:
        recipe ([`Recipe`]):
            A recipe of a policy method.
        rewards (`Sequence[RewardFunction]`):
            Its rewards.

    Raises:
        RecipeError: Names the gate.
    """
    functions: dict[str, Any] = {log_name(reward.function): reward.function for reward in rewards}
    if recipe.get("reward_adapter") is not None:
        functions["reward_adapter"] = None
    try:
        gates = read_gates(recipe.get("reward_gates") or {}, functions)
    except ValueError as error:
        key, _, message = str(error).partition(": ")
        raise RecipeError(key, message) from error
    for name, reward, gate in zip(functions, rewards, gates, strict=False):
        if gate is None or gate.reward >= len(rewards):
            continue
        own, other = reward.route, rewards[gate.reward].route
        if own and other and own.column == other.column and not set(own.values) & set(other.values):
            raise RecipeError(
                "reward_gates",
                f"{name} and {list(functions)[gate.reward]} are for different rows (`for`), so that nobody knows "
                "whether the gate is open; remove it",
            )
