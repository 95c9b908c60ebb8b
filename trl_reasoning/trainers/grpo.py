"""`grpo`: Group Relative Policy Optimization in the form of the DeepSeekMath paper, from TRL's config."""

from dataclasses import dataclass, field

from trl import GRPOConfig, GRPOTrainer

from ._checkpointing import settle_activation_checkpointing
from ._quantized import QuantizedBase
from ._rollout_state import ResumableRollouts
from ._saving import AdapterOnlySaving
from ._stop_strings import StopStrings


@dataclass
class ReasoningGRPOConfig(GRPOConfig):
    r"""
    [`~trl.GRPOConfig`] with the defaults of DeepSeekMath ([paper](https://huggingface.co/papers/2402.03300), Eq. 3).

    $$\frac{1}{G}\sum_i \frac{1}{|y_i|}\sum_t \left\{\min\left[\rho_{i,t} A_i,\ \mathrm{clip}(\rho_{i,t}, 1-\epsilon,
    1+\epsilon) A_i\right] - \beta\, k3_{i,t}\right\}, \quad A_i = \frac{r_i - \mathrm{mean}(r)}{\mathrm{std}(r)}$$

    Differences from TRL's defaults: `loss_type="grpo"` (TRL: `"dapo"`), `beta=0.04` (0.0), the plain k3 estimate
    (`use_bias_correction_kl=False`) and `disable_dropout=True`, so that the policy and its reference agree at step 0
    with a LoRA adapter too. The standard deviation is the sample one, as in TRL.

    Args:
        stop_strings (`list[str]`, *optional*):
            Strings that end a completion, for instance `["</answer>"]` for R1-Zero's template. They stay in the
            completion, and the row counts as complete.
        max_seconds (`float`, *optional*):
            Stop after this many seconds of training, at the end of a step; a checkpoint is saved.
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
    stop_strings: list[str] | None = field(
        default=None, metadata={"help": "Strings that end a completion; such a row counts as complete."}
    )
    max_seconds: float | None = field(
        default=None, metadata={"help": "Stop after this many seconds of training, at the end of a step."}
    )

    def __post_init__(self) -> None:
        settle_activation_checkpointing(self)
        super().__post_init__()
        if self.loss_type not in LOSS_TYPES:
            raise ValueError(f"loss_type: expected one of {list(LOSS_TYPES)}, got {self.loss_type!r}")
        if self.stop_strings is not None and any(not string for string in self.stop_strings):
            raise ValueError(f"stop_strings: expected non-empty strings, got {self.stop_strings}")
        if self.stop_strings and self.use_transformers_continuous_batching:
            raise ValueError(
                "stop_strings: not supported with use_transformers_continuous_batching; set it to false or use_vllm"
            )
        if self.stop_strings and self.use_vllm:
            kwargs = self.generation_kwargs if isinstance(self.generation_kwargs, dict) else {}
            self.generation_kwargs = {**kwargs, "stop": self.stop_strings, "include_stop_str_in_output": True}


LOSS_TYPES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo")


class ReasoningGRPOTrainer(QuantizedBase, ResumableRollouts, StopStrings, AdapterOnlySaving, GRPOTrainer):
    """
    [`~trl.GRPOTrainer`] that resumes exactly, knows stop strings and saves the trained adapter alone.

    The objective is TRL's own; only what surrounds it is added. Takes the parent's arguments.

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

    _tag_names = ["trl", "grpo", "trl-reasoning"]
