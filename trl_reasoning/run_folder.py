"""What a training run keeps in its output folder, and whether a run there can go on."""

import json
import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import UserError


if TYPE_CHECKING:
    from .config import Prepared

# Keys that may change between the parts of one run.
_FREE_KEYS = {
    "max_steps", "num_train_epochs", "max_seconds", "save_steps", "save_strategy", "save_total_limit", "logging_steps",
    "disable_tqdm", "report_to", "resume_from_checkpoint", "output_dir", "env", "heldout",
    "reward_watch",
}  # fmt: skip


@dataclass
class TrainResult:
    """
    What a run did; the content of `run.json`.

    Args:
        status (`str`):
            `finished` or `interrupted`.
        method (`str`), model (`str`), output (`str`):
            The method's stem, the start model, and the folder with the trained model.
        steps (`int`):
            Optimizer steps done, over all parts of the run.
        seconds (`float`):
            Training time over all parts of the run.
        peak_memory_mb (`float`):
            Peak memory of the device (of the process on a CPU) in MiB.
        signal (`int`, *optional*):
            The signal that interrupted the run.
    """

    status: str
    method: str
    model: str
    output: str
    steps: int
    seconds: float
    peak_memory_mb: float
    signal: int | None = None

    @property
    def exit_code(self) -> int:
        """0, or 128 plus the signal's number as shells expect it."""
        return 0 if self.signal is None else 128 + self.signal


def last_checkpoint(output: Path) -> str | None:
    """The newest complete checkpoint: the trainer's state is written last."""
    folders = [folder for folder in output.glob("checkpoint-*") if folder.name.split("-")[1].isdigit()]
    for folder in sorted(folders, key=lambda folder: int(folder.name.split("-")[1]), reverse=True):
        if (folder / "trainer_state.json").exists():
            return str(folder)
        print(f"note: {folder} is incomplete and is left out", file=sys.stderr)
    return None


def check_same_recipe(output: Path, prepared: "Prepared") -> None:
    """Refuse to go on with a run that was started from a recipe with other settings."""
    import yaml

    environment = output / "environment.json"
    if environment.exists() and last_checkpoint(output) is not None:
        before = json.loads(environment.read_text())["processes"]
        if before != _processes():
            raise UserError(
                f"output_dir: the run in {output} has {before} process(es), this one {_processes()}; a run resumes "
                "with the number of processes that it was started with, or --restart deletes it"
            )
    path = output / "resolved.yaml"
    if not path.exists() or (last_checkpoint(output) is None and not (output / "run.json").exists()):
        return
    before = yaml.safe_load(path.read_text())
    now = yaml.safe_load(prepared.recipe.to_yaml())
    differing = sorted(key for key in {*before, *now} - _FREE_KEYS if before.get(key) != now.get(key))
    if differing:
        shown = "; ".join(f"{key}: {before.get(key)!r} there, {now.get(key)!r} here" for key in differing[:5])
        raise UserError(
            f"output_dir: {output} holds a run of another recipe ({shown}). Use another output_dir, or --restart to "
            "delete that run"
        )


def delete_run(output: Path) -> None:
    """Delete what a run wrote, and nothing else."""
    for folder in output.glob("checkpoint-*"):
        shutil.rmtree(folder)
    for name in ("run.json", "train_log.jsonl", "reward_samples.jsonl", "resolved.yaml", "environment.json"):
        (output / name).unlink(missing_ok=True)


def read_run(output: Path) -> TrainResult | None:
    """The `run.json` of an earlier part of the run, or `None`."""
    path = output / "run.json"
    return TrainResult(**json.loads(path.read_text())) if path.exists() else None


def write_records(output: Path, prepared: "Prepared") -> None:
    """Write `resolved.yaml` and `environment.json`."""
    from importlib.metadata import PackageNotFoundError, version

    import torch

    output.mkdir(parents=True, exist_ok=True)
    (output / "resolved.yaml").write_text(prepared.recipe.to_yaml())

    versions = {}
    for package in (
        "trl-reasoning",
        "torch",
        "transformers",
        "trl",
        "peft",
        "accelerate",
        "datasets",
        "bitsandbytes",
        "vllm",
    ):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    precision = prepared.precision
    environment = {
        "dtype": precision.dtype,
        "bf16": precision.bf16,
        "fp16": precision.fp16,
        "dtype_reason": precision.reason,
        "device": torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu",
        "processes": _processes(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": versions,
        "command": sys.argv,
    }
    (output / "environment.json").write_text(json.dumps(environment, indent=2) + "\n")


def _processes() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))
