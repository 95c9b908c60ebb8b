"""`grpo`: Group Relative Policy Optimization in the form of the DeepSeekMath paper, from TRL's config."""

from dataclasses import dataclass, field

from trl import GRPOConfig, GRPOTrainer

from ..losses import LossOutput, PolicyTokens, cispo_loss, clipped_loss, sapo_loss, vespo_loss
from ._checkpointing import settle_activation_checkpointing
from ._iteration import IterationSamples
from ._late_rows import LateRows
from ._length_reward import LengthRewardConfig, LengthRewards
from ._policy import PolicyLoss
from ._quantized import QuantizedBase
from ._reference import RenewableReference, check_reference_keys
from ._reward_gates import RewardGates, RewardGatesConfig
from ._reward_watch import RewardWatch, RewardWatchConfig
from ._rollout_state import ResumableRollouts
from ._sampling import PromptSampling
from ._sampling_config import PromptSamplingConfig
from ._saving import AdapterOnlySaving
from ._stop_strings import StopStrings, settle_stop_strings
from ._update import PackedUpdate


@dataclass
class ReasoningGRPOConfig(LengthRewardConfig, RewardGatesConfig, RewardWatchConfig, PromptSamplingConfig, GRPOConfig):
    r"""
    [`~trl.GRPOConfig`] with the defaults of DeepSeekMath ([paper](https://huggingface.co/papers/2402.03300), Eq. 3).

    $$\frac{1}{G}\sum_i \frac{1}{|y_i|}\sum_t \left\{\min\left[\rho_{i,t} A_i,\ \mathrm{clip}(\rho_{i,t}, 1-\epsilon,
    1+\epsilon) A_i\right] - \beta\, k3_{i,t}\right\}, \quad A_i = \frac{r_i - \mathrm{mean}(r)}{\mathrm{std}(r)}$$

    Differences from TRL's defaults: `loss_type="grpo"` (TRL: `"dapo"`), `beta=0.04` (0.0), the plain k3 estimate
    (`use_bias_correction_kl=False`), `ref_model_mixup_alpha=1.0` (0.6) and `disable_dropout=True`, so that the policy
    and its reference agree at step 0 with a LoRA adapter too. With `sync_ref_model: true` the reference becomes the
    policy every `ref_model_sync_steps` steps (iterative GRPO), also with LoRA. The standard deviation is the sample
    one, as in TRL.

    Args:
        stop_strings (`list[str]`, *optional*):
            Strings that end a completion, for instance `["</answer>"]` for R1-Zero's template. They stay in the
            completion, and the row counts as complete.
        max_seconds (`float`, *optional*):
            Stop after this many seconds of training, at the end of a step; a checkpoint is saved.
        pack_updates (`bool`, *optional*, defaults to `True`):
            Whether an optimizer step passes its rows sorted by length, without rows that have no gradient and without
            a second pass for the log-probs of the sampling policy. The gradient is that of TRL's micro-batches, up to
            rounding.
        max_tokens_per_pass (`int`, *optional*):
            Most tokens, padding included, of one forward and backward pass of such a step. By default as many as a
            micro-batch of `per_device_train_batch_size` rows padded to the longest.
    """

    loss_type: str = field(
        default="grpo", metadata={"help": "Loss formulation; `grpo` averages over each completion."}
    )
    beta: float = field(default=0.04, metadata={"help": "KL coefficient (0.04 in DeepSeekMath)."})
    use_bias_correction_kl: bool = field(
        default=False, metadata={"help": "Whether to multiply the k3 estimate by the importance ratio."}
    )
    disable_dropout: bool = field(default=True, metadata={"help": "Whether to disable dropout, also in adapters."})
    activation_checkpointing: bool | None = field(
        default=True, metadata={"help": "Whether to recompute activations in the backward pass, to save memory."}
    )
    ref_model_mixup_alpha: float = field(
        default=1.0, metadata={"help": "Share of the policy in a reference that `sync_ref_model` renews; 1 copies it."}
    )
    stop_strings: list[str] | None = field(
        default=None, metadata={"help": "Strings that end a completion; such a row counts as complete."}
    )
    max_seconds: float | None = field(
        default=None, metadata={"help": "Stop after this many seconds of training, at the end of a step."}
    )
    pack_updates: bool = field(
        default=True, metadata={"help": "Whether updates sort rows by length and leave out rows without gradient."}
    )
    max_tokens_per_pass: int | None = field(
        default=None, metadata={"help": "Most tokens of one forward and backward pass, padding included."}
    )

    def __post_init__(self) -> None:
        settle_activation_checkpointing(self)
        super().__post_init__()
        check_reference_keys(self)
        if self.loss_type not in LOSS_TYPES:
            raise ValueError(f"loss_type: expected one of {list(LOSS_TYPES)}, got {self.loss_type!r}")
        if self.max_tokens_per_pass is not None and self.max_tokens_per_pass < 1:
            raise ValueError(f"max_tokens_per_pass: expected at least 1 token, got {self.max_tokens_per_pass}")
        settle_stop_strings(self)
        if self.stop_strings and self.use_transformers_continuous_batching:
            raise ValueError(
                "stop_strings: not supported with use_transformers_continuous_batching; set it to false or use_vllm"
            )


