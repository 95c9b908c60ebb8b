"""The numbers a person watches, on one line, and every log in a file."""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


# label, metric key of TRL or of the rewards, format
_WATCHED = (
    ("loss", "loss", "{:.4f}"),
    ("reward", "reward", "{:.3f}"),
    ("accuracy", "answers/right", "{:.1%}"),
    ("right_length", "length/right", "{:.1f}"),
    ("wrong_length", "length/wrong", "{:.1f}"),
    ("cut", "completions/clipped_ratio", "{:.0%}"),
    ("zero_spread", "frac_reward_zero_std", "{:.0%}"),
    ("kl", "kl", "{:.4f}"),
    ("heldout", "heldout/accuracy", "{:.1%}"),
    ("token_accuracy", "mean_token_accuracy", "{:.1%}"),
)
_WARN_CUT_SHARE = 0.5


def watched_line(logs: Mapping[str, Any]) -> str:
    """
    One line with the watched numbers that `logs` holds.

    Example:

    ```python
    >>> watched_line({"loss": 0.0, "reward": 0.5, "completions/clipped_ratio": 0.25})
    'loss 0.0000  reward 0.500  cut 25%'

    ```
    """
    parts = []
    for label, key, form in _WATCHED:
        value = logs.get(key)
        if value is not None:
            parts.append(f"{label} {form.format(float(value))}")
    return "  ".join(parts)


def explain(logs: Mapping[str, Any]) -> str | None:
    """
    A message in place of a mystery: why the loss is 0, or why nothing is learnt.

    Args:
        logs (`Mapping[str, Any]`):
            One training log.

    Returns:
        `str` or `None`: the message, `None` where there is nothing to explain.
    """
    if logs.get("rft/right") == 0.0:
        return "no completion of this step was right, so that nothing is learnt from it; see the reward's mean."
    # Where steps are rewarded, their spread decides; where right samples are learnt, none is needed.
    zero_spread = logs.get("steps/frac_zero_std", logs.get("frac_reward_zero_std"))
    if zero_spread == 1.0 and "rft/right" not in logs:
        return (
            "loss is 0 because all completions of every prompt got the same reward, so that no advantage is left "
            f"(mean reward {float(logs.get('reward') or 0.0):.3f}). At 0 the task is too hard or the answers cannot "
            "be read, at the top it is solved: change the data's difficulty, the reward or num_generations."
        )
    cut = logs.get("completions/clipped_ratio")
    if cut is not None and cut > _WARN_CUT_SHARE:
        return (
            f"{cut:.0%} of the completions were cut at max_completion_length and hold no answer: raise "
            "max_completion_length, or check that the model ever writes its end token."
        )
    if logs.get("answers/unreadable_gold", 0) and logs["answers/unreadable_gold"] == 1.0:
        return "no gold answer of this batch could be read, so the accuracy reward is None for every row."
    if "reward" in logs and abs(float(logs.get("loss", 1.0))) < 1e-6:
        return (
            "the loss is near 0 by construction: with one update per sample it is the mean of advantages that sum to "
            "0 in each group. Watch reward and grad_norm instead."
        )
    return None


class ProgressLineCallback(TrainerCallback):
    """
    One line with the watched numbers a log, above a progress bar where there is a terminal and no `disable_tqdm`.

    Replaces the `ProgressCallback` and `PrinterCallback` of transformers. Each kind of message is printed once.
    """

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: Any = None
        self._told: set[str] = set()
        self._last = (0.0, 0)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._last = (time.monotonic(), state.global_step)
        if args.disable_tqdm or not state.is_world_process_zero or not sys.stderr.isatty():
            return
        columns = (TextColumn("step"), MofNCompleteColumn(), BarColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=Console(file=sys.stderr))
        self._task = self._progress.add_task("", total=state.max_steps, completed=state.global_step)
        self._progress.start()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if self._progress is not None:
            self._progress.update(self._task, completed=state.global_step)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if not state.is_world_process_zero or not logs:
            return
        line = watched_line(logs)
        if line:
            now, (then, step) = time.monotonic(), self._last
            pace = f"  {(now - then) / (state.global_step - step):.2f} s/step" if state.global_step > step else ""
            self._last = (now, state.global_step)
            self._print(f"step {state.global_step}/{state.max_steps}  {line}{pace}")
        message = explain(logs)
        if message is not None and message[-30:] not in self._told:
            self._told.add(message[-30:])  # the numbers stand further in front
            self._print(f"note: {message}")

    def _print(self, text: str) -> None:
        if self._progress is not None:
            self._progress.console.print(text, highlight=False, soft_wrap=True)
        else:
            print(text, flush=True)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


class LogFileCallback(TrainerCallback):
    """
    Appends every log as one JSON line with its step to a file.

    On resume, lines of steps after the checkpoint are dropped first, so that a step stands in the file once.

    Args:
        path (`str` or `Path`):
            The file, for instance `train_log.jsonl` in the output folder.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if not state.is_world_process_zero:
            return
        kept = [row for row in read_log(self.path) if row["step"] <= state.global_step] if state.global_step else []
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(json.dumps(row) + "\n" for row in kept))

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if state.is_world_process_zero and logs:
            with self.path.open("a") as file:
                file.write(json.dumps({"step": state.global_step, **logs}) + "\n")


def read_log(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a `train_log.jsonl`; an empty list where there is no file, a half-written last line is left out."""
    path = Path(path)
    if not path.exists():
        return []
    rows = []
    for line in path.read_text().splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:  # the run was killed while it wrote this line
            break
    return rows
