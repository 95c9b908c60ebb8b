"""The command line: one module of `commands` per command, imported when it is called."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from . import __version__


COMMANDS = {
    "train": "train a model from a recipe",
    "pipeline": "run several stages and write one report",
    "sample": "sample answers and write them with verdicts",
    "evaluate": "measure accuracy, length and format on a task",
    "export": "merge a LoRA adapter into its base",
    "recipes": "list, show, copy and check recipes",
}


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run one command.

    Args:
        argv (`Sequence[str]`, *optional*):
            Arguments without the program name; `sys.argv[1:]` by default.

    Returns:
        `int`: the exit code. Errors that a user can mend print one message without a traceback and give 2.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="trl-reasoning",
        description="Reasoning post-training on one GPU, on top of TRL.",
        epilog="Example: trl-reasoning train recipes/smoke/dr_grpo_tiny.yaml --learning_rate 2e-6",
    )
    parser.add_argument("--version", action="version", version=f"trl-reasoning {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    for name, summary in COMMANDS.items():
        command = subparsers.add_parser(
            name,
            help=summary,
            description=summary,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,  # `--num` may be the start of a recipe's key
        )
        if name == chosen:  # only the called command is imported
            module = importlib.import_module(f".commands.{name}", __package__)
            command.epilog = module.EXAMPLE
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    args, extra = parser.parse_known_args(arguments)
    return _guarded(args, extra)


def _guarded(args: argparse.Namespace, extra: list[str]) -> int:
    from .errors import UserError

    try:
        return args.run(args, extra)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
