"""`simpo`: a preference loss on average log-probs with a margin, and without a reference model."""

import textwrap
from dataclasses import dataclass, field
from typing import Any

import torch

from ..losses import PreferencePairs, per_token, simpo_loss
from ..losses.preference import SIMPO_LOSS_TYPES
from ._fixed_keys import check_fixed_keys
from ._preference import PreferenceConfig
from ._reference_free import ReferenceFreeTrainer


_NO_REFERENCE = "there is no reference"
_FIXED = {
    "loss_weights": (None, "see sft_weight"),
    "precompute_ref_log_probs": (False, _NO_REFERENCE),
    "sync_ref_model": (False, _NO_REFERENCE),
    "ld_alpha": (None, "the average already takes the length out"),
    "f_divergence_type": ("reverse_kl", _NO_REFERENCE),
    "use_weighting": (False, "all pairs weigh the same"),
}
_DEFAULT_RATIO = 0.5


@dataclass
class SimPOConfig(PreferenceConfig):
    r"""
    SimPO ([paper](https://huggingface.co/papers/2405.14734), Equation 6): $-\log\sigma(z)$ with

    $$z = \beta\left[\frac{\log\pi(y_w|x)}{|y_w|} - \frac{\log\pi(y_l|x)}{|y_l|}\right] - \gamma$$

    The margin can be given as `gamma` ($\gamma$, as in the paper's text and formula) or as `gamma_beta_ratio`
    ($\gamma/\beta$, as in the paper's published training files and in the table of settings beside them), not as both.
    Published settings: Llama-3-Base $\beta$ 2, $\gamma$ 1 (ratio 0.5); Mistral-Base 2, 1.6 (0.8); Mistral-Instruct
    2.5, 0.25 (0.1); Llama-3-Instruct 2.5, 1.375 (0.55; the text rounds to 1.4), v0.2 10, 3 (0.3).

    The keys that make the method are set, and a value that contradicts them is an error. The learning rate matters
    most: 3e-7 to 1e-6 in the paper, for full fine-tuning.

    Args:
        beta (`float`, *optional*, defaults to `2.0`):
            Scale of the reward, $\beta$ times the log-prob per token.
        gamma (`float`, *optional*):
            Margin by which the preferred reply's reward is to lead.
        gamma_beta_ratio (`float`, *optional*):
            The margin divided by beta, in nats per token. With neither, it is 0.5, where the paper's advice starts.
        loss_type (`str`, *optional*, defaults to `"sigmoid"`):
            `"sigmoid"`, or `"hinge"`: $\max(0, 1 - z)$.
        label_smoothing (`float`, *optional*, defaults to `0.0`):
            Assumed share of pairs that are the wrong way round, in [0, 0.5).
        sft_weight (`float`, *optional*, defaults to `0.0`):
            Weight of a likelihood term, the mean over pairs of $-\log\pi(y_w|x)/|y_w|$. In the paper it helps GSM8K
            and hurts chat. Means are over pairs, so that a batch split for accumulation has the same gradient.
    """

    loss_type: list[str] = field(
        default_factory=lambda: ["sigmoid"], metadata={"help": "`sigmoid` or `hinge`.", "choices": SIMPO_LOSS_TYPES}
    )
    beta: float = field(default=2.0, metadata={"help": "Scale of the reward, the log-prob per token."})
    gamma: float | None = field(default=None, metadata={"help": "Margin; or give `gamma_beta_ratio`."})
    gamma_beta_ratio: float | None = field(
        default=None, metadata={"help": f"Margin divided by beta. With neither, {_DEFAULT_RATIO}."}
    )
    sft_weight: float = field(default=0.0, metadata={"help": "Weight of the preferred replies' likelihood."})
    learning_rate: float = field(default=5e-7, metadata={"help": "The initial learning rate."})
    lr_scheduler_type: Any = field(default="cosine", metadata={"help": "The schedule of the learning rate."})
    warmup_steps: float = field(default=0.1, metadata={"help": "Steps of warm-up, or their share if below 1."})
    max_length: int | None = field(default=2048, metadata={"help": "Most tokens of a prompt and its reply."})
    num_train_epochs: float = field(default=1.0, metadata={"help": "Passes over the data."})

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fixed_keys(self, "simpo", _FIXED, otherwise=", or use `method: dpo`")
        if len(self.loss_type) != 1 or self.loss_type[0] not in SIMPO_LOSS_TYPES:
            raise ValueError(f"loss_type: simpo has one of {list(SIMPO_LOSS_TYPES)}, got {self.loss_type}")
        if self.gamma is not None and self.gamma_beta_ratio is not None:
            raise ValueError(
                f"gamma: it is beta x gamma_beta_ratio, and both were given; remove it (the ratio gives "
                f"{self.beta * self.gamma_beta_ratio:g}) or gamma_beta_ratio (it would be {self.gamma / self.beta:g})"
            )
        for key in ("gamma", "gamma_beta_ratio", "sft_weight"):
            value = getattr(self, key)
            if value is not None and value < 0:
                raise ValueError(f"{key}: expected 0 or more, got {value}")
        if not 0 <= self.label_smoothing < 0.5:
            raise ValueError(f"label_smoothing: expected a share in [0, 0.5), got {self.label_smoothing}")
        if self.label_smoothing and self.loss_type == ["hinge"]:
            raise ValueError("label_smoothing: the hinge loss has none; set it to 0 or loss_type to sigmoid")

    @property
    def margin(self) -> float:
        """The margin gamma, whichever way it was given."""
        if self.gamma is not None:
            return self.gamma
        return self.beta * (_DEFAULT_RATIO if self.gamma_beta_ratio is None else self.gamma_beta_ratio)


