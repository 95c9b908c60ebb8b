"""Checks of the length reward's weight and schedule."""

from collections.abc import Sequence

from .errors import RecipeError
from .recipe import Recipe
from .rewards import RewardFunction


def check_length_reward(recipe: Recipe, rewards: Sequence[RewardFunction]) -> None:
    """
    Check that the length reward cannot make a wrong answer the better one, and that its schedule can be followed.

    Args:
        recipe ([`Recipe`]):
            A recipe of a policy method.
        rewards (`Sequence[RewardFunction]`):
            Its rewards.

    Raises:
        RecipeError: A weight out of range, or a schedule without its reward or without held-out measurements.
    """
    from ..rewards import check_length_weight, length_judge

    of_accuracy = next((reward.weight for reward in rewards if reward.name == "accuracy"), 1.0)
    lengths = [reward for reward in rewards if length_judge(reward.function) is not None]
    for reward in lengths:
        try:
            check_length_weight(reward.weight, of_accuracy)
        except ValueError as error:
            key = "reward_weights" if recipe.get("reward_weights") is not None else "reward_funcs"
            raise RecipeError(key, str(error).removeprefix("reward_weights: ")) from error
    for key in ("length_reward_start_step", "length_reward_patience"):
        if recipe.get(key) is not None and not lengths:
            raise RecipeError(key, "there is no length reward to switch on; add `kimi_length` to `reward_funcs`")
    if recipe.get("length_reward_patience") is not None and recipe.get("heldout") is None:
        raise RecipeError(
            "length_reward_patience",
            "counts held-out measurements, and the recipe has no `heldout`; add it, or set `length_reward_start_step`",
        )
