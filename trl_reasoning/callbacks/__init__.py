"""Callbacks: progress in numbers, log file, held-out accuracy, time limit, and a clean stop on a signal."""

from .heldout import HeldoutCallback
from .interrupt import InterruptCallback
from .progress import LogFileCallback, ProgressLineCallback
from .time_limit import TimeLimitCallback


__all__ = ["HeldoutCallback", "InterruptCallback", "LogFileCallback", "ProgressLineCallback", "TimeLimitCallback"]
