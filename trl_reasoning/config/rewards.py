"""The `reward_funcs` of a recipe: names, dotted paths and mappings with parameters and a weight."""

import dataclasses
import importlib
import inspect
import os
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..rewards.routing import make_routed_reward, unrouted
from .convert import convert
from .errors import RecipeError, did_you_mean


# What the trainer itself passes to a reward function; every other parameter is a column of the data.
_TRAINER_ARGUMENTS = frozenset(
    (
        "prompts",
        "completions",
        "completion_ids",
        "texts",
        "thought_opened",
        "trainer_state",
        "log_extra",
        "log_metric",
        "environments",
        "environment_states",
        "images",
    )
)
_VARIABLE = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


@dataclasses.dataclass(frozen=True)
class Route:
    """The rows that a reward is for (`for: {scenario: [math, code]}`): a column and the values in it."""

    column: str
    values: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class RewardFunction:
    """One reward of a recipe: the callable, its weight, the data columns that it needs and the rows it is for."""

    name: str
    function: Callable[..., Any]
    weight: float
    columns: tuple[str, ...]
    route: Route | None = None


def make_rewards(
    entries: Sequence[str | dict[str, Any]], weights: Sequence[float] | None = None, *, key: str = "reward_funcs"
) -> list[RewardFunction]:
    """
    Build the reward functions that a recipe names.

    Args:
        entries (`Sequence[str | dict]`):
            Each a name of [`REWARDS`] or [`SCORERS`], a dotted path such as `"my_rewards.score"` (importable from the
            current directory), or a mapping `{name: ..., weight: ..., for: ..., <parameter>: ...}`. A dotted path
            with parameters, or one of a class, is called with them and gives the reward function. `for: {scenario:
            [math, code]}` makes a reward give `None` outside the rows that have one of these values in the column;
            where rewards share a name, the values of such a one are added to it.
        weights (`Sequence[float]`, *optional*):
            The recipe's `reward_weights`, one per entry.
        key (`str`, *optional*, defaults to `"reward_funcs"`):
            The recipe's key that names them, for errors.

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
        raise RecipeError(key, f"names no reward; known: {', '.join(sorted(_known()))}")
    rewards = [make_reward(entry, f"{key}[{index}]", _known()) for index, entry in enumerate(entries)]
    names = [log_name(reward.function) for reward in rewards]
    for reward, name in zip(rewards, names, strict=True):
        if reward.route is not None and names.count(name) > 1:
            reward.function.__name__ = "_".join([name, *map(str, reward.route.values)])
    names = [log_name(reward.function) for reward in rewards]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise RecipeError(key, f"`{twice[0]}` is named twice, and its two curves would be logged as one")
    return rewards if weights is None else _with_weights(rewards, entries, weights)


def check_reward_models(rewards: Sequence[RewardFunction], *, key: str = "reward_funcs") -> list[str]:
    """
    Check that the reward models and judges that are named by a folder are there.

    Returns:
        `list[str]`: those that can only be on the hub.

    Raises:
        RecipeError: There is no such folder.
    """
    from ..builtin import resolve_model
    from ..data.files import looks_local

    on_hub = []
    for index, reward in enumerate(rewards):
        for name, path in getattr(unrouted(reward.function), "model_paths", {}).items():
            if os.path.isdir(resolve_model(path)):
                continue
            if looks_local(path):
                raise RecipeError(f"{key}[{index}].{name}", f"no folder {path!r} in {os.getcwd()}")
            on_hub.append(path)
    return on_hub


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


def make_reward(entry: str | dict[str, Any], where: str, known: Mapping[str, Callable[..., Any]]) -> RewardFunction:
    """One reward; `where` names its place in the recipe, `known` the factories that it may name."""
    parameters = {"name": entry} if isinstance(entry, str) else dict(entry)
    name = parameters.pop("name", None)
    if not isinstance(name, str):
        raise RecipeError(
            where, f"a reward with parameters has a `name`, found only: {', '.join(map(str, parameters))}"
        )
    weight = convert(parameters.pop("weight", 1.0), float, f"{where}.weight")
    route = _route(parameters.pop("for"), f"{where}.for") if "for" in parameters else None
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
    columns = _columns(function)
    if route is not None:
        function = make_routed_reward(function, route.column, route.values, columns)
    return RewardFunction(name=name, function=function, weight=weight, columns=columns, route=route)


def _route(entry: Any, where: str) -> Route:
    if not isinstance(entry, dict) or len(entry) != 1:
        raise RecipeError(where, f"expected one column and its values, `{{scenario: [math, code]}}`, got {entry!r}")
    [(column, values)] = entry.items()
    values = values if isinstance(values, list) else [values]
    for value in values:
        if not isinstance(value, str | int | float):
            raise RecipeError(where, f"expected texts or numbers as values of `{column}`, got {value!r}")
    if not values:
        raise RecipeError(where, f"expected at least one value of `{column}`, got none")
    return Route(str(column), tuple(values))


def _known() -> dict[str, Callable[..., Any]]:
    from ..generation.scorers import SCORERS
    from ..rewards import REWARDS

    return {**REWARDS, **SCORERS}


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
    required = [each for each in signature.parameters.values() if each.default is inspect.Parameter.empty]
    needed = [each.name for each in required if each.kind not in _VARIABLE]
    if "completions" in needed:
        raise RecipeError(
            where,
            f"`{name}` is a reward function and takes no parameters; with parameters, name a function that makes it",
        )
    missing = [key for key in needed if key not in values]
    if missing:
        raise RecipeError(where, f"`{name}` needs {', '.join(f'`{key}`' for key in missing)}: add it to this entry")
    try:
        return factory(**values)
    except (TypeError, ValueError) as error:
        raise RecipeError(where, f"`{name}` cannot be made: {error}") from error


def _columns(function: Callable[..., Any]) -> tuple[str, ...]:
    """The columns a reward states, or for a plain function its parameters without a default."""
    stated = getattr(function, "columns", None)
    if stated is not None:
        return tuple(stated)
    return tuple(
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind not in _VARIABLE
        and parameter.default is inspect.Parameter.empty
        and name not in _TRAINER_ARGUMENTS
    )


def log_name(function: Any) -> str:
    """The name under which the trainer logs a reward function."""
    return getattr(function, "__name__", type(function).__name__)
