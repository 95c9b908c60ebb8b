"""`kimi`: the policy optimisation of Kimi k1.5, a squared loss on whole completions in iterations."""

import textwrap
import warnings
from dataclasses import dataclass, field
from typing import Any

import torch

from ..losses import LossOutput, PolicyTokens, kimi_baseline, kimi_loss
from ..losses.squared import BASELINES
from ._fixed_keys import check_fixed_keys
from ._optimizer import reset_optimizer_state
from .grpo import ReasoningGRPOConfig, ReasoningGRPOTrainer


# What makes the method; a recipe that says otherwise trains something else under this name.
_FIXED = {
    "loss_type": ("grpo", "it has a loss of its own, and the key is not read"),
    "scale_rewards": ("none", "advantages are not divided by a standard deviation"),
    "multi_objective_aggregation": ("sum_then_normalize", "rewards are not normalised by their spread"),
    "beta": (0.0, "tau is the weight of the pull towards the reference, and there is no other KL term"),
    "importance_sampling_level": ("token", "there is no ratio"),
    "epsilon": (0.2, "nothing is clipped"),
    "epsilon_high": (None, "nothing is clipped"),
    "delta": (None, "nothing is clipped"),
    "top_entropy_quantile": (1.0, "the log-ratio is that of the whole completion"),
    "off_policy_mask_threshold": (None, "no sequence is masked out"),
    "sync_ref_model": (False, "the reference is renewed at every iteration anyway"),
    "ref_model_mixup_alpha": (1.0, "the reference is the policy that the iteration started with"),
}


