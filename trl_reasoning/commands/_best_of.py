"""The key `best_of` of an evaluation: which model chooses among the samples of a problem."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..config.convert import check_choice
from ..config.errors import RecipeError


if TYPE_CHECKING:
    from ..generation import RewardModelScorer
    from ..generation.process_scorer import ProcessScorer


def make_best_of(entry: Mapping[str, Any]) -> "tuple[ProcessScorer | RewardModelScorer, str | None]":
    """
    Build the scorer that chooses, without loading its model.

    Args:
        entry (`Mapping[str, Any]`):
            `model` (folder or hub id of a reward model or of a process reward model), `aggregate` (of the latter: min,
            product or last) and parameters of the scorer.

    Returns:
        `tuple`: the scorer, and how step scores are put together; `None` for a reward model.

    Raises:
        RecipeError: names the key below `best_of`.
    """
    from ..config.rewards import make_reward
    from ..data.files import looks_local
    from ..evaluation import is_reward_model
    from ..generation.process_scorer import PROCESS_SCORERS
    from ..generation.scorers import SCORERS
    from ..rewards.steps import AGGREGATES

    parameters = dict(entry)
    model = parameters.get("model")
    if not isinstance(model, str):
        raise RecipeError("best_of.model", "is missing: folder or hub id of a (process) reward model")
    if looks_local(model) and not os.path.isdir(model):
        raise RecipeError("best_of.model", f"no folder {model!r} in {os.getcwd()}")
    if "name" in parameters:
        raise RecipeError("best_of.name", "has no effect: the model's folder says what it is; remove it")
    aggregate = parameters.pop("aggregate", None)
    if is_reward_model(model):
        if aggregate is not None:
            raise RecipeError("best_of.aggregate", f"{model} is a reward model, which has no step scores; remove it")
        name, known = "reward_model", SCORERS
    else:
        name, known = "process_model", PROCESS_SCORERS
        aggregate = check_choice(aggregate or "min", AGGREGATES, "best_of.aggregate")
    scorer: Any = make_reward({"name": name, **parameters}, "best_of", known).function
    return scorer, aggregate


def best_of_line(found: Mapping[str, Any]) -> str:
    """One line for people."""
    from ..evaluation import format_accuracy

    how = f" ({found['aggregate']} of the steps)" if found["aggregate"] else ""
    best = format_accuracy(found["accuracy"], found["interval"])
    majority = format_accuracy(found["majority"], found["majority_interval"])
    return (
        f"best of {found['samples']} by {found['model']}{how}: {best}; majority {majority}, mean {found['mean']:.1%}, "
        f"any right {found['any_right']:.1%}"
    )
