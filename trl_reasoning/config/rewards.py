"""The `reward_funcs` of a recipe: names, dotted paths and mappings with parameters and a weight."""

import dataclasses
import importlib
import inspect
import os
import sys
import typing
from collections.abc import Callable, Sequence
from typing import Any

from .convert import convert
from .errors import RecipeError, did_you_mean


# What the trainer itself passes to a reward function; every other parameter is a column of the data.
_TRAINER_ARGUMENTS = frozenset(
    (
        "prompts",
        "completions",
        "completion_ids",
        "thought_opened",
        "trainer_state",
        "log_extra",
        "log_metric",
        "environments",
        "environment_states",
        "images",
    )
)


@dataclasses.dataclass(frozen=True)
class RewardFunction:
    """One reward of a recipe: the callable, its weight and the data columns that it needs."""

    name: str
    function: Callable[..., Any]
    weight: float
    columns: tuple[str, ...]


def make_rewards(
    entries: Sequence[str | dict[str, Any]], weights: Sequence[float] | None = None
) -> list[RewardFunction]:
    """
    Build the reward functions that a recipe names.

    Args:
        entries (`Sequence[str | dict]`):
            Each a name of [`REWARDS`], a dotted path such as `"my_rewards.score"` (importable from the current
            directory), or a mapping `{name: ..., weight: ..., <parameter>: ...}`. A dotted path with parameters, or
            one of a class, is called with them and gives the reward function.
        weights (`Sequence[float]`, *optional*):
            The recipe's `reward_weights`, one per entry.

    Returns:
        `list[RewardFunction]`: in the order of the recipe.

    Raises:
        RecipeError: An unknown name, parameter or module, or weights that do not fit the rewards.

    Example:

    ```python
    >>> rewards = make_rewards(["accuracy", {"name": "format", "weight": 0.2}])
    >>> [(reward.name, reward.weight, reward.columns) for reward in rewards]
    [('accuracy', 1.0, ('solution',)), ('format', 0.2, ())]

    ```
    """
    if not entries:
        raise RecipeError("reward_funcs", f"names no reward; known: {', '.join(sorted(_known()))}")
    rewards = [_make_reward(entry, f"reward_funcs[{index}]") for index, entry in enumerate(entries)]
    names = [_log_name(reward.function) for reward in rewards]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise RecipeError("reward_funcs", f"`{twice[0]}` is named twice, and its two curves would be logged as one")
    return rewards if weights is None else _with_weights(rewards, entries, weights)


def _with_weights(
    rewards: list[RewardFunction], entries: Sequence[str | dict[str, Any]], weights: Sequence[float]
) -> list[RewardFunction]:
    if any(isinstance(entry, dict) and "weight" in entry for entry in entries):
        raise RecipeError("reward_weights", "set together with a `weight` inside `reward_funcs`; keep one of the two")
    if len(weights) != len(rewards):
        raise RecipeError(
            "reward_weights",
            f"{len(weights)} weights for {len(rewards)} rewards ({', '.join(reward.name for reward in rewards)}); "
            "give one weight per reward",
        )
    return [dataclasses.replace(reward, weight=weight) for reward, weight in zip(rewards, weights, strict=True)]


def _make_reward(entry: str | dict[str, Any], where: str) -> RewardFunction:
    parameters = {"name": entry} if isinstance(entry, str) else dict(entry)
    name = parameters.pop("name", None)
    if not isinstance(name, str):
        raise RecipeError(
            where, f"a reward with parameters has a `name`, found only: {', '.join(map(str, parameters))}"
        )
    weight = convert(parameters.pop("weight", 1.0), float, f"{where}.weight")
    known = _known()
    if name in known:
        function = _call(known[name], parameters, name, where)
    elif "." in name:
        function = _import(name, where)
        if parameters or inspect.isclass(function):
            function = _call(function, parameters, name, where)
    else:
        hint = did_you_mean(name, known)
        raise RecipeError(
            where, f"{name!r} is not a known reward ({', '.join(sorted(known))}) nor a dotted path.{hint}"
        )
    if not callable(function):
        raise RecipeError(where, f"`{name}` is {function!r}, not a function")
    return RewardFunction(name=name, function=function, weight=weight, columns=_columns(function))


def _known() -> dict[str, Callable[..., Any]]:
    from ..rewards import REWARDS

    return REWARDS


def _import(path: str, where: str) -> Any:
    module_name, _, attribute = path.rpartition(".")
    if os.getcwd() not in sys.path:  # a console script does not have the current directory on its path
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # the module is the user's: whatever it raises is shown with its name
        raise RecipeError(
            where, f"cannot import `{module_name}` of `{path}` ({type(error).__name__}: {error})"
        ) from error
    if not hasattr(module, attribute):
        public = [name for name in vars(module) if not name.startswith("_")]
        hint = did_you_mean(attribute, public)
        raise RecipeError(where, f"cannot import `{attribute}` from `{module_name}`: there is no such name.{hint}")
    return getattr(module, attribute)


def _call(factory: Any, parameters: dict[str, Any], name: str, where: str) -> Any:
    signature = inspect.signature(factory)
    hints = typing.get_type_hints(factory.__init__ if inspect.isclass(factory) else factory)
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in signature.parameters.values())
    values = {}
    for key, value in parameters.items():
        if key not in signature.parameters and not takes_any:
            listed = ", ".join(signature.parameters) or "none"
            hint = did_you_mean(str(key), signature.parameters)
            raise RecipeError(where, f"`{name}` has no parameter `{key}` (parameters: {listed}).{hint}")
        values[key] = convert(value, hints.get(key, Any), f"{where}.{key}")
    try:
        return factory(**values)
    except (TypeError, ValueError) as error:
        raise RecipeError(where, f"`{name}` cannot be made: {error}") from error


def _columns(function: Callable[..., Any]) -> tuple[str, ...]:
    """The columns a reward states, or for a plain function its parameters without a default."""
    stated = getattr(function, "columns", None)
    if stated is not None:
        return tuple(stated)
    variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return tuple(
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind not in variable
        and parameter.default is inspect.Parameter.empty
        and name not in _TRAINER_ARGUMENTS
    )


def _log_name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)
