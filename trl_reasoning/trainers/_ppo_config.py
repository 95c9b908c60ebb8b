"""Settings of `ppo`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ._fixed_keys import check_fixed_keys
from .grpo import ReasoningGRPOConfig


VALUE_STARTS = ("reward", "policy", "shared")
# What makes the method; a recipe that says otherwise trains something else under this name.
_FIXED = {
    "loss_type": ("dapo", "the loss is a mean over the tokens of the whole optimizer step"),
    "scale_rewards": ("none", "there are no group statistics; `whiten_advantages` scales"),
    "beta": (0.0, "the KL term is part of the reward; its coefficient is `kl_coef`"),
    "importance_sampling_level": ("token", "the ratio is taken per token"),
    "top_entropy_quantile": (1.0, "every token takes part in the loss"),
    "delta": (None, "the ratio is clipped as in the paper"),
    "off_policy_mask_threshold": (None, "no sequence is masked out"),
    "sync_ref_model": (False, "the reference is where the run started"),
    "multi_objective_aggregation": ("sum_then_normalize", "rewards are not normalised by their spread"),
}


@dataclass
class PPOConfig(ReasoningGRPOConfig):
    r"""
    PPO ([paper](https://huggingface.co/papers/1707.06347)) with the reward of InstructGPT
    ([paper](https://huggingface.co/papers/2203.02155), Eq. 2) and generalised advantages
    ([paper](https://huggingface.co/papers/1506.02438)).

    $$\hat r_t = -\beta\left(\log\pi_{old}(y_t) - \log\pi_{ref}(y_t)\right) + \mathbb{1}[t=T]\,r, \qquad
    A_t = \sum_{l \ge 0} (\gamma\lambda)^l (\hat r_{t+l} + \gamma V_{t+l+1} - V_{t+l})$$

    $$L = -\min\left[\rho_t A_t,\ \mathrm{clip}(\rho_t, 1-\epsilon, 1+\epsilon) A_t\right] + \frac{c}{2}
    \max\left[(V_t-R_t)^2,\ (V^{clip}_t-R_t)^2\right] - \gamma_{ptx} \log\pi(x_{pretrain})$$

    averaged over the tokens of the optimizer step. A rollout is `per_device_train_batch_size * steps_per_generation`
    completions a process; it is gone through `num_iterations` times in minibatches of `per_device_train_batch_size *
    gradient_accumulation_steps`. The clip range is `epsilon`.

    Args:
        num_generations (`int`, *optional*, defaults to `1`):
            Completions of one prompt in a rollout. Nothing is compared within a group.
        num_iterations (`int`, *optional*, defaults to `4`):
            Epochs over a rollout (Tulu 3: 4, InstructGPT: 1).
        kl_coef (`float`, *optional*, defaults to `0.05`):
            $\beta$ of the KL penalty in the reward, by the log-ratio at rollout (InstructGPT: 0.02, Tulu 3: 0.05). 0
            needs no reference.
        gamma (`float`, *optional*, defaults to `1.0`):
            Discount.
        lam (`float`, *optional*, defaults to `0.95`):
            $\lambda$ of the generalised advantages.
        whiten_advantages (`bool`, *optional*, defaults to `True`):
            Whether advantages get mean 0 and standard deviation 1 over the rollout's tokens in all processes.
        cliprange_value (`float`, *optional*, defaults to `0.2`):
            How far a value may move from the rollout's in the value loss; null does not clip.
        vf_coef (`float`, *optional*, defaults to `0.1`):
            c, weight of the value loss.
        value_model (`str`, *optional*):
            What the value function starts from: `"reward"`, a copy of the reward model and its head; `"policy"`, a
            copy of the policy with a head of zeros; `"shared"`, no trunk of its own, only a head on the policy's
            hidden states, which costs no second forward pass. By default `"reward"` where there is a reward model,
            else `"policy"`. With LoRA the copies are adapters on the one base.
        value_learning_rate (`float`, *optional*):
            Learning rate of the value function; the policy's by default.
        reward_adapter (`str`, *optional*):
            A LoRA adapter for sequence classification on the policy's base, used as a further reward of weight 1 that
            needs no weights but its own. Only with LoRA.
        missing_eos_penalty (`float`, *optional*):
            Score that a completion without an end token gets in place of its reward (Tulu 3: -10).
        ptx_coef (`float`, *optional*, defaults to `0.0`):
            $\gamma_{ptx}$ of PPO-ptx: weight of the loss on pretraining text (InstructGPT: 27.8).
        ptx_batch_size (`int`, *optional*, defaults to `8`):
            Rows of pretraining text in an optimizer step, in all processes together.
        ptx_max_length (`int`, *optional*, defaults to `512`):
            Tokens of such a row; the rest is cut.
    """

    loss_type: str = field(default="dapo", metadata={"help": "Fixed to `dapo` by the method: a mean over tokens."})
    scale_rewards: str | bool = field(default="none", metadata={"help": "Fixed to `none` by the method."})
    beta: float = field(default=0.0, metadata={"help": "Fixed to 0 by the method; see kl_coef."})
    num_generations: int | None = field(default=1, metadata={"help": "Completions of one prompt in a rollout."})
    num_iterations: int = field(default=4, metadata={"help": "Epochs over a rollout (4 in Tulu 3)."})
    kl_coef: float = field(default=0.05, metadata={"help": "KL coefficient in the reward (0.05 in Tulu 3)."})
    gamma: float = field(default=1.0, metadata={"help": "Discount of later rewards."})
    lam: float = field(default=0.95, metadata={"help": "Lambda of the generalised advantages."})
    whiten_advantages: bool = field(default=True, metadata={"help": "Whether advantages are whitened over a rollout."})
    cliprange_value: float | None = field(default=0.2, metadata={"help": "Clip range of the value; null: none."})
    vf_coef: float = field(default=0.1, metadata={"help": "Weight of the value loss (0.1 in Tulu 3)."})
    value_model: str | None = field(
        default=None, metadata={"help": "What the value function starts from.", "choices": VALUE_STARTS}
    )
    value_learning_rate: float | None = field(
        default=None, metadata={"help": "Learning rate of the value function; the policy's when not given."}
    )
    reward_adapter: str | None = field(
        default=None, metadata={"help": "LoRA adapter of a reward model on the policy's base."}
    )
    missing_eos_penalty: float | None = field(
        default=None, metadata={"help": "Score of a completion without an end token (-10 in Tulu 3)."}
    )
    ptx_coef: float = field(default=0.0, metadata={"help": "Weight of the pretraining loss (27.8 in InstructGPT)."})
    ptx_batch_size: int = field(default=8, metadata={"help": "Rows of pretraining text in an optimizer step."})
    ptx_max_length: int = field(default=512, metadata={"help": "Most tokens of such a row."})

    def __post_init__(self) -> None:
        self._check_ranges()
        with self._allowing_single_generations():
            super().__post_init__()
        check_fixed_keys(self, "ppo", _FIXED)
        if self.ptx_coef > 0 and self.temperature != 1.0:
            raise ValueError(
                f"ptx_coef: the pretraining loss is that of the policy itself, which is sampled at temperature 1; got "
                f"temperature {self.temperature}"
            )
        if self.missing_eos_penalty is not None and self.mask_truncated_completions:
            raise ValueError(
                "missing_eos_penalty: a completion without an end token gets this score, and "
                "`mask_truncated_completions` leaves it out; keep one of the two"
            )
        if self.ddp_find_unused_parameters:
            raise ValueError(
                "ddp_find_unused_parameters: ppo trains policy and value in one backward pass and uses every "
                "parameter in it; remove the key"
            )
        self.ddp_find_unused_parameters = False  # transformers' default looks at the policy's output alone
        kwargs = self.gradient_checkpointing_kwargs
        if isinstance(kwargs, dict) and kwargs.get("use_reentrant"):
            raise ValueError(
                "activation_checkpointing_kwargs: ppo needs use_reentrant false, since a recomputed layer has to use "
                "the adapter that it was first passed with"
            )

    def _check_ranges(self) -> None:
        for key in ("gamma", "lam"):
            if not 0.0 <= getattr(self, key) <= 1.0:
                raise ValueError(f"{key}: expected a number in [0, 1], got {getattr(self, key)}")
        for key in ("kl_coef", "vf_coef", "ptx_coef"):
            if getattr(self, key) < 0.0:
                raise ValueError(f"{key}: expected at least 0, got {getattr(self, key)}")
        for key in ("cliprange_value", "value_learning_rate"):
            value = getattr(self, key)
            if value is not None and value <= 0.0:
                raise ValueError(f"{key}: expected more than 0, or null, got {value}")
        for key, least in (("num_generations", 1), ("ptx_batch_size", 1), ("ptx_max_length", 2)):
            value = getattr(self, key)
            if value is None or value < least:
                raise ValueError(f"{key}: expected at least {least}, got {value}")
        if self.missing_eos_penalty is not None and self.missing_eos_penalty > 0.0:
            raise ValueError(f"missing_eos_penalty: expected at most 0, got {self.missing_eos_penalty}")
        if self.value_model is not None and self.value_model not in VALUE_STARTS:
            raise ValueError(f"value_model: expected one of {list(VALUE_STARTS)}, got {self.value_model!r}")

    @contextmanager
    def _allowing_single_generations(self) -> Iterator[None]:
        """
        Let a group size of 1 through the parent's check, which wants something to compare.

        The check sees the rows that one process generates at once, which divides the whole batch whatever it is.
        """
        asked = self.num_generations
        if asked == 1:
            steps = self.steps_per_generation or self.gradient_accumulation_steps
            rows = self.generation_batch_size or self.per_device_train_batch_size * steps
            if rows < 2:
                raise ValueError(
                    "per_device_train_batch_size: a rollout of one completion has no spread to whiten; set it, "
                    "`gradient_accumulation_steps` or `steps_per_generation` to 2 or more"
                )
            self.num_generations = rows
            self.num_generations_eval = self.num_generations_eval or asked
        yield
        self.num_generations = asked
