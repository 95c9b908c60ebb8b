"""An alarm when preference training makes the good replies unlikely, too."""

import math
import warnings
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


ACTIONS = ("off", "warn", "stop")
METRIC = "logps/chosen_per_token"
# Optimizer steps over which the log-prob is averaged, at the start of the run and at its end.
WINDOW = 10
# Nats per token: with it, every token of the preferred replies has become e times less likely, their perplexity 2.7
# times as high. A fall by some tenths is what a working DPO or SimPO run shows.
DROP = 1.0


class CollapseCallback(TrainerCallback):
    """
    Warns once, or stops the run with a checkpoint, when the average log-prob of the preferred replies falls too low.

    A preference loss only sees the difference between two replies. It can grow while both become unlikely, and the
    model then writes neither: it repeats itself. The mean of `logps/chosen_per_token` over the last 10 logged steps is
    held against a floor. All is read from the trainer's log, whose values are those of all processes and which a
    resumed run gets back, so that the alarm needs no state of its own and `logging_strategy: "no"` switches it off.

    Args:
        action (`"warn"` or `"stop"`):
            What happens.
        floor (`float`, *optional*):
            Nats per token, below 0. Unset, it is 1 nat below the mean of the first 10 logged steps.
        advice (`str`, *optional*, defaults to `"raise beta"`):
            What to change, for the message.
    """

    def __init__(self, action: str, floor: float | None = None, advice: str = "raise beta"):
        if action not in ACTIONS[1:]:
            raise ValueError(f"action: expected one of {list(ACTIONS[1:])}, got {action!r}")
        self.action = action
        self.floor = floor
        self.advice = advice
        self.reached = False

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if self.reached or METRIC not in state.log_history[-1]:
            return
        values = [(log["step"], log[METRIC]) for log in state.log_history if METRIC in log]
        first, last = values[0][0], values[-1][0]
        start = _mean([value for step, value in values if step < first + WINDOW])
        now = _mean([value for step, value in values if step > last - WINDOW])
        floor = start - DROP if self.floor is None else self.floor
        if not now < floor:  # NaN says nothing of the replies
            return
        self.reached = True
        if state.is_world_process_zero:
            warnings.warn(
                f"LIKELIHOOD COLLAPSE at step {state.global_step}: the preferred replies have "
                f"{now:.2f} nats per token ({METRIC}), under the floor of {floor:.2f} (start: {start:.2f}, perplexity "
                f"{_perplexity(start)} -> {_perplexity(now)}). Both replies of a pair become unlikely, and the "
                f"model forgets to write: {self.advice}. See collapse_alarm and collapse_floor"
                f"{'; the run stops here' if self.action == 'stop' else ''}",
                stacklevel=2,
            )
        if self.action == "stop":
            control.should_save = True
            control.should_training_stop = True


def _perplexity(nats: float) -> str:
    """With the exponent alone where it is no float."""
    return f"{math.exp(-nats):.1f}" if nats > -700 else f"e^{-nats:.0f}"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
