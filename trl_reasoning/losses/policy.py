"""Objectives of the policy gradient family, token by token, before any average."""

import math

import torch

from .tokens import LossOutput, PolicyTokens


def clipped_loss(
    tokens: PolicyTokens, *, epsilon_low: float, epsilon_high: float, delta: float | None = None
) -> LossOutput:
    r"""
    $-\min[\rho A,\ \mathrm{clip}(\rho, 1-\epsilon_{low}, 1+\epsilon_{high}) A]$ with the ratio $\rho = \pi/\pi_{old}$.

    PPO's clipped objective ([paper](https://huggingface.co/papers/1707.06347), Eq. 7), used by GRPO, BNPO, Dr. GRPO,
    DAPO and LUSPO, which differ in how they average.

    Args:
        tokens ([`PolicyTokens`]):
            The rows; a ratio of shape (N, 1) clips whole sequences.
        epsilon_low, epsilon_high (`float`):
            Clip range below and above 1.
        delta (`float`, *optional*):
            Upper bound of the unclipped ratio (two-sided clipping, [paper](https://huggingface.co/papers/2505.07291)).

    Returns:
        [`LossOutput`] with `clip_ratio/*` flags.
    """
    ratio = torch.exp(tokens.log_weights)  # (N, T) or (N, 1)
    clipped = torch.clamp(ratio, 1 - epsilon_low, 1 + epsilon_high)
    if delta is not None:
        ratio = torch.clamp(ratio, max=delta)
    loss = -torch.min(ratio * tokens.advantages, clipped * tokens.advantages)
    low = ((ratio < 1 - epsilon_low) & (tokens.advantages < 0)).float()
    high = ((ratio > 1 + epsilon_high) & (tokens.advantages > 0)).float()
    return LossOutput(
        loss=loss,
        flags={
            "clip_ratio/low_mean": low,
            "clip_ratio/high_mean": high,
            "clip_ratio/region_mean": torch.maximum(low, high),
        },
        minima={"clip_ratio/low_min": low},
        maxima={"clip_ratio/high_max": high},
    )


def cispo_loss(tokens: PolicyTokens, *, epsilon_high: float) -> LossOutput:
    r"""
    $-\mathrm{sg}[\min(\rho, \epsilon_{high})]\, A \log\pi$: the clipped ratio is a weight without gradient.

    MiniMax-M1 ([paper](https://huggingface.co/papers/2506.13585), Eq. 4); `epsilon_high` bounds the ratio itself.
    """
    ratio = torch.exp(tokens.log_weights)
    loss = -torch.clamp(ratio, max=epsilon_high).detach() * tokens.advantages * tokens.per_token_logps
    is_clipped = ((ratio > epsilon_high) & (tokens.advantages > 0)).float()
    return LossOutput(loss=loss, flags={"cispo_clip_ratio": is_clipped})


def sapo_loss(tokens: PolicyTokens, *, temperature_pos: float, temperature_neg: float) -> LossOutput:
    r"""
    $-\sigma(\tau(\rho - 1))\, \frac{4}{\tau}\, A$: a soft gate in place of the clip.

    SAPO ([paper](https://huggingface.co/papers/2511.20347)); one temperature for positive advantages, one for others.
    """
    ratio = torch.exp(tokens.log_weights)
    temperatures = torch.where(tokens.advantages > 0, temperature_pos, temperature_neg)
    return LossOutput(loss=-torch.sigmoid(temperatures * (ratio - 1)) * 4 / temperatures * tokens.advantages)


def vespo_loss(
    tokens: PolicyTokens, *, k_pos: float, lambda_pos: float, k_neg: float, lambda_neg: float
) -> LossOutput:
    r"""
    $-\varphi(w)\, A \log\pi$ with $\varphi(w) = e^{\lambda} w^k e^{-\lambda w}$ of the sequence ratio $w$, without
    gradient.

    VESPO ([paper](https://huggingface.co/papers/2602.10693)). The sampler's correction is part of $w$, so the trainer
    does not apply it again.
    """
    weight = _gamma_weight(tokens, k_pos=k_pos, lambda_pos=lambda_pos, k_neg=k_neg, lambda_neg=lambda_neg)
    loss = -weight * tokens.advantages * tokens.per_token_logps
    return LossOutput(loss=loss, metrics={"vespo/phi_seq_mean": weight})


@torch.no_grad()
def _gamma_weight(
    tokens: PolicyTokens, *, k_pos: float, lambda_pos: float, k_neg: float, lambda_neg: float
) -> torch.Tensor:
    lowest = math.log(1e-8)
    log_ratio = torch.clamp(tokens.per_token_logps - tokens.old_per_token_logps, -20.0, 20.0)  # (N, T)
    log_w = (log_ratio * tokens.mask).sum(-1, keepdim=True)  # (N, 1)
    if tokens.importance_sampling_ratio is not None:
        log_w = log_w + torch.clamp(tokens.importance_sampling_ratio.log(), lowest, 20.0).sum(-1, keepdim=True)
    log_w = torch.clamp(log_w, lowest, 20.0)
    is_good = tokens.advantages >= 0
    k = torch.where(is_good, k_pos, k_neg)
    lam = torch.where(is_good, lambda_pos, lambda_neg).clamp(min=1e-4)
    return torch.exp(lam + k * log_w - lam * log_w.exp()).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
