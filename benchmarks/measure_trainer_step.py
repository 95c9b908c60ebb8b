"""Measure a training step of our Dr. GRPO trainer against TRL's GRPOTrainer with the same settings, in one process."""

import statistics
import tempfile
import time
from typing import Any

import torch
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from trl_reasoning import DrGRPOConfig, DrGRPOTrainer
from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.rewards import REWARDS


# What makes TRL's trainer the same method; our config sets these itself.
DR_GRPO_IN_TRL = {"loss_type": "dr_grpo", "scale_rewards": "none", "beta": 0.0}


class StepTimer(TrainerCallback):
    """Wall time of every optimizer step, generation and rewards included, in seconds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._start = 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock."""
        self._start = _now()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop the clock."""
        self.seconds.append(_now() - self._start)


def measure(name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Train with both trainers in turn and compare the times of their steps.

    Both start from the same weights with the same seed, so they sample the same completions; `same_rewards` says
    whether they did.

    Args:
        name (`str`):
            Name of the experiment.
        settings (`dict[str, Any]`):
            `repetitions`, `steps`, `prompts`, `num_generations`, `max_completion_length`, `operands`,
            `learning_rate`, `seeds`.

    Returns:
        `tuple[dict[str, Any], str]`: seconds of each step; the mean of each step's fastest time over the repetitions
        and the ratio of these, ours / TRL's; medians and their ratio; and a summary.
    """
    seconds: dict[str, list[list[float]]] = {"ours": [], "trl": []}
    rewards: dict[str, list[list[float]]] = {"ours": [], "trl": []}
    for repetition in range(settings["repetitions"]):
        order = ("ours", "trl") if repetition % 2 == 0 else ("trl", "ours")
        for side in order:
            steps, seen = _train(side, settings)
            seconds[side].append(steps[1:])
            rewards[side].append(seen)
    medians = {side: statistics.median(step for steps in runs for step in steps) for side, runs in seconds.items()}
    # The same step of each repetition does the same work, so its fastest time is the one least disturbed by others.
    fastest = {
        side: statistics.mean(min(times) for times in zip(*runs, strict=True)) for side, runs in seconds.items()
    }
    figures = {
        "fastest_seconds": fastest,
        "median_seconds": medians,
        "ratio": fastest["ours"] / fastest["trl"],
        "ratio_of_medians": medians["ours"] / medians["trl"],
        "same_rewards": rewards["ours"] == rewards["trl"],
        "step_seconds": seconds,
    }
    summary = (
        f"{fastest['ours']:.3f} s a step against {fastest['trl']:.3f} s with TRL, ratio {figures['ratio']:.2f} "
        f"({figures['ratio_of_medians']:.2f} by medians) over {settings['repetitions']} repetitions of "
        f"{settings['steps'] - 1} steps, {'the same' if figures['same_rewards'] else 'different'} rewards"
    )
    return figures, summary


def _train(side: str, settings: dict[str, Any]) -> tuple[list[float], list[float]]:
    """Seconds and mean reward of each step of one short training."""
    timer = StepTimer()
    with tempfile.TemporaryDirectory() as folder:
        common: dict[str, Any] = {
            "output_dir": folder,
            "max_steps": settings["steps"],
            "per_device_train_batch_size": settings["prompts"] * settings["num_generations"],
            "num_generations": settings["num_generations"],
            "max_completion_length": settings["max_completion_length"],
            "learning_rate": settings["learning_rate"],
            "lr_scheduler_type": "constant",
            "seed": settings["seeds"][0],
            "logging_steps": 1,
            "save_strategy": "no",
            "report_to": [],
            "disable_tqdm": True,
            "bf16": False,
            "activation_checkpointing": False,
            "dataloader_pin_memory": False,
            "use_cpu": not torch.cuda.is_available(),
        }
        arguments: dict[str, Any] = {
            "model": resolve_model("builtin:tiny"),
            "reward_funcs": [REWARDS["accuracy"]()],
            "train_dataset": make_chain_dataset(size=256, operands=tuple(settings["operands"])),
            "callbacks": [timer],
        }
        if side == "ours":
            trainer = DrGRPOTrainer(args=DrGRPOConfig(**common), **arguments)
        else:
            trainer = GRPOTrainer(args=GRPOConfig(**common, **DR_GRPO_IN_TRL), **arguments)
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return timer.seconds, [log["reward"] for log in trainer.state.log_history if "reward" in log]


def _now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()
