"""Objectives on pairs of replies, from the log-probs of whole replies: DPO, length-normalised DPO, SimPO."""

from dataclasses import dataclass

import torch
from torch.nn.functional import logsigmoid, relu


SIMPO_LOSS_TYPES = ("sigmoid", "hinge")


@dataclass
class PreferencePairs:
    """
    What a preference objective gets to see: N pairs of one forward pass.

    Args:
        chosen_logps (`torch.Tensor`):
            (N,) log-probability of the preferred reply, in nats, summed over its tokens, with gradient.
        rejected_logps (`torch.Tensor`):
            (N,) the same for the other reply.
        chosen_lengths (`torch.Tensor`):
            (N,) tokens of the preferred reply that have a log-probability.
        rejected_lengths (`torch.Tensor`):
            (N,) the same for the other reply.
        ref_chosen_logps (`torch.Tensor`):
            (N,) log-probability of the preferred reply under the reference, summed over its tokens; 0 where a method
            has no reference.
        ref_rejected_logps (`torch.Tensor`):
            (N,) the same for the other reply.
    """

    chosen_logps: torch.Tensor
    rejected_logps: torch.Tensor
    chosen_lengths: torch.Tensor
    rejected_lengths: torch.Tensor
    ref_chosen_logps: torch.Tensor
    ref_rejected_logps: torch.Tensor


