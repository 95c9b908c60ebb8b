"""`trl-reasoning train`: one run from one recipe."""

import argparse
import sys

from ..errors import UserError


EXAMPLE = """examples:
  trl-reasoning train recipes/smoke/dr_grpo_tiny.yaml --learning_rate 2e-6
  trl-reasoning train recipes/smoke/dr_grpo_tiny.yaml --dry_run
  trl-reasoning train recipes/smoke/dr_grpo_tiny.yaml --accelerate cpu_2
  accelerate launch -m trl_reasoning train recipes/smoke/dr_grpo_tiny.yaml

Every key of a recipe can be overridden as --key value (nested keys as --a.b value)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's own arguments; all others are overrides of the recipe."""
    parser.add_argument("recipe", help="a recipe file, or the name of a shipped recipe")
    parser.add_argument(
        "--dry_run", action="store_true", help="run all checks, print the resolved recipe, train nothing"
    )
    parser.add_argument("--restart", action="store_true", help="delete the run in output_dir and start again")
    parser.add_argument(
        "--accelerate",
        metavar="NAME",
        help="start accelerate with this file (a path, or cpu, cpu_2, single_gpu, ddp, fsdp2, deepspeed_zero2, "
        "deepspeed_zero3)",
    )
    parser.add_argument("--num_processes", type=int, metavar="N", help="with --accelerate: number of processes")


def run(args: argparse.Namespace, extra: list[str]) -> int:
    """Check the recipe, then train."""
    if args.accelerate is not None:
        return _launch(args, extra)
    if args.num_processes is not None:
        raise UserError("num_processes: needs --accelerate NAME, for instance --accelerate cpu_2")
    from ..config import dry_run_text, load_recipe, prepare

    prepared = prepare(load_recipe(args.recipe, extra))
    if args.dry_run:
        print(dry_run_text(prepared))
        return 0
    from accelerate import PartialState

    from ..train import run_training

    exit_code = run_training(prepared, restart=args.restart).exit_code
    # Its threads may otherwise be at work while the interpreter ends, which aborts one of several processes.
    PartialState().destroy_process_group()
    return exit_code


def _launch(args: argparse.Namespace, extra: list[str]) -> int:
    """Run the same command in accelerate's processes; signals reach them, and their last save is waited for."""
    from ..config import accelerate_command, load_recipe
    from ..stages import run_attached

    # Contradictions between recipe and accelerate file stop here, before any process starts.
    recipe = load_recipe(args.recipe, extra, check_env=False)
    command = accelerate_command(args.accelerate, num_processes=args.num_processes, recipe=recipe)
    command += ["-m", "trl_reasoning", "train", args.recipe, *extra]
    command += ["--dry_run"] * args.dry_run + ["--restart"] * args.restart
    outcome = run_attached(command, announce=lambda text: print(text, file=sys.stderr))
    if outcome.returncode != 0 and outcome.signal is None:
        print(f"accelerate ended with code {outcome.returncode}", file=sys.stderr)
    return outcome.exit_code
