"""The command line of a stage."""

import json
import sys
from pathlib import Path
from typing import Any

from .definition import KINDS, Stage


def stage_command(
    stage: Stage, settings: dict[str, Any], folder: Path, *, accelerate: str, max_seconds: float | None = None
) -> list[str]:
    """
    The command line that runs a stage.

    Args:
        stage (`Stage`):
            The stage.
        settings (`dict[str, Any]`):
            Its settings with all references filled in.
        folder (`Path`):
            Its folder, the command's `--output_dir`.
        accelerate (`str`):
            Accelerate file of a training stage that names none.
        max_seconds (`float`, *optional*):
            Time limit of a training stage, in seconds.

    Returns:
        `list[str]`: program and arguments.
    """
    command = [sys.executable]
    if KINDS[stage.kind].is_launched:
        from ..config import accelerate_command

        name = stage.accelerate or accelerate
        command = accelerate_command(name, num_processes=stage.num_processes)
    command += ["-m", "trl_reasoning", stage.kind]
    command += [str(stage.recipe)] if stage.recipe else []
    return command + stage_overrides(stage, settings, folder, max_seconds=max_seconds)


def stage_overrides(
    stage: Stage, settings: dict[str, Any], folder: Path, *, max_seconds: float | None = None
) -> list[str]:
    """
    The words of the command line that override the stage's recipe; arguments as for [`stage_command`].

    Returns:
        `list[str]`: `--key=value` words, the output folder among them.
    """
    extra: dict[str, Any] = {"output_dir": str(folder)}
    if stage.kind == "train":
        # A log of lines, whose last one the pipeline shows, instead of a progress bar.
        extra["disable_tqdm"] = True
        if max_seconds is not None:
            extra["max_seconds"] = max_seconds
    # `--key=value` in one word: a value may begin with a dash.
    return [
        f"--{key}={value if isinstance(value, str) else json.dumps(value)}"
        for key, value in {**extra, **settings}.items()
    ]


def default_accelerate() -> str:
    """Name of the accelerate file for this machine: `single_gpu` where torch finds a GPU, else `cpu`."""
    import torch

    return "single_gpu" if torch.cuda.is_available() else "cpu"
