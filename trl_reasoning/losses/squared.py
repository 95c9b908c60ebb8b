"""Kimi k1.5's squared loss on whole completions, and the baseline of its advantages."""

import math

import torch


BASELINES = ("mean", "log_mean_exp")


def kimi_baseline(rewards: torch.Tensor, tau: float, kind: str = "mean") -> torch.Tensor:
    r"""
    What is taken from the rewards of one problem's completions to get their advantages.

    The optimum of $\mathbb{E}[r] - \tau\,\mathrm{KL}(\pi\|\pi_i)$ has $r - \tau\log Z = \tau\log(\pi^*/\pi_i)$ for
    every completion. `log_mean_exp` estimates $\tau\log Z$ from the G samples,

    $$\tau\log\frac{1}{G}\sum_j e^{r_j/\tau},$$

    and `mean`, which the paper uses in practice, is its limit for large $\tau$; for small $\tau$ it goes to the
    greatest reward.

    Args:
        rewards (`torch.Tensor`):
            (P, G) rewards of G completions of each of P problems; NaN for completions that cannot be scored, which
            stay out of the baseline.
        tau (`float`):
            Weight of the pull towards the iteration's policy, above 0.
        kind (`str`, *optional*, defaults to `"mean"`):
            `"mean"` or `"log_mean_exp"`.

    Returns:
        `torch.Tensor` of shape (P, 1); NaN where no completion of a problem could be scored.

    Raises:
        ValueError: An unknown kind.

    Reference: Kimi k1.5 (https://huggingface.co/papers/2501.12599), section 2.3.2.

    Example:

    ```python
    >>> rewards = torch.tensor([[1.0, 0.0, 0.0, 1.0]])
    >>> [round(kimi_baseline(rewards, 0.5, kind).item(), 4) for kind in BASELINES]
    [0.5, 0.7169]

    ```
    """
    if kind == "mean":
        return rewards.nanmean(dim=1, keepdim=True)
    if kind != "log_mean_exp":
        raise ValueError(f"baseline: expected one of {list(BASELINES)}, got {kind!r}")
    is_scored = ~rewards.isnan()  # (P, G)
    # The greatest reward comes out of the sum first, so that no exponential overflows however small tau is.
    greatest = rewards.nan_to_num(nan=-math.inf).amax(dim=1, keepdim=True)  # (P, 1)
    shares = torch.where(is_scored, ((rewards - greatest) / tau).exp(), 0.0)
    count = is_scored.sum(dim=1, keepdim=True)
    baseline = greatest + tau * (shares.sum(dim=1, keepdim=True) / count).log()
    return torch.where(count > 0, baseline, math.nan)


def kimi_loss(log_ratio_sum: torch.Tensor, advantages: torch.Tensor, tau: float) -> torch.Tensor:
    r"""
    $\frac{1}{2\tau}(A - \tau\rho)^2$ for each completion, with the log-ratio $\rho = \log\pi(y|x) - \log\pi_i(y|x)$ of
    the whole completion.

    Its gradient is $-(A - \tau\rho)\,\nabla\log\pi(y|x)$: the paper's squared loss divided by $2\tau$, so that the
    size of a step does not depend on $\tau$, which is the strength of the pull back to the iteration's policy alone.
    At the first update of an iteration $\rho = 0$, and the gradient is that of REINFORCE with a baseline.

    Args:
        log_ratio_sum (`torch.Tensor`):
            (N,) $\rho$, in nats, summed over a completion's tokens, with gradient.
        advantages (`torch.Tensor`):
            (N,) rewards minus their problem's baseline; NaN for completions that cannot be scored.
        tau (`float`):
            Above 0. The value holds the constant $A^2/(2\tau)$, which grows as tau falls; the gradient does not.

    Returns:
        `torch.Tensor` of shape (N,); 0 without a gradient where the advantage is NaN.

    Reference: Kimi k1.5 (https://huggingface.co/papers/2501.12599), section 2.3.2.

    Example:

    ```python
    >>> log_ratio = torch.tensor([0.2, -0.1], requires_grad=True)
    >>> loss = kimi_loss(log_ratio, torch.tensor([0.5, -0.5]), tau=0.5)
    >>> [round(value, 4) for value in loss.tolist()]
    [0.16, 0.2025]
    >>> loss.sum().backward()
    >>> [round(value, 4) for value in log_ratio.grad.tolist()]
    [-0.4, 0.45]

    ```
    """
    is_scored = ~advantages.isnan()
    # Both replaced before the arithmetic: a NaN behind torch.where would still reach the gradient.
    residual = torch.where(is_scored, advantages, 0.0) - tau * torch.where(is_scored, log_ratio_sum, 0.0)
    return residual**2 / (2 * tau)
