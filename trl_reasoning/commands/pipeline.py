"""`trl-reasoning pipeline`: several stages and one report."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from ..errors import UserError
from ..pipeline import load_pipeline, run_pipeline
from ..stages import StageCheck, default_accelerate, stage_overrides


EXAMPLE = """examples:
  trl-reasoning pipeline recipes/quickstart/pipeline.yaml --output_dir outputs/quickstart
  trl-reasoning pipeline recipes/quickstart/pipeline.yaml --dry_run
  trl-reasoning pipeline recipes/quickstart/pipeline.yaml --only rl --stages.rl.learning_rate 2e-5 --seed 1

A second run skips what is done and continues what was interrupted. --stages.NAME.KEY VALUE overrides a setting of a
stage, --variables.NAME VALUE a variable of the pipeline."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments; all others override settings of stages."""
    parser.add_argument("recipe", help="a pipeline file, or the name of a shipped one")
    parser.add_argument("--output_dir", help="folder for the stages and the report; the pipeline's own by default")
    parser.add_argument("--only", metavar="NAME", help="run this stage alone")
    parser.add_argument("--from", dest="start", metavar="NAME", help="run this stage and the ones after it")
    parser.add_argument("--restart", action="store_true", help="run the chosen stages again, delete what they made")
    parser.add_argument("--seed", type=int, help="seed of every stage")
    parser.add_argument("--dry_run", action="store_true", help="check every stage and print the plan, run nothing")


def run(args: argparse.Namespace, extra: list[str]) -> int:
    """Check the pipeline, run its stages, write the report."""
    from rich.console import Console
    from rich.text import Text

    if args.only and args.start:
        raise UserError("--only and --from exclude each other")
    pipeline = load_pipeline(args.recipe, extra, seed=args.seed)
    console = Console(file=sys.stdout, highlight=False)
    # One line that changes at a terminal, nothing but the stages' begin and end in a file.
    status = console.status("") if console.is_terminal else None
    with status or nullcontext():
        return run_pipeline(
            pipeline,
            args.output_dir or pipeline.output_dir,
            only=args.only,
            start=args.start,
            restart=args.restart,
            dry_run=args.dry_run,
            check=check_stages,
            say=lambda line: console.print(line, markup=False, soft_wrap=True),
            # Text, since a log may hold what rich would take for markup.
            on_progress=lambda line: status.update(Text(line[: console.width - 4])) if status else None,
        )


def check_stages(checks: Sequence[StageCheck]) -> None:
    """
    Check the recipes of stages as their commands will.

    Args:
        checks (`Sequence[StageCheck]`):
            The stages.

    Raises:
        [`~trl_reasoning.errors.UserError`]: for the first stage that cannot run.
    """
    for check in checks:
        overrides = stage_overrides(check.stage, check.settings, check.folder)
        try:
            if check.stage.kind == "train":
                _check_training(check, overrides)
            elif check.stage.kind in ("evaluate", "sample"):
                _check_sampling(check, overrides)
            elif check.stage.kind == "export":
                _check_export(check, overrides)
        except UserError as error:
            raise UserError(f"stage {check.stage.name}: {error}") from error


def _check_training(check: StageCheck, overrides: list[str]) -> None:
    from ..config import accelerate_command, load_recipe, prepare

    stage = check.stage
    assert stage.recipe is not None
    recipe = load_recipe(stage.recipe, overrides, check_env=False)
    # Building the command compares the recipe with the accelerate file: precision, and batch with its processes.
    accelerate_command(stage.accelerate or default_accelerate(), num_processes=stage.num_processes, recipe=recipe)
    if check.is_ready:
        prepare(recipe)


def _check_sampling(check: StageCheck, overrides: list[str]) -> None:
    from ._measures import EvaluateSettings, load_measured_pairs
    from ._sampling import load_problems, make_sampling_settings

    settings = make_sampling_settings(check.stage.recipe, overrides, check.stage.kind)
    base_dir = check.stage.recipe.parent if check.stage.recipe else None
    if not check.is_ready:
        return
    if settings.task is not None:
        load_problems(settings, base_dir)
    if isinstance(settings, EvaluateSettings):
        load_measured_pairs(settings, base_dir)


def _check_export(check: StageCheck, overrides: list[str]) -> None:
    from .export import make_settings

    make_settings(check.stage.recipe, overrides)
