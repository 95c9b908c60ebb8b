"""Conversion of a recipe's values to the types that the configuration classes declare."""

import enum
import inspect
import math
import types
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal, Union, get_args, get_origin

from .errors import RecipeError, did_you_mean


_TRUE = ("true", "yes", "on")
_FALSE = ("false", "no", "off")


def convert(value: Any, hint: Any, key: str) -> Any:
    """
    Convert one value of a recipe to its declared type, or say what was expected.

    Numbers written as text are converted (YAML 1.1 reads `1e-6` as text), also inside lists, unions and mappings. A
    whole number is left as it is where a float is declared.

    Args:
        value (`Any`):
            The value as YAML gave it.
        hint (`Any`):
            The type hint of the field.
        key (`str`):
            Name used in the error, for instance `"reward_weights[0]"`.

    Returns:
        `Any`: The value in the declared type.

    Raises:
        RecipeError: The value cannot be read as that type without losing something.

    Example:

    ```python
    >>> convert(["1e-1", 1], list[float], "reward_weights")
    [0.1, 1]
    >>> convert(16.0, int | None, "lora_r")
    16

    ```
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return _convert_union(value, arguments, key)
    if origin is Literal:
        return check_choice(value, arguments, key)
    if hint is list or origin is list:
        if not isinstance(value, list):
            raise _mismatch(value, hint, key, f" Write `{key}: [{value}]`." if isinstance(value, str) else "")
        item_hint = arguments[0] if arguments else Any
        return [convert(item, item_hint, f"{key}[{index}]") for index, item in enumerate(value)]
    if hint is dict or origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise _mismatch(value, hint, key)
        item_hint = arguments[1] if arguments else Any
        return {name: convert(item, item_hint, f"{key}.{name}") for name, item in value.items()}
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return check_choice(value, [member.value for member in hint], key)
    if hint in _SCALARS:
        return _SCALARS[hint](value, key)
    raise RecipeError(key, f"an object of type {hint} cannot be written in a recipe")


def check_choice(value: Any, choices: Sequence[Any], key: str) -> Any:
    """Return `value` where it is one of `choices`; otherwise name the choices and the nearest one."""
    if value in choices:
        return value
    if value is False and "no" in choices:  # YAML reads an unquoted `no` as false
        return "no"
    hint = did_you_mean(str(value), [str(choice) for choice in choices])
    listed = ", ".join(str(choice) for choice in choices)
    raise RecipeError(key, f"{value!r} is not one of: {listed}.{hint}")


def describe(hint: Any) -> str:
    """What a type hint asks for, in the words of a recipe: `a list of numbers`."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(describe(argument) for argument in arguments if argument is not types.NoneType)
    if origin is list and arguments:
        return f"a list of {_PLURALS.get(arguments[0], 'entries')}"
    if hint is list or origin is list:
        return "a list"
    if hint is dict or origin in (dict, Mapping):
        return "a mapping"
    return _NAMES.get(hint, str(hint))


def _convert_union(value: Any, members: tuple[Any, ...], key: str) -> Any:
    if value is None and types.NoneType in members:
        return None
    members = tuple(member for member in members if member is not types.NoneType)
    if any(inspect.isclass(member) and issubclass(member, enum.Enum) for member in members):
        # `SchedulerType | str`: the text is there for the spelling of the enum's members, not for any text.
        members = tuple(member for member in members if member is not str)
    exact = [member for member in members if type(value) is (get_origin(member) or member)]
    for member in exact or members:
        try:
            return convert(value, member, key)
        except RecipeError:
            if len(exact or members) == 1:
                raise
    suggestion = f" Write `{key}: [{value}]`." if isinstance(value, str) and _wants_list_only(members) else ""
    raise _mismatch(value, Union[members], key, suggestion)  # noqa: UP007 (built from a tuple)


def _wants_list_only(members: tuple[Any, ...]) -> bool:
    return all(get_origin(member) is list or member is list for member in members)


def _convert_bool(value: Any, key: str) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _TRUE + _FALSE:
        return value.lower() in _TRUE
    raise _mismatch(value, bool, key)


def _convert_float(value: Any, key: str) -> float:
    number = value
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            raise _mismatch(value, float, key) from None
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise _mismatch(value, float, key)
    return number


def _convert_int(value: Any, key: str) -> int:
    try:
        number = _convert_float(value, key)
    except RecipeError:
        raise _mismatch(value, int, key) from None
    if number != int(number):
        raise _mismatch(value, int, key, f" The nearest are {math.floor(number)} and {math.ceil(number)}.")
    return int(number)


def _convert_str(value: Any, key: str) -> str:
    if isinstance(value, bool):
        raise _mismatch(value, str, key, f' YAML reads yes, no, on and off as true and false; quote it: "{value}".')
    if isinstance(value, str | int | float | date):
        return str(value)
    raise _mismatch(value, str, key)


def _mismatch(value: Any, hint: Any, key: str, suggestion: str = "") -> RecipeError:
    got = "nothing (null)" if value is None else repr(value)
    return RecipeError(key, f"expected {describe(hint)}, got {got}.{suggestion}")


_SCALARS = {bool: _convert_bool, int: _convert_int, float: _convert_float, str: _convert_str}
_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
_PLURALS = {bool: "true or false values", int: "whole numbers", float: "numbers", str: "texts"}
