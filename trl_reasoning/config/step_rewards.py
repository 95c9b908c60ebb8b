"""The `step_reward` of a recipe: a name, a dotted path or a mapping with parameters, as in `reward_funcs`."""

import os

from .errors import RecipeError
from .recipe import Recipe
from .rewards import RewardFunction, make_reward
from .schema import METHOD_HINTS


def make_step_reward(recipe: Recipe) -> RewardFunction | None:
    """
    Build the reward that judges the steps of a thought.

    Args:
        recipe ([`Recipe`]):
            `step_reward: chain_steps`, `step_reward: my_rewards.steps`, or `step_reward: {name: process_model, model:
            FOLDER}`.

    Returns:
        [`RewardFunction`] or `None`: `None` for a method that has no such key.

    Raises:
        RecipeError: It is missing, names nothing that is known, or its model is not there.
    """
    from ..data.files import looks_local
    from ..generation.process_scorer import PROCESS_SCORERS, ProcessScorer
    from ..rewards.steps import STEP_REWARDS

    if "step_reward" not in METHOD_HINTS.get(recipe.method, {}):
        return None
    known = {**STEP_REWARDS, **PROCESS_SCORERS}
    entry = recipe.get("step_reward")
    if not entry:
        raise RecipeError(
            "step_reward",
            f"missing; `method: {recipe.method}` needs one of {', '.join(sorted(known))}, or a dotted path",
        )
    if isinstance(entry, dict) and entry.keys() & {"weight", "for"}:
        raise RecipeError("step_reward", "is the only one of its kind and has neither `weight` nor `for`; remove them")
    reward = make_reward(entry, "step_reward", known)
    scorer = reward.function
    if isinstance(scorer, ProcessScorer) and looks_local(scorer.path) and not os.path.isdir(scorer.path):
        raise RecipeError("step_reward.model", f"no folder {scorer.path!r} in {os.getcwd()}")
    return reward


def process_models_on_hub(reward: RewardFunction) -> list[str]:
    """The process reward model of a step reward, where it can only be on the hub."""
    from ..generation.process_scorer import ProcessScorer

    scorer = reward.function
    return [scorer.path] if isinstance(scorer, ProcessScorer) and not os.path.isdir(scorer.path) else []
