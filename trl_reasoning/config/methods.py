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
        kind (`str`):
            What the rows look like: `sft` (dialogues), `policy` (prompts, whose completions are sampled and rewarded),
            `preference` (pairs), `reward` (pairs or rankings), `steps` (solutions with step labels), `prompts`
            (prompts alone), `logits` (rows with a teacher's log-probs).
        summary (`str`):
            One line for lists.
        architecture (`str`, *optional*, defaults to `"AutoModelForCausalLM"`):
            The class of transformers that loads its model.
        min_generations (`int`, *optional*, defaults to `2`):
            Least number of completions of one prompt; 1 where none are compared with each other.
    """

    stem: str
    trainer: str
    config: str
    kind: Literal["sft", "policy", "preference", "reward", "steps", "prompts", "logits"]
    summary: str
    architecture: str = "AutoModelForCausalLM"
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
        Method(
            stem="dpo",
            trainer="trl_reasoning.trainers.dpo:ReasoningDPOTrainer",
            config="trl_reasoning.trainers.dpo:ReasoningDPOConfig",
            kind="preference",
            summary="direct preference optimisation on pairs",
        ),
        Method(
            stem="ln_dpo",
            trainer="trl_reasoning.trainers.ln_dpo:LNDPOTrainer",
            config="trl_reasoning.trainers.ln_dpo:LNDPOConfig",
            kind="preference",
            summary="DPO on log-ratios a token (length-normalised, Tulu 3)",
        ),
        Method(
            stem="simpo",
            trainer="trl_reasoning.trainers.simpo:SimPOTrainer",
            config="trl_reasoning.trainers.simpo:SimPOConfig",
            kind="preference",
            summary="preferences on log-probs a token with a margin, without a reference model (SimPO)",
        ),
        Method(
            stem="reward",
            trainer="trl_reasoning.trainers.reward:ReasoningRewardTrainer",
            config="trl_reasoning.trainers.reward:ReasoningRewardConfig",
            kind="reward",
            summary="Bradley-Terry reward model on pairs and rankings (InstructGPT)",
            architecture="AutoModelForSequenceClassification",
        ),
        Method(
            stem="prm",
            trainer="trl_reasoning.trainers.prm:PRMTrainer",
            config="trl_reasoning.trainers.prm:PRMConfig",
            kind="steps",
            summary="process reward model on solutions whose steps have labels",
            architecture="AutoModelForTokenClassification",
        ),
        Method(
            stem="distillation",
            trainer="trl_reasoning.trainers.distillation:ReasoningDistillationTrainer",
            config="trl_reasoning.trainers.distillation:ReasoningDistillationConfig",
            kind="prompts",
            summary="on-policy distillation: the student's samples, the teacher's distribution (Qwen3)",
        ),
        Method(
            stem="logit_distillation",
            trainer="trl_reasoning.trainers.logit_distillation:LogitDistillationTrainer",
            config="trl_reasoning.trainers.logit_distillation:LogitDistillationConfig",
            kind="logits",
            summary="distillation from a teacher's stored log-probs, without the teacher in memory",
        ),
    )
}
_ALIASES = {"reward_model": "reward"}


def find_method(stem: Any) -> Method:
    """The method of that name, or an error with the known names and the nearest one."""
    if isinstance(stem, str) and _ALIASES.get(stem, stem) in METHODS:
        return METHODS[_ALIASES.get(stem, stem)]
    known = ", ".join(METHODS)
    if stem is None:
        raise RecipeError("method", f"a recipe names its method; one of: {known}")
    hint = did_you_mean(str(stem), METHODS)
    raise RecipeError("method", f"{stem!r} is not one of: {known}.{hint}")


def _load(target: str) -> Any:
    module, name = target.split(":")
    return getattr(importlib.import_module(module), name)
