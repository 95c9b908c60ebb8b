"""Stop after a wall time."""

import time
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from .interrupt import any_process


class TimeLimitCallback(TrainerCallback):
    """
    Stops at the end of the first step after `max_seconds` of training, with a checkpoint.

    Time spent before an interruption counts (`run.json` keeps it); several processes stop at the same step.

    Args:
        max_seconds (`float`):
            Wall time of training, in seconds.
        seconds_before (`float`, *optional*, defaults to `0.0`):
            Seconds that earlier, interrupted parts of the run took.
    """

    def __init__(self, max_seconds: float, seconds_before: float = 0.0):
        if max_seconds <= 0:
            raise ValueError(f"max_seconds: expected more than 0 seconds, got {max_seconds}")
        self.max_seconds = max_seconds
        self.seconds_before = seconds_before
        self._start = 0.0
        self.reached = False

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._start = time.monotonic()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if any_process(self.seconds_before + time.monotonic() - self._start >= self.max_seconds):
            self.reached = True
            control.should_save = True
            control.should_training_stop = True
