"""Reading a recipe: one flat YAML file is one training run, and every key in it is checked."""

import dataclasses
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import yaml

from .errors import RecipeError
from .methods import Method, find_method
from .overrides import apply_override, parse_overrides


@dataclasses.dataclass
class Recipe:
    """A recipe whose names, types and choices were checked.

    Args:
        path (`Path` or `None`):
            The file it was read from.
        method (`str`):
            The method's stem.
        values (`dict[str, Any]`):
            The keys that were given, in their declared types.
        spec (`Method`):
            The method itself.
    """

    path: Path | None
    method: str
    values: dict[str, Any]
    spec: Method

    def get(self, key: str, default: Any = None) -> Any:
        """The value given in the recipe, or `default`."""
        return self.values.get(key, default)

    def setting(self, key: str) -> Any:
        """The value given in the recipe, or the default of the method's configuration."""
        from .schema import method_fields

        return self.values[key] if key in self.values else method_fields(self.method)[key].default

    @property
    def name(self) -> str:
        """The file's name without its ending; the method where there is no file."""
        return self.path.stem if self.path else self.method

    @property
    def base_dir(self) -> Path | None:
        """The recipe's folder, which relative paths of data files may start from."""
        return self.path.parent if self.path else None

    def to_yaml(self) -> str:
        """The resolved recipe as YAML, the method first; it can be run again as it is."""
        return dump_yaml({"method": self.method} | self.values)


def load_recipe(path: str | Path, overrides: Sequence[str] = (), *, check_env: bool = True) -> Recipe:
    """
    Read a recipe, apply the overrides and check every name, type, choice and combination in it.

    Nothing is loaded here but the configuration classes; [`prepare`] makes the checks that need a tokenizer or data.

    Args:
        path (`str` or `Path`):
            A YAML file, or the name of a shipped recipe such as `"smoke/grpo_tiny"`.
        overrides (`Sequence[str]`, *optional*):
            Words of the command line: `["--learning_rate", "2e-6", "--heldout.every", "5"]`.
        check_env (`bool`, *optional*, defaults to `True`):
            Whether to check what depends on where the run starts: the batch arithmetic with the number of processes,
            a free MASTER_PORT, the precision that accelerate asks for. A launcher, whose processes will check these
            themselves, sets it to False.

    Returns:
        [`Recipe`]: the checked values.

    Raises:
        RecipeError: Names the key, what was expected and the nearest spelling or setting.
    """
    from .shipped import find_recipe

    file = find_recipe(path)
    try:
        return make_recipe(read_mapping(file), overrides, path=file, check_env=check_env)
    except RecipeError as error:
        error.path = file
        raise


def make_recipe(
    values: dict[str, Any], overrides: Sequence[str] = (), *, path: Path | None = None, check_env: bool = True
) -> Recipe:
    """Check a recipe that is given as a mapping; arguments as in [`load_recipe`]."""
    from .checks import check_recipe
    from .environment import check_environment
    from .schema import check_values

    values = dict(values)
    for key, value in parse_overrides(overrides):
        apply_override(values, key, value)
    values = resolve_interpolations(values)
    method = find_method(values.pop("method", None))
    recipe = Recipe(path=path, method=method.stem, values=check_values(values, method), spec=method)
    check_recipe(recipe)
    if check_env:
        check_environment(recipe)
    return recipe


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML file whose top level is a mapping; a key that is written twice is an error."""
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RecipeError(None, f"not valid YAML: {error}", path=path) from error
    except RecursionError as error:
        raise RecipeError(None, "an anchor refers to itself", path=path) from error
    if not isinstance(values, dict):
        found = {list: "a list", type(None): "nothing"}.get(type(values), repr(values))
        raise RecipeError(None, f"a recipe is a mapping of `key: value` lines, found {found}", path=path)
    return values


def resolve_interpolations(values: dict[str, Any]) -> dict[str, Any]:
    """Replace `${other_key}` and `${oc.env:NAME}` by their values."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        resolved: Any = OmegaConf.to_container(OmegaConf.create(values), resolve=True)
    except OmegaConfBaseException as error:
        key = error.full_key if isinstance(error.full_key, str) else None
        raise RecipeError(key, f"cannot be resolved: {str(error).splitlines()[0]}") from error
    return resolved


def dump_yaml(values: dict[str, Any]) -> str:
    """YAML in the given order, short lists on one line, numbers in a form that YAML reads back as numbers."""
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None)


class _StrictLoader(yaml.SafeLoader):
    """`yaml.SafeLoader` that refuses a key written twice, of which YAML would keep the last silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise RecipeError(None, f"a key in line {key_node.start_mark.line + 1} is not a name")
            if key in seen:
                raise RecipeError(str(key), f"written twice, the second time in line {key_node.start_mark.line + 1}")
            seen.add(key)
        return super().construct_mapping(node, deep)
