"""One method a file: `<Stem>Config` and `<Stem>Trainer`, thin subclasses of TRL's classes."""

from .distillation import ReasoningDistillationConfig, ReasoningDistillationTrainer
from .dpo import ReasoningDPOConfig, ReasoningDPOTrainer
from .dr_grpo import DrGRPOConfig, DrGRPOTrainer
from .grpo import ReasoningGRPOConfig, ReasoningGRPOTrainer
from .grpo_ps import GRPOPSConfig, GRPOPSTrainer
from .kimi import KimiConfig, KimiTrainer
from .ln_dpo import LNDPOConfig, LNDPOTrainer
from .logit_distillation import LogitDistillationConfig, LogitDistillationTrainer
from .online_rft import OnlineRFTConfig, OnlineRFTTrainer
from .ppo import PPOConfig, PPOTrainer
from .prm import PRMConfig, PRMTrainer
from .reward import ReasoningRewardConfig, ReasoningRewardTrainer
from .sft import ReasoningSFTConfig, ReasoningSFTTrainer
from .simpo import SimPOConfig, SimPOTrainer


__all__ = [
    "DrGRPOConfig",
    "DrGRPOTrainer",
    "GRPOPSConfig",
    "GRPOPSTrainer",
    "KimiConfig",
    "KimiTrainer",
    "LNDPOConfig",
    "LNDPOTrainer",
    "LogitDistillationConfig",
    "LogitDistillationTrainer",
    "OnlineRFTConfig",
    "OnlineRFTTrainer",
    "PPOConfig",
    "PPOTrainer",
    "PRMConfig",
    "PRMTrainer",
    "ReasoningDPOConfig",
    "ReasoningDPOTrainer",
    "ReasoningDistillationConfig",
    "ReasoningDistillationTrainer",
    "ReasoningGRPOConfig",
    "ReasoningGRPOTrainer",
    "ReasoningRewardConfig",
    "ReasoningRewardTrainer",
    "ReasoningSFTConfig",
    "ReasoningSFTTrainer",
    "SimPOConfig",
    "SimPOTrainer",
]