def per_token(sums: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """
    Sums over a reply's tokens to averages; 0 for a reply without tokens, whose sum is 0.

    Args:
        sums (`torch.Tensor`):
            (N,).
        lengths (`torch.Tensor`):
            (N,) tokens, 0 or more.

    Returns:
        `torch.Tensor` of shape (N,).

    Example:

    ```python
    >>> per_token(torch.tensor([-20.0, 0.0]), torch.tensor([10, 0])).tolist()
    [-2.0, 0.0]

    ```
    """
    return sums / lengths.clamp(min=1)


def dpo_loss(
    chosen_logps: torch.Tensor,
    rejected_logps: torch.Tensor,
    ref_chosen_logps: torch.Tensor,
    ref_rejected_logps: torch.Tensor,
    beta: float = 0.1,
) -> torch.Tensor:
    r"""
    DPO's loss for each pair, $-\log\sigma(z)$ with

    $$z = \beta\left[\left(\log\pi(y_w|x) - \log\pi_{\mathrm{ref}}(y_w|x)\right) - \left(\log\pi(y_l|x) -
    \log\pi_{\mathrm{ref}}(y_l|x)\right)\right].$$

    Its gradient is $-\beta\,\sigma(-z)\,(\nabla\log\pi(y_w|x) - \nabla\log\pi(y_l|x))$.

    Args:
        chosen_logps (`torch.Tensor`):
            (N,) $\log\pi(y_w|x)$ of the preferred reply, in nats, summed over its tokens.
        rejected_logps (`torch.Tensor`):
            (N,) $\log\pi(y_l|x)$.
        ref_chosen_logps (`torch.Tensor`):
            (N,) $\log\pi_{\mathrm{ref}}(y_w|x)$.
        ref_rejected_logps (`torch.Tensor`):
            (N,) $\log\pi_{\mathrm{ref}}(y_l|x)$.
        beta (`float`, *optional*, defaults to `0.1`):
            Strength of the pull towards the reference, above 0.

    Returns:
        `torch.Tensor` of shape (N,).

    Reference: DPO (https://huggingface.co/papers/2305.18290), Equation 7.

    Example:

    ```python
    >>> logps = [torch.tensor([value]) for value in (-40.0, -60.0, -42.0, -57.0)]
    >>> round(dpo_loss(*logps, beta=0.1).item(), 6)
    0.474077

    ```
    """
    return -logsigmoid(beta * ((chosen_logps - ref_chosen_logps) - (rejected_logps - ref_rejected_logps)))


def ln_dpo_loss(
    chosen_logps: torch.Tensor,
    rejected_logps: torch.Tensor,
    ref_chosen_logps: torch.Tensor,
    ref_rejected_logps: torch.Tensor,
    chosen_lengths: torch.Tensor,
    rejected_lengths: torch.Tensor,
    beta: float = 5.0,
) -> torch.Tensor:
    r"""
    Length-normalised DPO's loss for each pair, $-\log\sigma(z)$ with

    $$z = \beta\left[\frac{\log\pi(y_w|x) - \log\pi_{\mathrm{ref}}(y_w|x)}{|y_w|} - \frac{\log\pi(y_l|x) -
    \log\pi_{\mathrm{ref}}(y_l|x)}{|y_l|}\right].$$

    The log-ratios are averages over a reply's tokens, so that beta is some fifty times DPO's.

    Args:
        chosen_logps (`torch.Tensor`):
            (N,) $\log\pi(y_w|x)$ of the preferred reply, in nats, summed over its tokens.
        rejected_logps (`torch.Tensor`):
            (N,) $\log\pi(y_l|x)$.
        ref_chosen_logps (`torch.Tensor`):
            (N,) $\log\pi_{\mathrm{ref}}(y_w|x)$.
        ref_rejected_logps (`torch.Tensor`):
            (N,) $\log\pi_{\mathrm{ref}}(y_l|x)$.
        chosen_lengths (`torch.Tensor`):
            (N,) $|y_w|$, tokens; a reply without tokens has a log-ratio of 0.
        rejected_lengths (`torch.Tensor`):
            (N,) $|y_l|$.
        beta (`float`, *optional*, defaults to `5.0`):
            Strength of the pull towards the reference, above 0.

    Returns:
        `torch.Tensor` of shape (N,).

    Reference: Tulu 3 (https://huggingface.co/papers/2411.15124), Section 5.

    Example:

    ```python
    >>> logps = [torch.tensor([value]) for value in (-40.0, -60.0, -42.0, -57.0)]
    >>> lengths = [torch.tensor([20]), torch.tensor([30])]
    >>> round(ln_dpo_loss(*logps, *lengths, beta=5.0).item(), 6)
    0.313262

    ```
    """
    chosen = per_token(chosen_logps - ref_chosen_logps, chosen_lengths)
    rejected = per_token(rejected_logps - ref_rejected_logps, rejected_lengths)
    return -logsigmoid(beta * (chosen - rejected))


def simpo_loss(
    chosen_logps: torch.Tensor,
    rejected_logps: torch.Tensor,
    chosen_lengths: torch.Tensor,
    rejected_lengths: torch.Tensor,
    beta: float = 2.0,
    gamma: float = 1.0,
    *,
    loss_type: str = "sigmoid",
    label_smoothing: float = 0.0,
) -> torch.Tensor:
    r"""
    SimPO's loss for each pair, $-\log\sigma(z)$ with

    $$z = \beta\left[\frac{\log\pi(y_w|x)}{|y_w|} - \frac{\log\pi(y_l|x)}{|y_l|}\right] - \gamma.$$

    There is no reference. `hinge` is $\max(0, 1 - z)$.

    Args:
        chosen_logps (`torch.Tensor`):
            (N,) $\log\pi(y_w|x)$ of the preferred reply, in nats, summed over its tokens.
        rejected_logps (`torch.Tensor`):
            (N,) $\log\pi(y_l|x)$.
        chosen_lengths (`torch.Tensor`):
            (N,) $|y_w|$, tokens; a reply without tokens counts as 0 nats per token.
        rejected_lengths (`torch.Tensor`):
            (N,) $|y_l|$.
        beta (`float`, *optional*, defaults to `2.0`):
            Scale of the reward $\frac{\beta}{|y|}\log\pi(y|x)$, above 0.
        gamma (`float`, *optional*, defaults to `1.0`):
            Margin $\gamma$ by which the preferred reply's reward is to lead: $\gamma$ itself, not the ratio
            $\gamma/\beta$.
        loss_type (`str`, *optional*, defaults to `"sigmoid"`):
            `"sigmoid"` or `"hinge"`.
        label_smoothing (`float`, *optional*, defaults to `0.0`):
            Assumed share $\epsilon$ of pairs that are the wrong way round, in [0, 0.5):
            $-(1 - \epsilon)\log\sigma(z) - \epsilon\log\sigma(-z)$. Only for `"sigmoid"`.

    Returns:
        `torch.Tensor` of shape (N,).

    Raises:
        ValueError: An unknown loss type.

    Reference: SimPO (https://huggingface.co/papers/2405.14734), Equation 6.

    Example:

    ```python
    >>> chosen, rejected = torch.tensor([-15.0]), torch.tensor([-36.0])
    >>> round(simpo_loss(chosen, rejected, torch.tensor([10]), torch.tensor([12]), beta=2.0, gamma=1.0).item(), 6)
    0.126928

    ```
    """
    if loss_type not in SIMPO_LOSS_TYPES:
        raise ValueError(f"loss_type: expected one of {list(SIMPO_LOSS_TYPES)}, got {loss_type!r}")
    lead = per_token(chosen_logps, chosen_lengths) - per_token(rejected_logps, rejected_lengths)
    z = beta * lead - gamma  # (N,)
    if loss_type == "hinge":
        return relu(1 - z)
    return -(1 - label_smoothing) * logsigmoid(z) - label_smoothing * logsigmoid(-z)
