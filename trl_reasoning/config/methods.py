"""The training methods that a recipe's `method:` key can name."""

import importlib
from dataclasses import dataclass
from typing import Any, Literal

from .errors import RecipeError, did_you_mean


@dataclass(frozen=True)
class Method:
    """One training method.

    Args:
        stem (`str`):
            Its name, the same in `trainers/<stem>.py`, in recipes and in tests.
        trainer (`str`):
            `"module:Class"` of the trainer.
        config (`str`):
            `"module:Class"` of the trainer's configuration.
        kind (`"sft"` or `"policy"`):
            What the rows and the loss look like: `policy` methods sample completions and need rewards.
        summary (`str`):
            One line for lists.
        min_generations (`int`, *optional*, defaults to `2`):
            Least number of completions of one prompt; 1 where none are compared with each other.
    """

    stem: str
    trainer: str
    config: str
    kind: Literal["sft", "policy"]
    summary: str
    min_generations: int = 2

    def trainer_class(self) -> Any:
        """Import the trainer class (loads torch and trl)."""
        return _load(self.trainer)

    def config_class(self) -> Any:
        """Import the configuration class (loads torch and trl)."""
        return _load(self.config)


METHODS: dict[str, Method] = {
    method.stem: method
    for method in (
        Method(
            stem="sft",
            trainer="trl_reasoning.trainers.sft:ReasoningSFTTrainer",
            config="trl_reasoning.trainers.sft:ReasoningSFTConfig",
            kind="sft",
            summary="supervised fine-tuning on long chains of thought",
        ),
        Method(
            stem="grpo",
            trainer="trl_reasoning.trainers.grpo:ReasoningGRPOTrainer",
            config="trl_reasoning.trainers.grpo:ReasoningGRPOConfig",
            kind="policy",
            summary="group relative policy optimisation as in DeepSeekMath",
        ),
        Method(
            stem="dr_grpo",
            trainer="trl_reasoning.trainers.dr_grpo:DrGRPOTrainer",
            config="trl_reasoning.trainers.dr_grpo:DrGRPOConfig",
            kind="policy",
            summary="GRPO without the length and the difficulty bias (Dr. GRPO)",
        ),
        Method(
            stem="grpo_ps",
            trainer="trl_reasoning.trainers.grpo_ps:GRPOPSTrainer",
            config="trl_reasoning.trainers.grpo_ps:GRPOPSConfig",
            kind="policy",
            summary="GRPO with a reward for each step of the thought (process supervision of DeepSeekMath)",
        ),
        Method(
            stem="online_rft",
            trainer="trl_reasoning.trainers.online_rft:OnlineRFTTrainer",
            config="trl_reasoning.trainers.online_rft:OnlineRFTConfig",
            kind="policy",
            summary="likelihood of right samples of the live policy (Online RFT of DeepSeekMath)",
        ),
        Method(
            stem="kimi",
            trainer="trl_reasoning.trainers.kimi:KimiTrainer",
            config="trl_reasoning.trainers.kimi:KimiConfig",
            kind="policy",
            summary="squared loss on whole completions against each iteration's policy (Kimi k1.5)",
        ),
        Method(
            stem="ppo",
            trainer="trl_reasoning.trainers.ppo:PPOTrainer",
            config="trl_reasoning.trainers.ppo:PPOConfig",
            kind="policy",
            summary="PPO with a value function and the KL penalty in the reward (InstructGPT, Tulu 3)",
            min_generations=1,
        ),
    )
}


def find_method(stem: Any) -> Method:
    """The method of that name, or an error with the known names and the nearest one."""
    if isinstance(stem, str) and stem in METHODS:
        return METHODS[stem]
    known = ", ".join(METHODS)
    if stem is None:
        raise RecipeError("method", f"a recipe names its method; one of: {known}")
    hint = did_you_mean(str(stem), METHODS)
    raise RecipeError("method", f"{stem!r} is not one of: {known}.{hint}")


def _load(target: str) -> Any:
    module, name = target.split(":")
    return getattr(importlib.import_module(module), name)
