"""The recipes that ship with the package."""

from pathlib import Path

from .errors import RecipeError, did_you_mean


def recipe_folder() -> Path:
    """The folder of the shipped recipes: inside the wheel, or the repository's own in an editable install."""
    package = Path(__file__).parents[1]
    installed = package / "_recipes"
    return installed if installed.is_dir() else package.parent / "recipes"


def recipe_names() -> list[str]:
    """Names of all shipped files, for instance `smoke/grpo_tiny`."""
    folder = recipe_folder()
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


def find_recipe(name: str | Path) -> Path:
    """
    The file of that path, or the shipped recipe of that name (with or without its folder).

    Raises:
        RecipeError: There is neither; names the nearest shipped recipe.
    """
    path = Path(name)
    if path.is_file():
        return path
    wanted = path.as_posix().removesuffix(".yaml").removeprefix("recipes/")
    names = recipe_names()
    matches = [known for known in names if wanted in (known, known.split("/")[-1])]
    if len(matches) == 1:
        return recipe_folder() / f"{matches[0]}.yaml"
    if matches:
        raise RecipeError(None, f"{str(name)!r} is the name of several recipes: {', '.join(matches)}")
    hint = did_you_mean(wanted, names) or did_you_mean(wanted, [known.split("/")[-1] for known in names])
    raise RecipeError(
        None, f"no file and no shipped recipe {str(name)!r}.{hint} `trl-reasoning recipes list` lists them"
    )
