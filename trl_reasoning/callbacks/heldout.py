"""Accuracy on held-out problems while training runs."""

from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class HeldoutCallback(TrainerCallback):
    """
    Samples answers to held-out problems every `every` steps and logs `heldout/*`.

    Args:
        measure (`Callable[[], dict[str, float]]`):
            Samples with the live model and returns the metrics, without a prefix.
        every (`int`):
            Steps between two measurements. Step 0 and the last of `max_steps` are measured, too; a run that a signal
            or a time limit ends is not measured at its end.
    """

    def __init__(self, measure: Callable[[], dict[str, float]], every: int):
        if every < 1:
            raise ValueError(f"heldout.every: expected at least 1 step, got {every}")
        self.measure = measure
        self.every = every
        self.trainer: Any = None  # set by train.py: a callback has no way to the trainer's `log`
        self._measured: int | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if state.global_step == 0:
            self._log(state)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if state.global_step % self.every == 0 or state.global_step >= state.max_steps:
            should_log = control.should_log
            self._log(state)
            control.should_log = should_log  # a log of ours would count as the step's own

    def _log(self, state: TrainerState) -> None:
        if self._measured == state.global_step:
            return
        self._measured = state.global_step
        metrics = self.measure()
        # In evaluation mode TRL's `log` leaves the training metrics that are being gathered alone.
        self.trainer.model.eval()
        self.trainer.log({f"heldout/{name}": value for name, value in metrics.items()})
        self.trainer.model.train()
