"""One training run from a prepared recipe: resume, train, save, and say what happened."""

import json
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .run_folder import TrainResult, check_same_recipe, delete_run, last_checkpoint, read_run, write_records


if TYPE_CHECKING:
    from .config import Prepared


def run_training(prepared: "Prepared", *, restart: bool = False) -> TrainResult:
    """
    Train, from the last checkpoint in the output folder where there is one.

    Writes `resolved.yaml`, `environment.json`, `train_log.jsonl`, `run.json`, checkpoints and the trained model (or
    the adapter alone) to `output_dir`; a method that samples also `reward_samples.jsonl`, five completions with their
    rewards every 10 steps. A finished run is not repeated.

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

    from .evaluation import peak_memory_mb

    args = prepared.args
    output = Path(args.output_dir)
    state = PartialState()
    with state.main_process_first():
        if state.is_main_process:
            if restart:
                delete_run(output)
            check_same_recipe(output, prepared)
    earlier = read_run(output)
    checkpoint = args.resume_from_checkpoint or last_checkpoint(output)
    if earlier is not None and earlier.status == "finished" and not _wants_more(prepared, earlier):
        _say(state, f"{output} is finished ({earlier.steps} steps); --restart trains again")
        return earlier
    if state.is_main_process:
        write_records(output, prepared)
    state.wait_for_everyone()

    _quieten(args.disable_tqdm or not sys.stderr.isatty())
    set_seed(args.seed)
    trainer, interrupt = _build_trainer(
        prepared, output, seconds_before=earlier.seconds if earlier and checkpoint else 0.0
    )
    for note in prepared.notes:
        _say(state, f"note: {note}")
    if checkpoint:
        _say(state, f"resuming from {checkpoint}")
    start = time.monotonic()
    try:
        trainer.train(resume_from_checkpoint=checkpoint)
    finally:
        interrupt.restore()
    interrupt.agree()
    seconds = time.monotonic() - start + (earlier.seconds if earlier and checkpoint else 0.0)

    result = TrainResult(
        status="finished" if interrupt.signal_number is None else "interrupted",
        method=prepared.recipe.method,
        model=str(prepared.recipe.values["model_name_or_path"]),
        output=str(output),
        steps=trainer.state.global_step,
        seconds=round(seconds, 2),
        peak_memory_mb=round(peak_memory_mb(), 1),
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
    # The log file comes first: the held-out measurement logs at the start of training.
    callbacks: list[Any] = [LogFileCallback(output / "train_log.jsonl"), ProgressLineCallback(), interrupt]
    heldout = None
    if prepared.heldout is not None:
        from .callbacks import HeldoutCallback
        from .evaluation import LiveMeasure

        heldout = HeldoutCallback(
            LiveMeasure(prepared.heldout, prepared.tokenizer, prepared.heldout_settings),
            prepared.heldout_settings["every"],
        )
        callbacks.append(heldout)
    if args.max_seconds is not None:
        callbacks.append(TimeLimitCallback(args.max_seconds, seconds_before))

    kwargs: dict[str, Any] = {
        "args": args,
        "train_dataset": prepared.train_dataset,
        "processing_class": prepared.tokenizer,
        "callbacks": callbacks,
        **_model_arguments(prepared),
    }
    if prepared.eval_dataset is not None:
        kwargs["eval_dataset"] = prepared.eval_dataset
    if prepared.recipe.spec.kind == "policy":
        kwargs["reward_funcs"] = prepared.reward_funcs
    if prepared.step_reward is not None:
        kwargs["step_reward"] = prepared.step_reward
    if prepared.ptx_dataset is not None:
        kwargs["ptx_dataset"] = prepared.ptx_dataset
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
    from .trainers._loading import load_with_adapter

    if prepared.quantization_config is not None:
        model_kwargs["quantization_config"] = prepared.quantization_config
    # The arguments are kept for a reference model, but this model is an instance already.
    prepared.args.model_init_kwargs = None
    architecture = prepared.recipe.spec.architecture
    return {"model": load_with_adapter(path, adapter, prepared.args, architecture, **model_kwargs)}


def _wants_more(prepared: "Prepared", earlier: TrainResult) -> bool:
    """Whether the recipe now asks for more steps than a finished run has done, and leaves time for them."""
    limit = prepared.args.max_seconds
    return prepared.args.max_steps > earlier.steps and (limit is None or limit > earlier.seconds)


def _say(state: Any, text: str) -> None:
    if state.is_main_process:
        print(text, flush=True)
