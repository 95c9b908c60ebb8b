"""Measure the update phase, forward and backward passes of one optimizer step, against TRL's on the same rollouts."""

import copy
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from trl import GRPOConfig, GRPOTrainer

from trl_reasoning import ReasoningGRPOConfig, ReasoningGRPOTrainer
from trl_reasoning.builtin import make_chain_dataset, resolve_model


def measure(name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Pass the same rollouts through both trainers in turn.

    Args:
        name (`str`):
            Name of the experiment.
        settings (`dict[str, Any]`):
            `model`, `repetitions`, `rows`, `num_generations`, `micro_batch`, `prompt_tokens`,
            `max_completion_tokens`, `median_tokens`, `sigma`, `seeds`, and `cases`: each with `spread` (lengths
            differ) and `zero_groups` (share of groups without a spread of rewards).

    Returns:
        `tuple[dict[str, Any], str]`: for each case the ratio of times (TRL's / ours, median, least and greatest),
        tokens passed, the relative difference of the gradients and both peaks of memory; and a summary.
    """
    with tempfile.TemporaryDirectory() as folder:
        sides = {side: make_trainer(side, settings, folder) for side in ("trl", "ours")}
        figures = {
            case: _compare(sides, make_rollouts(settings, case), settings["repetitions"]) for case in settings["cases"]
        }
    del sides
    for case, found in figures.items():
        found["peak_mb"] = {side: _peak_memory(name, side, case) for side in ("trl", "ours")}
    summary = "; ".join(
        f"({case}) {found['speedup']:.2f}x [{found['least']:.2f}, {found['greatest']:.2f}], tokens "
        f"{found['tokens']['ours']} of {found['tokens']['trl']}, gradient {found['gradient_difference']:.0e}, memory "
        f"{found['peak_mb']['ours']:.0f} of {found['peak_mb']['trl']:.0f} MB"
        for case, found in figures.items()
    )
    return figures, summary


def make_trainer(side: str, settings: dict[str, Any], folder: str) -> Any:
    """TRL's trainer or ours, on the same weights in float32."""
    accumulation = settings["rows"] // settings["micro_batch"]
    common: dict[str, Any] = {
        "output_dir": folder,
        "per_device_train_batch_size": settings["micro_batch"],
        "gradient_accumulation_steps": accumulation,
        "num_generations": settings["num_generations"],
        "max_completion_length": settings["max_completion_tokens"],
        "loss_type": "dr_grpo",
        "scale_rewards": "none",
        "beta": 0.0,
        "report_to": [],
        "disable_tqdm": True,
        "bf16": False,
        "activation_checkpointing": False,
        "model_init_kwargs": {"dtype": "float32"},
        "use_cpu": not torch.cuda.is_available(),
    }
    trainer_class, config = (
        (GRPOTrainer, GRPOConfig(**common)) if side == "trl" else (ReasoningGRPOTrainer, ReasoningGRPOConfig(**common))
    )
    trainer: Any = trainer_class(
        model=_model_path(settings["model"]),
        args=config,
        reward_funcs=[lambda completions, **kwargs: [0.0] * len(completions)],
        train_dataset=make_chain_dataset(size=64, operands=2),
    )
    trainer.model.train()
    trainer.create_optimizer()
    trainer.current_gradient_accumulation_steps = accumulation
    return trainer


def make_rollouts(settings: dict[str, Any], case: str) -> dict[str, Any]:
    """A generation batch of random tokens with the case's lengths and advantages, padded as TRL pads it."""
    chosen = settings["cases"][case]
    draw = torch.Generator().manual_seed(settings["seeds"][0])
    rows, prompt, longest = settings["rows"], settings["prompt_tokens"], settings["max_completion_tokens"]
    lengths = torch.full((rows,), longest)
    if chosen["spread"]:
        noise = torch.randn(rows, generator=draw) * settings["sigma"]
        lengths = (settings["median_tokens"] * noise.exp()).round().long().clamp(4, longest)
    mask = (torch.arange(int(lengths.max())) < lengths.unsqueeze(1)).long()  # (N, T)
    advantages = torch.randn(rows, generator=draw).view(-1, settings["num_generations"])
    groups = len(advantages)
    advantages[: int(groups * chosen["zero_groups"])] = 0.0
    order = torch.randperm(rows, generator=draw)
    return {
        "prompt_ids": torch.randint(5, 60, (rows, prompt), generator=draw),
        "prompt_mask": torch.ones(rows, prompt, dtype=torch.long),
        "completion_ids": torch.randint(5, 60, mask.shape, generator=draw),
        "completion_mask": mask,
        "advantages": advantages.flatten()[order],
        "num_items_in_batch": mask.sum(),
    }


def update(trainer: Any, rollouts: dict[str, Any]) -> tuple[float, int]:
    """One accumulation window, as the training loop runs it: its seconds and the tokens that were passed."""
    tokens = 0
    forward = type(trainer)._get_per_token_logps_and_entropies

    def count(model: Any, input_ids: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        nonlocal tokens
        tokens += input_ids.numel()
        return forward(trainer, model, input_ids, *args, **kwargs)

    trainer._get_per_token_logps_and_entropies = count
    trainer._generate_and_score_completions = lambda inputs: dict(rollouts)
    trainer._step = 0
    trainer._buffered_inputs = None
    trainer.model.zero_grad()
    windows = trainer.current_gradient_accumulation_steps
    torch.manual_seed(0)  # TRL shuffles the generation batch
    start = _now()
    for number in range(windows):
        trainer.accelerator.gradient_state._set_sync_gradients(number == windows - 1)
        trainer.training_step(trainer.model, [{}], None)
    return _now() - start, tokens


def _compare(sides: dict[str, Any], rollouts: dict[str, Any], repetitions: int) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    gradients, tokens = {}, {}
    for repetition in range(repetitions + 1):  # the first warms up
        order = list(sides) if repetition % 2 else list(reversed(sides))
        for side in order:
            taken, tokens[side] = update(sides[side], copy.copy(rollouts))
            if repetition:
                seconds[side].append(taken)
            gradients[side] = torch.cat([weight.grad.flatten() for weight in sides[side].model.parameters()])
    ratios = [theirs / ours for theirs, ours in zip(seconds["trl"], seconds["ours"], strict=True)]
    difference = (gradients["ours"] - gradients["trl"]).norm() / gradients["trl"].norm()
    return {
        "speedup": statistics.median(ratios),
        "least": min(ratios),
        "greatest": max(ratios),
        "seconds": {side: statistics.median(taken) for side, taken in seconds.items()},
        "tokens": tokens,
        "gradient_difference": difference.item(),
    }


def _peak_memory(name: str, side: str, case: str) -> float:
    """MB above what the process held before its first update, in a process of its own."""
    command = [sys.executable, str(Path(__file__)), name, side, case]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent)
    return json.loads(done.stdout.splitlines()[-1])


def _report_memory(name: str, side: str, case: str) -> None:
    from run import load_settings

    settings = load_settings(name)
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(side, settings, folder)
        rollouts = make_rollouts(settings, case)
        before = _held()
        _forget_peak()
        update(trainer, rollouts)
        print((_peak() - before) / 2**20)


def _held() -> int:
    return torch.cuda.memory_allocated() if torch.cuda.is_available() else _status("VmRSS")


def _forget_peak() -> None:
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    else:
        # Linux: the highest resident size is counted anew; loading the model would hide the update's own.
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    return torch.cuda.max_memory_allocated() if torch.cuda.is_available() else _status("VmHWM")


def _status(key: str) -> int:
    """Bytes of an entry of this process's status, which the kernel gives in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))


def _model_path(name: str) -> str:
    # `env:NAME` names a local folder by an environment variable.
    return os.environ[name.removeprefix("env:")] if name.startswith("env:") else resolve_model(name)


def _now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    _report_memory(*sys.argv[1:])
