"""Estimates of the KL divergence from log-probabilities of sampled tokens."""

import torch


def k1(logps: torch.Tensor, ref_logps: torch.Tensor) -> torch.Tensor:
    r"""$\log\pi - \log\pi_{ref}$, element by element: unbiased for KL(π‖π_ref) under π; a term may be negative."""
    return logps - ref_logps


def k2(logps: torch.Tensor, ref_logps: torch.Tensor) -> torch.Tensor:
    r"""$(\log\pi - \log\pi_{ref})^2 / 2$, element by element: biased, low variance."""
    return 0.5 * (logps - ref_logps) ** 2


def k3(logps: torch.Tensor, ref_logps: torch.Tensor) -> torch.Tensor:
    r"""
    $e^d - d - 1$ with $d = \log\pi_{ref} - \log\pi$, element by element.

    Never negative, zero where both agree, unbiased for KL(π‖π_ref) under samples of π
    (DeepSeekMath, [paper](https://huggingface.co/papers/2402.03300), Eq. 4).
    """
    gap = ref_logps - logps
    return torch.exp(gap) - gap - 1
