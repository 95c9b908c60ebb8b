"""One method a file: `<Stem>Config` and `<Stem>Trainer`, thin subclasses of TRL's classes."""

from .dr_grpo import DrGRPOConfig, DrGRPOTrainer
from .grpo import ReasoningGRPOConfig, ReasoningGRPOTrainer
from .sft import ReasoningSFTConfig, ReasoningSFTTrainer


__all__ = [
    "DrGRPOConfig",
    "DrGRPOTrainer",
    "ReasoningGRPOConfig",
    "ReasoningGRPOTrainer",
    "ReasoningSFTConfig",
    "ReasoningSFTTrainer",
]
