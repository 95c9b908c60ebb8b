"""An alarm when the policy seems to trick the reward, and samples of what it writes."""

import json
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from ..rewards.watch import HackingSigns


ACTIONS = ("off", "warn", "stop")
SAMPLES_FILE = "reward_samples.jsonl"
SAMPLES = 5
# Optimizer steps between two samples: five long thoughts a step would fill a disk.
SAMPLES_EVERY = 10


class HackingCallback(TrainerCallback):
    """
    Warns once for each sign of reward hacking, or stops the run with a checkpoint, and writes sampled completions.

    See [`~trl_reasoning.rewards.watch.HackingSigns`] for the signs. They are read from the trainer's log, whose values
    are those of all processes and which a resumed run gets back, so that the alarm needs no state of its own, and
    `logging_strategy: "no"` switches it off. A run that was stopped and is resumed stops again at the next log that
    shows the sign.

    At the first training log and then every 10 steps the main process writes five completions of the last generation
    batch, drawn at random, to `reward_samples.jsonl` in the output folder, a line each: `step`, `prompt`,
    `completion`, `rewards` (as they counted), `advantage`, and what the rewards noted (`verdict`, `extracted`).

    Args:
        action (`"warn"` or `"stop"`):
            What happens at a sign.
        rows (`Callable[[], list[dict]]`):
            Gives the completions of the last generation batch.
    """

    def __init__(self, action: str, rows: Callable[[], list[dict[str, Any]]]):
        self.action = action
        self.rows = rows
        self._signs = HackingSigns()
        self._told: set[str] = set()
        self._sampled: int | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._signs, self._told = HackingSigns(), set()
        for log in state.log_history:  # of the parts of the run before this one
            self._told |= {sign.kind for sign in self._signs.observe(log)}
        if self.action == "stop":  # each stop says why
            self._told.clear()
        if state.is_world_process_zero:
            self._sampled = _keep_samples(Path(str(args.output_dir)) / SAMPLES_FILE, state.global_step)

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        log = state.log_history[-1]
        for sign in self._signs.observe(log):
            if sign.kind not in self._told and state.is_world_process_zero:
                warnings.warn(
                    f"REWARD HACKING? At step {state.global_step} {sign.text}. Read {SAMPLES_FILE} in "
                    f"{args.output_dir}, then let style count on right answers only (reward_gates), lower its weight, "
                    "or change what the reward can be tricked by. See reward_watch"
                    f"{'; the run stops here' if self.action == 'stop' else ''}",
                    stacklevel=2,
                )
            self._told.add(sign.kind)
            if self.action == "stop":
                control.should_save = True
                control.should_training_stop = True
        is_due = self._sampled is None or state.global_step - self._sampled >= SAMPLES_EVERY
        if "reward" in log and is_due and state.is_world_process_zero:
            self._sampled = state.global_step
            rows = self.rows()
            # A generator of its own leaves the run's random numbers alone.
            drawn = random.Random(state.global_step).sample(rows, min(SAMPLES, len(rows)))
            with (Path(str(args.output_dir)) / SAMPLES_FILE).open("a", encoding="utf-8") as file:
                for row in drawn:
                    line = {"step": state.global_step, **row}
                    file.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")


def _keep_samples(path: Path, step: int) -> int | None:
    """Drop the lines after this step, of a part of the run that is gone through again; the last step that is left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    steps, kept = [], []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() and step else []:
        try:
            written = json.loads(line)["step"]
        except json.JSONDecodeError:  # the run was killed while it wrote this line
            break
        if written <= step:
            steps.append(written)
            kept.append(line + "\n")
    path.write_text("".join(kept), encoding="utf-8")
    return max(steps, default=None)
