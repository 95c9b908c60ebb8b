"""`dr_grpo`: GRPO done right, without the length and the difficulty bias."""

import textwrap
from dataclasses import dataclass, field
from typing import Any

import torch

from ._fixed_keys import check_fixed_keys
from .grpo import ReasoningGRPOConfig, ReasoningGRPOTrainer


# What makes the method; a recipe that says otherwise trains something else under this name.
_FIXED = {
    "loss_type": ("dr_grpo", "the token losses are summed and divided by a constant, not by the completion's length"),
    "scale_rewards": ("none", "advantages are not divided by the group's standard deviation"),
    "beta": (0.0, "there is no KL term"),
    "importance_sampling_level": ("token", "the ratio is taken per token"),
    "top_entropy_quantile": (1.0, "every token takes part in the loss"),
    "delta": (None, "the ratio is clipped as in PPO"),
    "off_policy_mask_threshold": (None, "no sequence is masked out"),
    "multi_objective_aggregation": ("sum_then_normalize", "rewards are not normalised by their spread"),
}


@dataclass
class DrGRPOConfig(ReasoningGRPOConfig):
    r"""
    Dr. GRPO ([paper](https://huggingface.co/papers/2503.20783), Section 3 and Eq. 3).

    $$\frac{1}{G\,L}\sum_i \sum_t \min\left[\rho_{i,t} A_i,\ \mathrm{clip}(\rho_{i,t}, 1-\epsilon, 1+\epsilon)
    A_i\right], \quad A_i = r_i - \mathrm{mean}(r)$$

    with the constant $L$ = `max_completion_length`. The keys that make the method (`loss_type`, `scale_rewards`,
    `beta`, `importance_sampling_level`, `multi_objective_aggregation`) are set, and a value that contradicts them is
    an error.

    Args:
        zero_truncated_reward (`bool`, *optional*, defaults to `True`):
            Whether a completion without an end token gets reward 0, as in the paper (a negative reward stays). Such a
            completion still takes part in the group's mean and in the loss.
    """

    loss_type: str = field(default="dr_grpo", metadata={"help": "Fixed to `dr_grpo` by the method."})
    scale_rewards: str | bool = field(default="none", metadata={"help": "Fixed to `none` by the method."})
    beta: float = field(default=0.0, metadata={"help": "Fixed to 0 by the method."})
    zero_truncated_reward: bool = field(
        default=True, metadata={"help": "Whether a completion without an end token gets reward 0."}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fixed_keys(self, "dr_grpo", _FIXED, otherwise=", or use `method: grpo`")
        if self.mask_truncated_completions:
            raise ValueError(
                "mask_truncated_completions: dr_grpo scores a truncated completion 0 and keeps it in the loss; remove "
                "the key, or use `method: grpo`"
            )


class DrGRPOTrainer(ReasoningGRPOTrainer):
    """
    [`ReasoningGRPOTrainer`] with the rewards of truncated completions set to 0.

    A grader that timed out gives 0 too; that is the reward function's part (`timed_out` scores 0.0). A reward of
    `None` (not applicable) stays out of the group statistics even if the completion was truncated.
    """

    args: DrGRPOConfig

    _tag_names = ["trl", "dr_grpo", "trl-reasoning"]
    _name = "Dr. GRPO"
    _paper = {
        "title": "Understanding R1-Zero-Like Training: A Critical Perspective",
        "id": "2503.20783",
        "citation": textwrap.dedent("""\
            @article{liu2025understanding,
                title        = {{Understanding R1-Zero-Like Training: A Critical Perspective}},
                author       = {Zichen Liu and Changyu Chen and Wenjun Li and Penghui Qi and Tianyu Pang and
                                Chao Du and Wee Sun Lee and Min Lin},
                year         = 2025,
                eprint       = {arXiv:2503.20783},
            }"""),
    }

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> torch.Tensor:
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)  # (N_global, F)
        if not self.args.zero_truncated_reward:
            return rewards
        local = torch.tensor(self._is_complete, device=rewards.device)
        complete: Any = self.accelerator.gather(local)  # (N_global,)
        # A penalty stays, or being cut would pay; NaN (not applicable) stays NaN.
        return torch.where(complete.unsqueeze(1) | rewards.isnan(), rewards, rewards.clamp(max=0.0))
