"""
Reasoning post-training on one GPU: an add-on to TRL.

The names below load on first use, so that `import trl_reasoning` and `trl-reasoning --help` stay fast and need neither
torch nor trl.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any


__version__ = "0.1.0"

if TYPE_CHECKING:
    from .answers import Verdict, verify
    from .builtin import make_chain_dataset, resolve_model
    from .config import Recipe, RecipeError, load_recipe
    from .text import Thought, split_thought
    from .trainers import (
        DrGRPOConfig,
        DrGRPOTrainer,
        GRPOPSConfig,
        GRPOPSTrainer,
        KimiConfig,
        KimiTrainer,
        LNDPOConfig,
        LNDPOTrainer,
        LogitDistillationConfig,
        LogitDistillationTrainer,
        OnlineRFTConfig,
        OnlineRFTTrainer,
        PPOConfig,
        PPOTrainer,
        PRMConfig,
        PRMTrainer,
        ReasoningDistillationConfig,
        ReasoningDistillationTrainer,
        ReasoningDPOConfig,
        ReasoningDPOTrainer,
        ReasoningGRPOConfig,
        ReasoningGRPOTrainer,
        ReasoningRewardConfig,
        ReasoningRewardTrainer,
        ReasoningSFTConfig,
        ReasoningSFTTrainer,
        SimPOConfig,
        SimPOTrainer,
    )

# Every public name and the module that defines it; the imports above repeat it for type checkers and a test compares
# the two.
_MODULE_OF = {
    "DrGRPOConfig": "trainers",
    "DrGRPOTrainer": "trainers",
    "GRPOPSConfig": "trainers",
    "GRPOPSTrainer": "trainers",
    "KimiConfig": "trainers",
    "KimiTrainer": "trainers",
    "LNDPOConfig": "trainers",
    "LNDPOTrainer": "trainers",
    "LogitDistillationConfig": "trainers",
    "LogitDistillationTrainer": "trainers",
    "OnlineRFTConfig": "trainers",
    "OnlineRFTTrainer": "trainers",
    "PPOConfig": "trainers",
    "PPOTrainer": "trainers",
    "PRMConfig": "trainers",
    "PRMTrainer": "trainers",
    "ReasoningDPOConfig": "trainers",
    "ReasoningDPOTrainer": "trainers",
    "ReasoningDistillationConfig": "trainers",
    "ReasoningDistillationTrainer": "trainers",
    "ReasoningGRPOConfig": "trainers",
    "ReasoningGRPOTrainer": "trainers",
    "ReasoningRewardConfig": "trainers",
    "ReasoningRewardTrainer": "trainers",
    "ReasoningSFTConfig": "trainers",
    "ReasoningSFTTrainer": "trainers",
    "SimPOConfig": "trainers",
    "SimPOTrainer": "trainers",
    "Recipe": "config",
    "RecipeError": "config",
    "Thought": "text",
    "Verdict": "answers",
    "load_recipe": "config",
    "make_chain_dataset": "builtin",
    "resolve_model": "builtin",
    "split_thought": "text",
    "verify": "answers",
}

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
    "Recipe",
    "RecipeError",
    "SimPOConfig",
    "SimPOTrainer",
    "Thought",
    "Verdict",
    "__version__",
    "load_recipe",
    "make_chain_dataset",
    "resolve_model",
    "split_thought",
    "verify",
]


# transformers, trl and peft import bitsandbytes, which warns on many CPUs of a kernel that only 4-bit weights miss.
logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