class SimPOTrainer(ReferenceFreeTrainer):
    r"""
    [`~trl.DPOTrainer`] with SimPO's loss: no reference model is loaded, copied or run.

    `rewards/chosen` and `rewards/rejected` are $\beta\log\pi(y|x)/|y|$, `rewards/margins` their difference (before
    $\gamma$) and `rewards/accuracies` the share of pairs where it is positive.

    Args:
        model (`str` or [`~transformers.PreTrainedModel`] or [`~peft.PeftModel`]):
            The policy.
        args ([`SimPOConfig`], *optional*):
            The configuration.
        kwargs:
            As for [`~trl.DPOTrainer`], without `ref_model`.

    Example:

    ```python
    from trl_reasoning import SimPOConfig, SimPOTrainer, resolve_model
    from trl_reasoning.builtin import make_chain_pairs_dataset

    trainer = SimPOTrainer(
        model=resolve_model("builtin:tiny"),
        args=SimPOConfig(output_dir="out", max_steps=10, use_cpu=True, bf16=False),
        train_dataset=make_chain_pairs_dataset(size=64),
    )
    trainer.train()
    ```
    """

    _tag_names = ["trl", "simpo", "trl-reasoning"]
    _name = "SimPO"
    _paper = {
        "title": "SimPO: Simple Preference Optimization with a Reference-Free Reward",
        "id": "2405.14734",
        "citation": textwrap.dedent("""\
            @inproceedings{meng2024simpo,
                title        = {{SimPO: Simple Preference Optimization with a Reference-Free Reward}},
                author       = {Yu Meng and Mengzhou Xia and Danqi Chen},
                year         = 2024,
                booktitle    = {Advances in Neural Information Processing Systems 37},
                eprint       = {arXiv:2405.14734},
            }"""),
    }

    def __init__(self, model: Any, args: SimPOConfig | None = None, **kwargs: Any):
        super().__init__(model, args=SimPOConfig(output_dir="outputs/simpo") if args is None else args, **kwargs)

    @property
    def collapse_advice(self) -> str:
        return "raise beta or sft_weight, or lower learning_rate"

    def preference_loss(self, pairs: PreferencePairs) -> torch.Tensor:
        args: Any = self.args
        losses = simpo_loss(
            pairs.chosen_logps,
            pairs.rejected_logps,
            pairs.chosen_lengths,
            pairs.rejected_lengths,
            args.beta,
            args.margin,
            loss_type=args.loss_type[0],
            label_smoothing=args.label_smoothing,
        )  # (N,)
        if args.sft_weight:
            losses = losses - args.sft_weight * per_token(pairs.chosen_logps, pairs.chosen_lengths)
        return losses

    def pair_rewards(self, pairs: PreferencePairs) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = self.beta * per_token(pairs.chosen_logps, pairs.chosen_lengths)
        return chosen, self.beta * per_token(pairs.rejected_logps, pairs.rejected_lengths)