# TRL's loss types and how each averages.
_REDUCTIONS = {
    "grpo": "sequence_mean",
    "bnpo": "token_mean",
    "dr_grpo": "constant",
    "dapo": "batch_tokens",
    "cispo": "batch_tokens",
    "sapo": "sequence_mean",
    "luspo": "sequence_sum",
    "vespo": "batch_tokens",
}
LOSS_TYPES = tuple(_REDUCTIONS)


class ReasoningGRPOTrainer(
    PackedUpdate,
    PolicyLoss,
    RewardGates,
    LengthRewards,
    RewardWatch,
    IterationSamples,
    RenewableReference,
    PromptSampling,
    QuantizedBase,
    LateRows,
    ResumableRollouts,
    StopStrings,
    AdapterOnlySaving,
    GRPOTrainer,
):
    """
    [`~trl.GRPOTrainer`] that wastes no pass in its updates, resumes exactly, knows stop strings and saves the trained
    adapter alone.

    The objectives and their numbers are TRL's. A method with another objective is a subclass with its own
    `policy_loss` and `reduction`. Takes the parent's arguments.

    Example:

    ```python
    from trl_reasoning import ReasoningGRPOConfig, ReasoningGRPOTrainer
    from trl_reasoning.builtin import make_chain_dataset, resolve_model
    from trl_reasoning.rewards import REWARDS

    trainer = ReasoningGRPOTrainer(
        model=resolve_model("builtin:tiny"),
        args=ReasoningGRPOConfig(output_dir="out", max_steps=10, use_cpu=True, bf16=False),
        reward_funcs=[REWARDS["accuracy"]()],
        train_dataset=make_chain_dataset(size=512),
    )
    trainer.train()
    ```
    """

    args: ReasoningGRPOConfig

    _tag_names = ["trl", "grpo", "trl-reasoning"]

    @property
    def reduction(self) -> str:
        return _REDUCTIONS[self.loss_type]

    @property
    def applies_sampler_correction(self) -> bool:
        return self.loss_type != "vespo"

    def policy_loss(self, tokens: PolicyTokens) -> LossOutput:
        args = self.args
        if self.loss_type == "cispo":
            return cispo_loss(tokens, epsilon_high=self.epsilon_high)
        if self.loss_type == "sapo":
            return sapo_loss(
                tokens, temperature_pos=args.sapo_temperature_pos, temperature_neg=args.sapo_temperature_neg
            )
        if self.loss_type == "vespo":
            return vespo_loss(
                tokens,
                k_pos=args.vespo_k_pos,
                lambda_pos=args.vespo_lambda_pos,
                k_neg=args.vespo_k_neg,
                lambda_neg=args.vespo_lambda_neg,
            )
        return clipped_loss(tokens, epsilon_low=self.epsilon_low, epsilon_high=self.epsilon_high, delta=args.delta)
