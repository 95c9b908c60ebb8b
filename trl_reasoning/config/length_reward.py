"""Checks of the length rewards: the weight and schedule of Kimi's, and lengths that no completion can have."""

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
    from ..rewards import accuracy_gap, check_length_weight, length_judge

    gaps = (reward.weight * accuracy_gap(reward.function) for reward in rewards if reward.name == "accuracy")
    of_accuracy = next(gaps, 1.0)
    lengths = [reward for reward in rewards if length_judge(reward.function) is not None]
    for reward in lengths:
        try:
            check_length_weight(reward.weight, of_accuracy)
        except ValueError as error:
            key = "reward_weights" if recipe.get("reward_weights") is not None else "reward_funcs"
            raise RecipeError(key, str(error).removeprefix("reward_weights: ")) from error
    if lengths and recipe.get("multi_objective_aggregation") == "normalize_then_sum":
        from ..trainers._length_reward import NOT_NORMALIZED

        raise RecipeError("multi_objective_aggregation", NOT_NORMALIZED)
    for key in ("length_reward_start_step", "length_reward_patience"):
        if recipe.get(key) is not None and not lengths:
            raise RecipeError(key, "there is no length reward to switch on; add `kimi_length` to `reward_funcs`")
    if recipe.get("length_reward_patience") is not None and recipe.get("heldout") is None:
        raise RecipeError(
            "length_reward_patience",
            "counts held-out measurements, and the recipe has no `heldout`; add it, or set `length_reward_start_step`",
        )


def check_overlong(recipe: Recipe, rewards: Sequence[RewardFunction]) -> None:
    """
    Check that a completion can be long enough for the soft overlong punishment.

    Args:
        recipe ([`Recipe`]):
            A recipe of a policy method.
        rewards (`Sequence[RewardFunction]`):
            Its rewards.

    Raises:
        RecipeError: The punishment starts where every completion is cut, so that it would always be 0.
    """
    from ..rewards import SoftOverlongReward
    from ..rewards.routing import unrouted

    limit = recipe.setting("max_completion_length")
    for index, reward in enumerate(rewards):
        function = unrouted(reward.function)
        if isinstance(function, SoftOverlongReward) and function.max_length - function.cache >= limit:
            raise RecipeError(
                f"reward_funcs[{index}].max_length",
                f"the punishment would start above {function.max_length - function.cache} tokens, where no completion "
                f"gets (`max_completion_length` is {limit}); write at most {limit}, and a `cache` above 0",
            )
