"""Checks of the keys that `sampling` reads: the rewards they name, and the data's difficulties."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .errors import RecipeError
from .recipe import Recipe
from .rewards import RewardFunction, log_name


if TYPE_CHECKING:
    from datasets import Dataset


def check_difficulties(dataset: "Dataset", recipe: Recipe) -> None:
    """
    Check that each row has a finite number in the recipe's `difficulty_column`, where it names one.

    Raises:
        RecipeError: Names the column or the row.
    """
    from ..data import DataError, read_difficulties

    if recipe.get("difficulty_column") is None:
        return
    try:
        read_difficulties(dataset, recipe.values["difficulty_column"])
    except DataError as error:
        raise RecipeError("difficulty_column", str(error).removeprefix("difficulty_column: ")) from error


def check_success_reward(recipe: Recipe, rewards: Sequence[RewardFunction]) -> None:
    """
    Check that `success_reward` is one of the recipe's rewards.

    Raises:
        RecipeError: Names the rewards.
    """
    wanted = recipe.get("success_reward")
    if wanted is None:
        return
    from ..errors import UserError
    from ..trainers._sampling import find_success_reward

    try:
        find_success_reward(wanted, [log_name(reward.function) for reward in rewards])
    except UserError as error:
        raise RecipeError("success_reward", str(error).removeprefix("success_reward: ")) from error
