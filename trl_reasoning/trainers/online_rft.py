"""`online_rft`: rejection sampling fine-tuning on right samples of the live policy."""

import textwrap
from dataclasses import dataclass, field
from typing import Any

import torch

from ..errors import UserError
from ..losses import LossOutput, PolicyTokens
from ..rewards import right_above
from ._fixed_keys import check_fixed_keys
from .grpo import ReasoningGRPOConfig, ReasoningGRPOTrainer


# What makes the method; a recipe that says otherwise trains something else under this name.
_FIXED = {
    "beta": (0.0, "there is no KL term"),
    "loss_type": ("grpo", "each right completion counts by the mean over its tokens"),
    "num_iterations": (1, "samples are those of the live policy, so that each is used once"),
    "importance_sampling_level": ("token", "there is no importance ratio"),
    "delta": (None, "there is no ratio to bound"),
    "top_entropy_quantile": (1.0, "every token takes part in the loss"),
    "off_policy_mask_threshold": (None, "no sequence is masked out"),
    "multi_objective_aggregation": ("sum_then_normalize", "the rewards' sum says what is right"),
}


@dataclass
class OnlineRFTConfig(ReasoningGRPOConfig):
    r"""
    Online rejection sampling fine-tuning (DeepSeekMath, [paper](https://huggingface.co/papers/2402.03300),
    Section 5.2.1 and Appendix A.1.3).

    $$J = \mathbb{E}\left[\frac{1}{|y|}\sum_t \mathbb{I}(y)\,\log\pi(y_t)\right], \quad \mathbb{I}(y) = 1
    \text{ where } y \text{ is right, else } 0$$

    over samples of the live policy: supervised learning on right completions with equal weights. Wrong ones are not
    punished, they only count in the mean over all samples. There is no baseline, no KL term and no clipping. Each
    sample is used in one step (`num_iterations` is 1); with `steps_per_generation` above
    `gradient_accumulation_steps` the later steps learn from samples that are a few steps old, still without a ratio.

    Args:
        correct_threshold (`float`, *optional*):
            Least weighted sum of a completion's rewards that makes it right; with one reward it defaults to its weight
            times 0.5, or times the middle between right and wrong of `accuracy`. Needed with several: a wrong answer
            in the right format must not reach it. A completion without a reward (`None` from every
            function) is not right.
    """

    beta: float = field(default=0.0, metadata={"help": "Fixed to 0 by the method."})
    correct_threshold: float | None = field(
        default=None, metadata={"help": "Least weighted sum of a completion's rewards that makes it right (halfway)."}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fixed_keys(self, "online_rft", _FIXED, otherwise=", or use `method: grpo`")


class OnlineRFTTrainer(ReasoningGRPOTrainer):
    """
    [`ReasoningGRPOTrainer`] with the log-likelihood of right completions as its objective.

    The advantages of the batch are 1 for right completions and 0 for others, which are left out of the forward pass.
    Logs `rft/right`, the share of right completions. Takes the parent's arguments.
    """

    args: OnlineRFTConfig

    _tag_names = ["trl", "online_rft", "trl-reasoning"]
    _name = "Online RFT"
    _paper = {
        "title": "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
        "id": "2402.03300",
        "citation": textwrap.dedent("""\
            @article{shao2024deepseekmath,
                title        = {{DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models}},
                author       = {Zhihong Shao and Peiyi Wang and Qihao Zhu and Runxin Xu and Junxiao Song and Mingchuan
                                Zhang and Y. K. Li and Y. Wu and Daya Guo},
                year         = 2024,
                eprint       = {arXiv:2402.03300},
            }"""),
    }

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        weights: list[float] = self.reward_weights.tolist()
        halves = {
            name: weight * right_above(reward)
            for name, weight, reward in zip(self.reward_func_names, weights, self.reward_funcs, strict=True)
            if weight
        }
        if self.args.correct_threshold is None and len(halves) > 1:
            raise UserError(
                f"correct_threshold: missing; {' and '.join(halves)} are added up, and their sum alone does not say "
                "what is right. Give the least sum of a right completion"
            )
        default = next(iter(halves.values()), 0.5)
        self._threshold = default if self.args.correct_threshold is None else self.args.correct_threshold

    def policy_loss(self, tokens: PolicyTokens) -> LossOutput:
        return LossOutput(loss=-tokens.advantages * tokens.per_token_logps)

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> torch.Tensor:
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)  # (N_global, F)
        totals = (rewards * self.reward_weights.to(rewards.device)).nansum(dim=1)
        self._is_right = ~rewards.isnan().all(dim=1) & (totals >= self._threshold)  # (N_global,)
        return rewards

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        rows = len(output["advantages"])
        first = self.accelerator.process_index * rows
        output["advantages"] = self._is_right[first : first + rows].float()
        model: Any = self.model
        self._metrics["train" if model.training else "eval"]["rft/right"].append(self._is_right.float().mean().item())
        return output
