"""`trl-reasoning recipes`: the shipped recipes: list, show, copy, check."""

import argparse
import re
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..config.errors import RecipeError
from ..config.shipped import find_recipe, recipe_folder, recipe_names
from ..errors import UserError


EXAMPLE = """examples:
  trl-reasoning recipes list
  trl-reasoning recipes show smoke/grpo_tiny
  trl-reasoning recipes copy smoke/grpo_tiny my_run.yaml
  trl-reasoning recipes check                     # every shipped recipe
  trl-reasoning recipes check my_run.yaml recipes/rl"""
_KINDS = ("evaluate", "sample", "export")
_LABEL = re.compile(r"[A-Z]\w*:")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the four actions and their arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="names of the shipped recipes and what each does")
    show = actions.add_parser("show", help="print a recipe")
    show.add_argument("name", help="for instance smoke/grpo_tiny")
    copy = actions.add_parser("copy", help="copy a recipe to change it")
    copy.add_argument("name", help="for instance smoke/grpo_tiny")
    copy.add_argument("destination", nargs="?", default=".", help="a file or a folder (default: here)")
    check = actions.add_parser("check", help="run every check that needs no hub; exit code 1 on any failure")
    check.add_argument("paths", nargs="*", help="files or folders (default: all shipped recipes)")


def run(args: argparse.Namespace, extra: list[str]) -> int:
    """Run one action."""
    if extra:
        raise UserError(f"recipes {args.action}: unknown argument {extra[0]!r}")
    if args.action == "list":
        return _list()
    if args.action == "show":
        print(find_recipe(args.name).read_text(encoding="utf-8"), end="")
        return 0
    if args.action == "copy":
        return _copy(args.name, Path(args.destination))
    return check_paths(args.paths)


def check_paths(paths: Sequence[str]) -> int:
    """
    Check recipe files and print one line each.

    Training recipes, those of `evaluate`, `sample` and `export`, pipelines and accelerate files are told apart by
    their keys.

    Args:
        paths (`Sequence[str]`):
            Files, folders or names of shipped recipes; all shipped recipes when empty.

    Returns:
        `int`: 0 when all passed, 1 otherwise.
    """
    files = _files(paths)
    failed = 0
    for file in files:
        try:
            kind, unchecked = check_file(file)
        except UserError as error:
            failed += 1
            message = str(error).removeprefix(f"{file}: ")
            print(f"FAILED  {file}: {message}")
            continue
        note = f" (hub parts not checked: {', '.join(unchecked)})" if unchecked else ""
        print(f"ok      {file}: {kind}{note}")
    print(f"{len(files)} recipes checked, {failed} failed")
    return 1 if failed or not files else 0


def check_file(path: Path) -> tuple[str, list[str]]:
    """
    Check one file.

    Returns:
        `tuple[str, list[str]]`: what it is (`"train (grpo)"`, `"pipeline"`, ...), and what lies on the hub.

    Raises:
        RecipeError: The first thing that is wrong with it.
    """
    from ..config.recipe import read_mapping

    values = read_mapping(path)
    if "distributed_type" in values:
        from ..config.environment import check_accelerate_file

        check_accelerate_file(path)
        return "accelerate", []
    if "stages" in values:
        return _check_pipeline(path), []
    if "kind" in values:
        return _check_command(path, values["kind"]), []
    from ..config.offline import check_offline
    from ..config.recipe import load_recipe

    recipe = load_recipe(path, check_env=False)
    try:
        return f"train ({recipe.method})", check_offline(recipe)
    except RecipeError as error:
        error.path = path
        raise


def _check_pipeline(path: Path) -> str:
    """The pipeline itself, and the recipe of each stage with the pipeline's settings over it."""
    from ..config.recipe import load_recipe
    from ..stages import load_pipeline, stage_overrides

    pipeline = load_pipeline(path)
    root = Path(pipeline.output_dir)
    for stage in pipeline.stages:
        overrides = stage_overrides(stage, pipeline.resolve(stage, root), root / "stages" / stage.name)
        try:
            if stage.kind == "train" and stage.recipe is not None:
                load_recipe(stage.recipe, overrides, check_env=False)
            elif stage.kind in _KINDS:
                _check_settings(stage.recipe, overrides, stage.kind)
        except RecipeError as error:
            raise RecipeError(f"stages.{stage.name}", str(error), path=path) from error
    return f"pipeline of {len(pipeline.stages)} stages"


def _check_command(path: Path, kind: Any) -> str:
    if kind not in _KINDS:
        raise RecipeError(
            "kind", f"{kind!r} is not one of: {', '.join(_KINDS)}; a training recipe has `method`", path=path
        )
    _check_settings(path, [], kind)
    return str(kind)


def _check_settings(recipe: Path | None, overrides: Sequence[str], kind: str) -> None:
    from ._sampling import make_sampling_settings
    from .export import make_settings

    if kind == "export":
        make_settings(recipe, overrides)
    else:
        make_sampling_settings(recipe, overrides, kind)


def _files(paths: Sequence[str]) -> list[Path]:
    folders = [Path(path) for path in paths] if paths else [recipe_folder()]
    files = []
    for path in folders:
        files += sorted(path.rglob("*.yaml")) if path.is_dir() else [find_recipe(path)]
    return files


def _list() -> int:
    rows = [(name, _summary(recipe_folder() / f"{name}.yaml")) for name in recipe_names()]
    width = max((len(name) for name, _ in rows), default=0)
    for name, summary in rows:
        print(f"{name:<{width}}  {textwrap.shorten(summary, 110 - width, placeholder=' ...')}")
    return 0


def _summary(path: Path) -> str:
    """What the header says first, up to its next label (`What:`, `Paper:`)."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.removeprefix("#").strip()
        if not line.startswith("#") or (lines and _LABEL.match(text)):
            break
        lines.append(text.removeprefix("What:").strip())
    return " ".join(lines)


def _copy(name: str, destination: Path) -> int:
    source = find_recipe(name)
    target = destination / source.name if destination.is_dir() else destination
    if target.exists():
        raise UserError(f"recipes copy: {target} exists already; name another file")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    print(f"copied {name} to {target}")
    return 0
