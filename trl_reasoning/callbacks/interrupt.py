"""Ctrl-C and SIGTERM end a run after the step, with a checkpoint."""

import signal
import sys
from types import FrameType
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class InterruptCallback(TrainerCallback):
    """
    The first SIGINT or SIGTERM lets the running step finish, saves a checkpoint and stops; a second one stops at once.

    In a run of several processes the processes agree on the step at which to stop.

    Attributes:
        signal_number (`int` or `None`): the signal that was received.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self._previous: dict[int, Any] = {}

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._receive)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self.agree()
        if self.signal_number is not None:
            control.should_save = True
            control.should_training_stop = True

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self.restore()

    def restore(self) -> None:
        """Put the former signal handlers back."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.signal_number is not None:
            self.restore()
            raise KeyboardInterrupt
        self.signal_number = number
        name = signal.Signals(number).name
        print(
            f"\n{name}: saving a checkpoint after this step, then stopping. Once more stops at once.", file=sys.stderr
        )

    def agree(self) -> None:
        """Let every process know that one was told to stop: also after the last step."""
        if any_process(self.signal_number is not None) and self.signal_number is None:
            self.signal_number = signal.SIGTERM


def any_process(flag: bool) -> bool:
    """Whether the flag is set in any process; they all get the same answer, so that none leaves the loop alone."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return flag
    shared = torch.tensor([int(flag)], device=_collective_device())
    torch.distributed.all_reduce(shared, op=torch.distributed.ReduceOp.MAX)
    return bool(shared.item())


def _collective_device() -> torch.device:
    on_gpu = torch.distributed.get_backend() == "nccl"
    return torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")
