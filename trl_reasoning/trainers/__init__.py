"""One method a file: `<Stem>Config` and `<Stem>Trainer`, thin subclasses of TRL's classes."""

from .dr_grpo import DrGRPOConfig, DrGRPOTrainer
from .grpo import ReasoningGRPOConfig, ReasoningGRPOTrainer
from .grpo_ps import GRPOPSConfig, GRPOPSTrainer
from .kimi import KimiConfig, KimiTrainer
from .online_rft import OnlineRFTConfig, OnlineRFTTrainer
from .ppo import PPOConfig, PPOTrainer
from .sft import ReasoningSFTConfig, ReasoningSFTTrainer


__all__ = [
    "DrGRPOConfig",
    "DrGRPOTrainer",
    "GRPOPSConfig",
    "GRPOPSTrainer",
    "KimiConfig",
    "KimiTrainer",
    "OnlineRFTConfig",
    "OnlineRFTTrainer",
    "PPOConfig",
    "PPOTrainer",
    "ReasoningGRPOConfig",
    "ReasoningGRPOTrainer",
    "ReasoningSFTConfig",
    "ReasoningSFTTrainer",
]
