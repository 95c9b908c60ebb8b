"""`grpo_ps`: GRPO with process supervision, a reward for each step of the thought."""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from ..generation.text_positions import text_with_token_ends, token_at
from ..losses.advantages import STD_KINDS, normalize_steps, spread_steps
from .grpo import ReasoningGRPOConfig, ReasoningGRPOTrainer


@dataclass
class GRPOPSConfig(ReasoningGRPOConfig):
    r"""
    GRPO with process supervision (DeepSeekMath, [paper](https://huggingface.co/papers/2402.03300), Section 4.1.3).

    $$A_{i,t} = \sum_{j:\ \mathrm{index}(j) \ge t} \tilde r_i^{(j)}, \quad \tilde r_i^{(j)} =
    \frac{r_i^{(j)} - \mathrm{mean}(R)}{\mathrm{std}(R)}$$

    where $R$ holds the rewards of all steps of all completions of a prompt, and $\mathrm{index}(j)$ is the last token
    of step $j$. A token behind the last step, and a completion without a step, get 0. The rest of the objective is
    [`ReasoningGRPOConfig`]'s.

    `scale_rewards="none"` leaves out the division; `"batch"` is refused.

    Args:
        step_std (`"sample"` or `"population"`, *optional*, defaults to `"sample"`):
            Which standard deviation; the paper does not say. 1e-4 is added to it, as in TRL.
        outcome_weight (`float`, *optional*, defaults to `0.0`):
            Weight of the outcome's advantage, that of GRPO from `reward_funcs`, which is added at every token. The
            paper uses the step rewards alone; the rewards of `reward_funcs` are logged in any case.
    """

    step_std: str = field(
        default="sample", metadata={"help": "Standard deviation over the pooled steps.", "choices": list(STD_KINDS)}
    )
    outcome_weight: float = field(
        default=0.0, metadata={"help": "Weight of the outcome's advantage, added at every token (0 in the paper)."}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step_std not in STD_KINDS:
            raise ValueError(f"step_std: expected one of {list(STD_KINDS)}, got {self.step_std!r}")
        if self.outcome_weight < 0:
            raise ValueError(f"outcome_weight: expected 0 or more, got {self.outcome_weight}")
        if self.multi_objective_aggregation != "sum_then_normalize" and not self.outcome_weight:
            raise ValueError(
                "multi_objective_aggregation: says how the outcome's rewards are added up, which grpo_ps takes with "
                "an `outcome_weight` above 0 alone; set that, or remove the key"
            )
        if self.scale_rewards == "batch":
            raise ValueError(
                "scale_rewards: grpo_ps normalises over the steps of a prompt's completions; expected group or none, "
                "got 'batch'"
            )


class GRPOPSTrainer(ReasoningGRPOTrainer):
    """
    [`ReasoningGRPOTrainer`] whose advantages come from the steps of the thought.

    Logs `steps/count` (steps a completion), `steps/reward`, `steps/frac_zero_std` (prompts whose steps all have the
    same reward) and `steps/unjudged` (steps without a score).

    Args:
        step_reward (`Callable`):
            Gives a list of [`~trl_reasoning.rewards.steps.StepScore`] per completion; called with `prompts`, `texts`
            (the completions with their think tags) and `completion_ids`, and with every column of the data.
        **kwargs:
            The parent's arguments; `reward_funcs` is needed, too, and tells in the log how outcomes go.

    Example:

    ```python
    from trl_reasoning import GRPOPSConfig, GRPOPSTrainer
    from trl_reasoning.builtin import make_chain_dataset, resolve_model
    from trl_reasoning.rewards import REWARDS
    from trl_reasoning.rewards.steps import make_chain_step_reward

    trainer = GRPOPSTrainer(
        model=resolve_model("builtin:tiny"),
        args=GRPOPSConfig(output_dir="out", max_steps=10, use_cpu=True, bf16=False),
        reward_funcs=[REWARDS["accuracy"]()],
        step_reward=make_chain_step_reward(),
        train_dataset=make_chain_dataset(size=512),
    )
    trainer.train()
    ```
    """

    args: GRPOPSConfig

    _tag_names = ["trl", "grpo_ps", "trl-reasoning"]
    _name = "GRPO with process supervision"
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

    def __init__(self, *args: Any, step_reward: Callable[..., Any], **kwargs: Any):
        self.step_reward = step_reward
        super().__init__(*args, **kwargs)

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> torch.Tensor:
        self._steps = self._judge_steps(inputs, prompts, completion_ids_list)
        return super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        model: Any = self.model
        mode = "train" if model.training else "eval"
        generations: Any = self.num_generations if mode == "train" else self.num_generations_eval
        rewards, ends = self._steps  # (N, S), of this process
        # A prompt's completions may lie in several processes: the pooled statistics need them all.
        everyone: Any = self.accelerator.gather(self.accelerator.pad_across_processes(rewards, 1, torch.nan))  # type: ignore[arg-type]
        std = None if self.args.scale_rewards == "none" else self.args.step_std
        values = normalize_steps(everyone, generations, std=std)
        first = self.accelerator.process_index * len(rewards)
        local = values[first : first + len(rewards), : rewards.size(1)]
        advantages = spread_steps(local, ends, output["completion_ids"].size(1))  # (N, T)
        if self.args.outcome_weight > 0:
            advantages = advantages + self.args.outcome_weight * output["advantages"].unsqueeze(1)
        output["advantages"] = advantages
        self._log_steps(everyone, self.accelerator.gather((ends >= 0).sum(1)), generations, mode)
        return output

    def _judge_steps(self, inputs: Any, prompts: Any, completion_ids_list: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Rewards (N, S) and last tokens (N, S) of this process's steps, one column at least."""
        decoded = [text_with_token_ends(self._tokenizer, ids) for ids in completion_ids_list]
        columns = {key: [row[key] for row in inputs] for key in inputs[0] if key not in ("prompt", "completion")}
        scores = self.step_reward(
            prompts=prompts, texts=[text for text, _ in decoded], completion_ids=completion_ids_list, **columns
        )
        if len(scores) != len(decoded):
            raise ValueError(f"step_reward gave {len(scores)} lists of steps for {len(decoded)} completions")
        rewards, ends = [], []
        for row, (_, token_ends) in zip(scores, decoded, strict=True):
            rewards.append(torch.tensor([torch.nan if score is None else score for _, score in row] + [torch.nan]))
            ends.append(torch.tensor([token_at(token_ends, end) for end, _ in row] + [-1]))
        device = self.accelerator.device
        return (
            pad_sequence(rewards, batch_first=True, padding_value=torch.nan).to(device),
            pad_sequence(ends, batch_first=True, padding_value=-1).to(device),
        )

    def _log_steps(self, rewards: torch.Tensor, counts: Any, generations: int, mode: str) -> None:
        judged = ~rewards.isnan()
        pooled = rewards.view(len(rewards) // generations, -1)
        spread = pooled.nan_to_num(nan=-torch.inf).amax(1) - pooled.nan_to_num(nan=torch.inf).amin(1)
        metrics = self._metrics[mode]
        metrics["steps/count"].append(counts.float().mean().item())
        metrics["steps/reward"].append(rewards[judged].mean().item() if judged.any() else 0.0)
        metrics["steps/frac_zero_std"].append((spread <= 0).float().mean().item())
        metrics["steps/unjudged"].append(1.0 - judged.sum().item() / max(counts.sum().item(), 1))
