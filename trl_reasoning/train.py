"""One training run from a prepared recipe: resume, train, save, and say what happened."""

import json
import os
import platform
import shutil
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import UserError


if TYPE_CHECKING:
    from .config import Prepared

# Keys that may change between the parts of one run.
_FREE_KEYS = {
    "max_steps", "num_train_epochs", "max_seconds", "save_steps", "save_strategy", "save_total_limit", "logging_steps",
    "disable_tqdm", "report_to", "resume_from_checkpoint", "restart", "output_dir", "env", "heldout",
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


def run_training(prepared: "Prepared", *, restart: bool = False) -> TrainResult:
    """
    Train, from the last checkpoint in the output folder where there is one.

    Writes `resolved.yaml`, `environment.json`, `train_log.jsonl`, `run.json`, checkpoints and the trained model (or the
    adapter alone) to `output_dir`. A finished run is not repeated.

    Args:
        prepared ([`~trl_reasoning.config.Prepared`]):
            The checked recipe.
        restart (`bool`, *optional*, defaults to `False`):
            Delete the run in the output folder and start again.

    Returns:
        [`TrainResult`]

    Raises:
        [`~trl_reasoning.errors.UserError`]: when the output folder holds a run of another recipe.
    """
    from accelerate import PartialState
    from transformers import set_seed

    args = prepared.args
    output = Path(args.output_dir)
    state = PartialState()
    with state.main_process_first():
        if state.is_main_process:
            if restart:
                _delete_run(output)
            _check_same_recipe(output, prepared)
    earlier = _read_run(output)
    checkpoint = args.resume_from_checkpoint or _last_checkpoint(output)
    if earlier is not None and earlier.status == "finished" and not _wants_more(prepared, earlier):
        _say(state, f"{output} is finished ({earlier.steps} steps); --restart trains again")
        return earlier
    if state.is_main_process:
        _write_records(output, prepared)
    state.wait_for_everyone()

    _quieten(args.disable_tqdm or not sys.stderr.isatty())
    set_seed(args.seed)
    trainer, interrupt = _build_trainer(prepared, output, seconds_before=earlier.seconds if earlier else 0.0)
    if checkpoint:
        _say(state, f"resuming from {checkpoint}")
    start = time.monotonic()
    try:
        trainer.train(resume_from_checkpoint=checkpoint)
    finally:
        interrupt.restore()
    seconds = time.monotonic() - start + (earlier.seconds if earlier and checkpoint else 0.0)

    result = TrainResult(
        status="finished" if interrupt.signal_number is None else "interrupted",
        method=prepared.recipe.method,
        model=str(prepared.recipe.values["model_name_or_path"]),
        output=str(output),
        steps=trainer.state.global_step,
        seconds=round(seconds, 2),
        peak_memory_mb=round(_peak_memory_mb(), 1),
        signal=interrupt.signal_number,
    )
    if result.status == "finished":
        trainer.accelerator.unwrap_model(trainer.model).config.use_cache = True  # the trainer switched it off
        trainer.save_model(str(output))
        if trainer.is_world_process_zero():
            trainer.create_model_card(model_name=output.name)
    if state.is_main_process:
        (output / "run.json").write_text(json.dumps(asdict(result), indent=2) + "\n")
    if result.signal is not None:
        name = signal.Signals(result.signal).name
        _say(state, f"stopped by {name} after step {result.steps}; the same command goes on from there")
    else:
        _say(state, f"saved to {output} after {result.steps} steps, {result.seconds:.0f} s")
    state.wait_for_everyone()
    return result


def _quieten(no_bars: bool) -> None:
    """Leave out bars where they would flood a log, and warnings that a user can do nothing about."""
    import warnings

    import datasets
    import transformers

    # TRL 1.16 reads the name that transformers 5.24 renamed.
    warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
    if no_bars:
        transformers.utils.logging.disable_progress_bar()
        datasets.disable_progress_bars()


def _build_trainer(prepared: "Prepared", output: Path, seconds_before: float) -> tuple[Any, Any]:
    from transformers import PrinterCallback, ProgressCallback

    from .callbacks import InterruptCallback, LogFileCallback, ProgressLineCallback, TimeLimitCallback

    args = prepared.args
    interrupt = InterruptCallback()
    callbacks: list[Any] = []
    heldout = None
    if prepared.heldout is not None:
        from .callbacks import HeldoutCallback
        from .evaluation import LiveMeasure

        heldout = HeldoutCallback(
            LiveMeasure(prepared.heldout, prepared.tokenizer, prepared.heldout_settings), prepared.heldout_settings["every"]
        )
        callbacks.append(heldout)
    callbacks += [LogFileCallback(output / "train_log.jsonl"), ProgressLineCallback(), interrupt]
    if args.max_seconds is not None:
        callbacks.append(TimeLimitCallback(args.max_seconds, seconds_before))

    kwargs: dict[str, Any] = {
        "args": args,
        "train_dataset": prepared.train_dataset,
        "processing_class": prepared.tokenizer,
        "callbacks": callbacks,
        **_model_arguments(prepared),
    }
    if prepared.recipe.spec.kind == "policy":
        kwargs["reward_funcs"] = prepared.reward_funcs
    trainer = prepared.recipe.spec.trainer_class()(**kwargs)
    for replaced in (ProgressCallback, PrinterCallback):
        trainer.remove_callback(replaced)
    if heldout is not None:
        heldout.trainer = trainer
        heldout.measure.trainer = trainer
    return trainer, interrupt


def _model_arguments(prepared: "Prepared") -> dict[str, Any]:
    """The trainer's `model`, `peft_config` and `quantization_config`; a saved adapter is loaded to go on training."""
    from .builtin import resolve_model

    model_config = prepared.model_config
    path = resolve_model(str(model_config.model_name_or_path))
    model_kwargs = {
        "revision": model_config.model_revision,
        "attn_implementation": model_config.attn_implementation,
        "dtype": model_config.dtype,
        **(prepared.args.model_init_kwargs or {}),
    }
    adapter = prepared.recipe.values.get("adapter_name_or_path")
    if adapter is None:
        prepared.args.model_init_kwargs = model_kwargs
        return {
            "model": path,
            "peft_config": prepared.peft_config,
            "quantization_config": prepared.quantization_config,
        }
    from peft import PeftModel
    from trl.trainer.utils import create_model_from_path

    if prepared.quantization_config is not None:
        model_kwargs["quantization_config"] = prepared.quantization_config
    base = create_model_from_path(path, **model_kwargs)
    # The arguments are kept for a reference model, but this model is an instance already.
    prepared.args.model_init_kwargs = None
    return {"model": PeftModel.from_pretrained(base, adapter, is_trainable=True)}


def _last_checkpoint(output: Path) -> str | None:
    """The newest complete checkpoint: the trainer's state is written last."""
    folders = [folder for folder in output.glob("checkpoint-*") if folder.name.split("-")[1].isdigit()]
    for folder in sorted(folders, key=lambda folder: int(folder.name.split("-")[1]), reverse=True):
        if (folder / "trainer_state.json").exists():
            return str(folder)
        print(f"note: {folder} is incomplete and is left out", file=sys.stderr)
    return None


def _check_same_recipe(output: Path, prepared: "Prepared") -> None:
    import yaml

    path = output / "resolved.yaml"
    if not path.exists() or (_last_checkpoint(output) is None and not (output / "run.json").exists()):
        return
    before = yaml.safe_load(path.read_text())
    now = yaml.safe_load(prepared.recipe.to_yaml())
    differing = sorted(
        key for key in {*before, *now} - _FREE_KEYS if before.get(key) != now.get(key)
    )
    if differing:
        shown = "; ".join(f"{key}: {before.get(key)!r} there, {now.get(key)!r} here" for key in differing[:5])
        raise UserError(
            f"output_dir: {output} holds a run of another recipe ({shown}). Use another output_dir, or --restart to "
            "delete that run"
        )


def _wants_more(prepared: "Prepared", earlier: TrainResult) -> bool:
    return prepared.args.max_steps > earlier.steps


def _delete_run(output: Path) -> None:
    """Delete what a run wrote, and nothing else."""
    for folder in output.glob("checkpoint-*"):
        shutil.rmtree(folder)
    for name in ("run.json", "train_log.jsonl", "resolved.yaml", "environment.json"):
        (output / name).unlink(missing_ok=True)


def _read_run(output: Path) -> TrainResult | None:
    path = output / "run.json"
    return TrainResult(**json.loads(path.read_text())) if path.exists() else None


def _write_records(output: Path, prepared: "Prepared") -> None:
    import torch

    output.mkdir(parents=True, exist_ok=True)
    (output / "resolved.yaml").write_text(prepared.recipe.to_yaml())
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for package in ("trl-reasoning", "torch", "transformers", "trl", "peft", "accelerate", "datasets", "bitsandbytes", "vllm"):
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
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": versions,
        "command": sys.argv,
    }
    (output / "environment.json").write_text(json.dumps(environment, indent=2) + "\n")


def _peak_memory_mb() -> float:
    import torch

    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def _say(state: Any, text: str) -> None:
    if state.is_main_process:
        print(text, flush=True)
