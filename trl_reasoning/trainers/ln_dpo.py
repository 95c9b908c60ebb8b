"""`ln_dpo`: DPO with log-ratios that are averages over a reply's tokens, the preference tuning of Tulu 3."""

from dataclasses import dataclass, field

import torch

from ..losses import PreferencePairs, per_token
from ._fixed_keys import check_fixed_keys
from .dpo import ReasoningDPOConfig, ReasoningDPOTrainer


_FIXED = {
    "loss_type": (["sigmoid_norm"], "it is DPO's loss with log-ratios averaged over a reply's tokens"),
    "loss_weights": (None, "there is one loss"),
    "ld_alpha": (None, "the average already takes the length out"),
    "f_divergence_type": ("reverse_kl", "the reward is a log-ratio"),
    "use_weighting": (False, "all pairs weigh the same"),
}


@dataclass
class LNDPOConfig(ReasoningDPOConfig):
    r"""
    Length-normalised DPO of Tulu 3 ([paper](https://huggingface.co/papers/2411.15124), Section 5): $-\log\sigma(z)$
    with

    $$z = \beta\left[\frac{\log\pi(y_w|x) - \log\pi_{\mathrm{ref}}(y_w|x)}{|y_w|} - \frac{\log\pi(y_l|x) -
    \log\pi_{\mathrm{ref}}(y_l|x)}{|y_l|}\right]$$

    Log-ratios per token are small, hence a `beta` of 5, some fifty times DPO's. The other defaults are the paper's for
    8B as well: `learning_rate` 5e-7, a linear schedule with a warm-up of a tenth, `max_length` 2048, one epoch. The
    keys that make the method are set, and a value that contradicts them is an error.

    Args:
        beta (`float`, *optional*, defaults to `5.0`):
            Strength of the pull towards the reference, per token.
    """

    loss_type: list[str] = field(
        default_factory=lambda: ["sigmoid_norm"], metadata={"help": "Fixed to `sigmoid_norm` by the method."}
    )
    beta: float = field(default=5.0, metadata={"help": "Strength of the pull towards the reference, per token."})
    learning_rate: float = field(default=5e-7, metadata={"help": "The initial learning rate."})
    warmup_steps: float = field(default=0.1, metadata={"help": "Steps of warm-up, or their share if below 1."})
    max_length: int | None = field(default=2048, metadata={"help": "Most tokens of a prompt and its reply."})
    num_train_epochs: float = field(default=1.0, metadata={"help": "Passes over the data."})

    def _check_loss(self) -> None:
        check_fixed_keys(self, "ln_dpo", _FIXED, otherwise=", or use `method: dpo`")


class LNDPOTrainer(ReasoningDPOTrainer):
    r"""
    [`ReasoningDPOTrainer`] with TRL's loss `sigmoid_norm`, whose rewards are logged as the loss sees them.

    `rewards/chosen` and `rewards/rejected` are $\beta$ times the log-ratio per token; TRL logs $\beta$ times that of
    the whole reply, which has nothing to do with this loss. `rewards/margins` is $z$ and `rewards/accuracies` the
    share of pairs with $z > 0$.

    Example:

    ```python
    from trl_reasoning import LNDPOConfig, LNDPOTrainer, resolve_model
    from trl_reasoning.builtin import make_chain_pairs_dataset

    trainer = LNDPOTrainer(
        model=resolve_model("builtin:tiny"),
        args=LNDPOConfig(output_dir="out", max_steps=10, use_cpu=True, bf16=False),
        train_dataset=make_chain_pairs_dataset(size=64),
    )
    trainer.train()
    ```
    """

    _tag_names = ["trl", "dpo", "ln-dpo", "trl-reasoning"]

    @property
    def collapse_advice(self) -> str:
        return "raise beta or lower learning_rate"

    def pair_rewards(self, pairs: PreferencePairs) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = per_token(pairs.chosen_logps - pairs.ref_chosen_logps, pairs.chosen_lengths)
        rejected = per_token(pairs.rejected_logps - pairs.ref_rejected_logps, pairs.rejected_lengths)
        return self.beta * chosen, self.beta * rejected
