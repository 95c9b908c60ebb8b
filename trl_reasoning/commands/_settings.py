"""Keys of a command that come from a YAML file and from flags: read as YAML, checked like those of a recipe."""

import argparse
import json
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, TypeVar

from ..config.convert import convert
from ..config.errors import RecipeError, did_you_mean
from ..config.overrides import apply_override, parse_overrides
from ..config.recipe import read_mapping, resolve_interpolations
from ..config.shipped import find_recipe


Settings = TypeVar("Settings")


def add_setting_arguments(
    parser: argparse.ArgumentParser, settings_class: type[Settings], help_texts: Mapping[str, str]
) -> None:
    """
    Every field of a settings class as a flag, and a YAML file with the same keys as the positional argument.

    Values stay text here and are read as YAML later, like those of a recipe's overrides.

    Args:
        parser (`argparse.ArgumentParser`):
            The command's parser.
        settings_class (`type`):
            A dataclass; its fields are the keys. A field's metadata are arguments of its flag, for instance `nargs`.
        help_texts (`Mapping[str, str]`):
            One line for each key.
    """
    parser.allow_abbrev = False
    parser.add_argument("recipe", nargs="?", help="YAML file with the keys below; flags override it")
    for name, item in _fields(settings_class).items():
        flag: dict[str, Any] = dict(item.metadata)
        if item.type in (bool, bool | None):
            flag = {"nargs": "?", "const": "true"}
        shown = item.default not in (MISSING, None) and item.type is not bool
        text = help_texts[name] + (f" (default {item.default})" if shown else "")
        parser.add_argument(
            f"--{name}", default=argparse.SUPPRESS, metavar="VALUE", help=text.replace("%", "%%"), **flag
        )


def read_settings(
    settings_class: type[Settings],
    args: argparse.Namespace,
    extra: Sequence[str],
    command: str,
    help_texts: Mapping[str, str],
    check: Callable[[Settings], None] | None = None,
) -> tuple[Settings, Path | None]:
    """
    The settings of a command from its YAML file and its flags.

    Args:
        settings_class (`type`):
            The dataclass given to [`add_setting_arguments`].
        args (`argparse.Namespace`):
            Of that parser.
        extra (`Sequence[str]`):
            Words the parser did not know: overrides of nested keys, or an error.
        command (`str`):
            Name of the command; what the file's `kind` has to be.
        help_texts (`Mapping[str, str]`):
            One line for each key.
        check (`Callable`, *optional*):
            Further checks of the settings; raises `RecipeError`.

    Returns:
        `tuple[Settings, Path | None]`: the settings, and the folder of the YAML file where there is one.

    Raises:
        [`~trl_reasoning.config.RecipeError`]: names the key, what was expected and the nearest spelling.
    """
    known = _fields(settings_class)
    flags = [f"--{name}={_as_yaml(vars(args)[name])}" for name in known if name in vars(args)]
    recipe, extra = _give_back_value(args.recipe, list(extra))
    _check_keys(
        [word[2:].partition("=")[0].partition(".")[0] for word in extra if word.startswith("--")], known, command
    )
    base_dir = None if recipe is None else find_recipe(recipe).parent
    return make_settings(settings_class, recipe, [*flags, *extra], command, help_texts, check), base_dir


def _as_yaml(value: str | list[str]) -> str:
    """A flag's value as it is; the words of one that takes several (`--average A B`, also `[A, B]`) as a list."""
    if isinstance(value, str):
        return value
    return value[0] if len(value) == 1 and value[0].startswith("[") else json.dumps(value)


def _give_back_value(recipe: str | None, extra: list[str]) -> tuple[str | None, list[str]]:
    """argparse takes the word after a flag it does not know (`--task_params.size 50`) for the recipe: undo that."""
    alone = [
        place
        for place, word in enumerate(extra)
        if word.startswith("--") and "=" not in word and (extra[place + 1 :] or ["--"])[0].startswith("--")
    ]
    if recipe is None or not alone or Path(recipe).is_file():
        return recipe, extra
    return None, [*extra[: alone[0] + 1], recipe, *extra[alone[0] + 1 :]]


def make_settings(
    settings_class: type[Settings],
    recipe: str | Path | None,
    overrides: Sequence[str],
    command: str,
    help_texts: Mapping[str, str],
    check: Callable[[Settings], None] | None = None,
) -> Settings:
    """
    Read and check a command's recipe; loads neither data nor a model.

    Args:
        settings_class (`type`):
            A dataclass; its fields are the keys.
        recipe (`str` or `Path`, *optional*):
            YAML file, or the name of a shipped recipe.
        overrides (`Sequence[str]`):
            Words `--key value`.
        command (`str`):
            The kind.
        help_texts (`Mapping[str, str]`):
            One line for each key.
        check (`Callable`, *optional*):
            As [`read_settings`].

    Returns:
        An instance of `settings_class`.

    Raises:
        [`~trl_reasoning.config.RecipeError`]: as [`read_settings`].
    """
    file = find_recipe(recipe) if recipe is not None else None
    try:
        values = read_mapping(file) if file is not None else {}
        settings = _check(settings_class, values, overrides, command, help_texts)
        if check is not None:
            check(settings)
        return settings
    except RecipeError as error:
        error.path = file
        raise


def _check(
    settings_class: type[Settings],
    values: dict[str, Any],
    overrides: Sequence[str],
    command: str,
    help_texts: Mapping[str, str],
) -> Settings:
    kind = values.pop("kind", command)
    if kind != command:
        raise RecipeError("kind", f"{kind!r} is not a recipe of `trl-reasoning {command}`; expected `kind: {command}`")
    pairs = parse_overrides(overrides)
    known = _fields(settings_class)
    _check_keys([*values, *(key.partition(".")[0] for key, _ in pairs)], known, command)
    for key, value in pairs:
        apply_override(values, key, value)
    for key, item in known.items():
        if key not in values and item.default is MISSING and item.default_factory is MISSING:
            raise RecipeError(key, f"is missing: {help_texts[key]}")
    hints = typing.get_type_hints(settings_class)
    checked = {key: convert(value, hints[key], key) for key, value in resolve_interpolations(values).items()}
    return settings_class(**checked)


def _check_keys(keys: Iterable[Any], known: Mapping[str, Field], command: str) -> None:
    for key in keys:
        if key not in known:
            raise RecipeError(str(key), f"not a key of `{command}`.{did_you_mean(str(key), known)}")


def _fields(settings_class: Any) -> dict[str, Field]:
    return {item.name: item for item in fields(settings_class)}