@dataclass
class KimiConfig(ReasoningGRPOConfig):
    r"""
    Policy optimisation of Kimi k1.5 ([paper](https://huggingface.co/papers/2501.12599), Section 2.3.2).

    $$\frac{1}{G}\sum_j \frac{1}{2\tau}\left(A_j - \tau\rho_j\right)^2, \quad A_j = r_j - \bar r, \quad
    \rho_j = \log\pi(y_j|x) - \log\pi_i(y_j|x)$$

    with the log-ratio of the whole completion to the policy $\pi_i$ that began the iteration. No clipping, no standard
    deviation, no length normalisation. The gradient, $-(A_j - \tau\rho_j)\nabla\log\pi(y_j|x)$, is the paper's divided
    by $2\tau$, so that $\tau$ does not change the size of a step.

    An iteration is one generation batch, sampled wholly by $\pi_i$, and `steps_per_generation * num_iterations /
    gradient_accumulation_steps` updates on it. At its first update $\rho = 0$, so that $\tau$ acts from the second
    one on. The keys that make the method are set, and a value that contradicts them is an error. The paper publishes
    neither $\tau$ nor the group size, the learning rate or the number of updates; the defaults are choices of ours.

    Args:
        tau (`float`, *optional*, defaults to `0.1`):
            $\tau$, weight of the pull towards the iteration's policy: at $\rho = A/\tau$ a completion is left alone.
        baseline (`str`, *optional*, defaults to `"mean"`):
            What is taken from the rewards of a group: their mean, as the paper does in practice, or `"log_mean_exp"`,
            the estimate of $\tau\log Z$ that the optimum calls for.
        batches_per_iteration (`int`, *optional*, defaults to `1`):
            Generation batches with one reference. From the second one on, they are sampled by a policy that has moved
            away from it. More than 1 costs a frozen copy of the policy (with LoRA, of the adapter) and a forward pass
            with it.
        reset_optimizer (`bool`, *optional*, defaults to `True`):
            Whether the optimizer forgets its moments at the start of each iteration, as in the paper. The learning
            rate's schedule goes on.
    """

    scale_rewards: str | bool = field(default="none", metadata={"help": "Fixed to `none` by the method."})
    beta: float = field(default=0.0, metadata={"help": "Fixed to 0 by the method; see `tau`."})
    tau: float = field(default=0.1, metadata={"help": "Weight of the pull towards the iteration's policy."})
    baseline: str = field(
        default="mean", metadata={"help": "What is taken from a group's rewards.", "choices": list(BASELINES)}
    )
    batches_per_iteration: int = field(
        default=1, metadata={"help": "Generation batches with one reference, which samples the first of them alone."}
    )
    reset_optimizer: bool = field(
        default=True, metadata={"help": "Whether the optimizer forgets its moments at the start of each iteration."}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fixed_keys(self, "kimi", _FIXED, otherwise=", or use `method: grpo`")
        if self.tau <= 0:
            raise ValueError(f"tau: expected more than 0, got {self.tau}")
        if self.baseline not in BASELINES:
            raise ValueError(f"baseline: expected one of {list(BASELINES)}, got {self.baseline!r}")
        if self.batches_per_iteration < 1:
            raise ValueError(f"batches_per_iteration: expected at least 1, got {self.batches_per_iteration}")
        mode = self.vllm_importance_sampling_mode
        if self.use_vllm and self.vllm_importance_sampling_correction and not mode.startswith("sequence"):
            raise ValueError(
                "vllm_importance_sampling_mode: kimi has one loss for a whole completion, expected sequence_mask or "
                f"sequence_truncate, got {mode!r}"
            )
        self._check_iteration()

    @property
    def micro_steps_per_iteration(self) -> int:
        """Micro-batches that are passed between two renewals of the reference."""
        assert self.steps_per_generation is not None  # settled by the parent
        return self.batches_per_iteration * self.steps_per_generation * self.num_iterations

    def _check_iteration(self) -> None:
        accumulation, repeats = self.gradient_accumulation_steps, self.num_iterations
        window = self.steps_per_generation
        assert window is not None
        if window * repeats % accumulation:
            fitting = range(window, window + accumulation + 1)
            nearest = next(steps for steps in fitting if steps * repeats % accumulation == 0)
            raise ValueError(
                f"steps_per_generation: an iteration is a whole number of updates, but {window} micro-batches x "
                f"num_iterations {repeats} are not a multiple of gradient_accumulation_steps {accumulation}; write "
                f"{nearest}"
            )
        if self.batches_per_iteration > 1:
            warnings.warn(
                f"batches_per_iteration {self.batches_per_iteration}: from the second generation batch of an "
                "iteration on, the policy that samples is not the reference; the paper has one batch",
                stacklevel=4,
            )
        elif self.micro_steps_per_iteration == accumulation and self.baseline == "mean":
            warnings.warn(
                "tau does nothing here: with one update an iteration every log-ratio is 0. For several updates raise "
                f"steps_per_generation (now {window}) or num_iterations (now {repeats})",
                stacklevel=4,
            )


class KimiTrainer(ReasoningGRPOTrainer):
    """
    [`ReasoningGRPOTrainer`] with Kimi k1.5's squared loss, in iterations.

    The reference of an iteration is the policy that samples its batch, so that the log-probs of the sampling policy,
    which the first update gives on its way, are all that is needed of it. With vLLM as the sampler these are the
    trainer's own numbers, and the parent's correction for vLLM's weighs whole completions.
    """

    args: KimiConfig

    _tag_names = ["trl", "kimi", "trl-reasoning"]
    _name = "Kimi k1.5"
    _paper = {
        "title": "Kimi k1.5: Scaling Reinforcement Learning with LLMs",
        "id": "2501.12599",
        "citation": textwrap.dedent("""\
            @article{kimiteam2025kimi,
                title        = {{Kimi k1.5: Scaling Reinforcement Learning with LLMs}},
                author       = {{Kimi Team}},
                year         = 2025,
                eprint       = {arXiv:2501.12599},
            }"""),
    }

    def __init__(self, model: Any, reward_funcs: Any, args: KimiConfig, *rest: Any, **kwargs: Any):
        # TRL holds a reference model, and scores with it, where beta is not 0.
        args.beta = float(args.batches_per_iteration > 1)
        super().__init__(model, reward_funcs, args, *rest, **kwargs)
        self.args.beta = self.beta = 0.0

    @property
    def reduction(self) -> str:
        return "rows"

    def policy_loss(self, tokens: PolicyTokens) -> LossOutput:
        reference = tokens.old_per_token_logps  # (N, T)
        if self.renews_reference:
            reference = tokens.batch["ref_per_token_logps"]
        log_ratio = ((tokens.per_token_logps - reference) * tokens.mask).sum(-1)  # (N,)
        loss = kimi_loss(log_ratio, tokens.advantages.squeeze(1), self.args.tau)
        # Of rows without a reward no reference may be known; they do not move.
        log_ratio = log_ratio.detach().unsqueeze(1).masked_fill(tokens.advantages.isnan(), 0.0)  # (N, 1)
        return LossOutput(
            loss=loss.unsqueeze(1),
            metrics={"kimi/log_ratio": log_ratio},
            maxima={"kimi/log_ratio_abs_max": log_ratio.abs()},
        )

    def has_gradient(self, batch: dict[str, Any]) -> torch.Tensor:
        # Before the first update of an iteration no reference is known apart from the live policy, and rows without
        # an advantage have no gradient; afterwards these are pulled back to the reference.
        is_first = "old_per_token_logps" not in batch and not self.renews_reference
        if is_first or self._entropy_bonus_enabled:
            return super().has_gradient(batch)
        return self._is_scored(batch)

    def needs_logps(self, batch: dict[str, Any]) -> torch.Tensor:
        return self._is_scored(batch) & (not self.renews_reference)

    def _is_scored(self, batch: dict[str, Any]) -> torch.Tensor:
        """(N,): rows with loss tokens and a reward."""
        return self.loss_mask(batch).any(dim=1) & ~batch["advantages"].isnan()

    @property
    def renews_reference(self) -> bool:
        return self.args.batches_per_iteration > 1

    def is_reference_due(self) -> bool:
        return self._step % self.args.micro_steps_per_iteration == 0

    def _calculate_rewards(self, *args: Any) -> torch.Tensor:
        self._rewards = super()._calculate_rewards(*args)  # (N_global, F)
        return self._rewards

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        if self.model.training:  # type: ignore[union-attr]
            if self.args.reset_optimizer and self.is_reference_due():
                reset_optimizer_state(self.optimizer)
            self._metrics["train"]["kimi/iteration"].append(self._step // self.args.micro_steps_per_iteration)
        self.beta = float(self.renews_reference)  # for the reference's log-probs
        output = super()._generate_and_score_completions(inputs)
        self.beta = 0.0
        output["advantages"] = self._advantages(len(inputs))
        return output

    def _advantages(self, rows: int) -> torch.Tensor:
        """(rows,): advantages of this process's rows; NaN for rows that no reward applies to."""
        rewards = (self._rewards * self.reward_weights.to(self._rewards.device)).nansum(dim=1)
        rewards[self._rewards.isnan().all(dim=1)] = torch.nan
        size: Any = self.num_generations if self.model.training else self.num_generations_eval  # type: ignore[union-attr]
        groups = rewards.view(-1, size)
        advantages = (groups - kimi_baseline(groups, self.args.tau, self.args.baseline)).flatten()
        start = self.accelerator.process_index * rows
        return advantages[start : start + rows]
