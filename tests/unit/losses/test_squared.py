"""Kimi k1.5's squared loss and its baselines on numbers worked out by hand."""

import math

import pytest
import torch

from trl_reasoning.losses import kimi_baseline, kimi_loss


REWARDS = torch.tensor([[1.0, 0.0, 0.0, 1.0]], dtype=torch.float64)
LOG_RATIOS = [0.2, -0.1, 0.3, -0.4]


def worked(tau: float, kind: str):
    """Residuals, loss values and the gradient of the loss's mean over the four completions."""
    log_ratios = torch.tensor(LOG_RATIOS, dtype=torch.float64, requires_grad=True)
    advantages = (REWARDS - kimi_baseline(REWARDS, tau, kind))[0]
    loss = kimi_loss(log_ratios, advantages, tau)
    loss.mean().backward()
    return (advantages - tau * log_ratios).tolist(), loss.detach(), log_ratios.grad


@pytest.mark.parametrize(
    ("tau", "kind", "residuals", "mean_square", "mean_loss"),
    [
        (0.5, "mean", [0.4, -0.45, -0.65, 0.7], 0.31875, 0.31875),
        (0.5, "log_mean_exp", [0.18311, -0.66689, -0.86689, 0.48311], 0.365791, 0.365791),
        (0.1, "mean", [0.48, -0.49, -0.53, 0.54], 0.26075, 1.30375),
        (0.1, "log_mean_exp", [0.04931, -0.92069, -0.96069, 0.10931], 0.446244, 2.231220),
    ],
)
def test_residuals_and_loss(tau, kind, residuals, mean_square, mean_loss):
    found, loss, _ = worked(tau, kind)
    assert found == pytest.approx(residuals, abs=1e-5)
    assert (loss * 2 * tau).mean().item() == pytest.approx(mean_square, abs=1e-6)
    assert loss.mean().item() == pytest.approx(mean_loss, abs=2e-6)


@pytest.mark.parametrize(("log_ratios", "squared"), [([0.0, 0.0], 0.25), ([2.0, -1.0], 0.125)])
def test_two_completions(log_ratios, squared):
    """tau 0.1, rewards 1 and 0: (0.09 + 0.16) / 2 once the policy has moved."""
    loss = kimi_loss(torch.tensor(log_ratios), torch.tensor([0.5, -0.5]), 0.1)
    assert (loss * 0.2).mean().item() == pytest.approx(squared, abs=1e-6)


@pytest.mark.parametrize(
    ("tau", "ascent", "of_the_square"),
    [
        (0.5, [0.1, -0.1125, -0.1625, 0.175], [-0.1, 0.1125, 0.1625, -0.175]),
        (0.1, [0.12, -0.1225, -0.1325, 0.135], [-0.024, 0.0245, 0.0265, -0.027]),
    ],
)
def test_gradients(tau, ascent, of_the_square):
    _, _, gradient = worked(tau, "mean")
    assert (-gradient).tolist() == pytest.approx(ascent, abs=1e-9)
    assert (gradient * 2 * tau).tolist() == pytest.approx(of_the_square, abs=1e-9)


@pytest.mark.parametrize(("tau", "expected"), [(0.5, -0.06875), (0.1, -0.05375)])
def test_it_is_the_surrogate_up_to_a_constant(tau, expected):
    """mean[A rho - tau/2 rho^2], which the paper's ascent direction comes from."""
    _, loss, _ = worked(tau, "mean")
    assert (0.25 / (2 * tau) - loss.mean()).item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("tau", "expected"),
    [(0.01, 0.993069), (0.1, 0.930690), (0.5, 0.716890), (1.0, 0.620115), (10.0, 0.512495), (100.0, 0.501250)],
)
def test_log_mean_exp(tau, expected):
    assert kimi_baseline(REWARDS, tau, "log_mean_exp").item() == pytest.approx(expected, abs=1e-6)


def test_the_optimum_has_zero_loss():
    """pi* = 0.440399, 0.059601 on a uniform policy of four completions."""
    log_ratios = torch.tensor([0.566219, -1.433781, -1.433781, 0.566219], dtype=torch.float64)
    assert log_ratios.exp().mul(0.25).tolist() == pytest.approx([0.440399, 0.059601, 0.059601, 0.440399], abs=1e-6)
    advantages = (REWARDS - kimi_baseline(REWARDS, 0.5, "log_mean_exp"))[0]
    assert kimi_loss(log_ratios, advantages, 0.5).tolist() == pytest.approx([0.0] * 4, abs=1e-11)


@pytest.mark.parametrize("tau", [1e-30, 1e-6, 0.1, 1e3])
def test_without_a_log_ratio_the_step_does_not_depend_on_tau(tau):
    log_ratios = torch.zeros(4, requires_grad=True)
    kimi_loss(log_ratios, torch.tensor([0.5, -0.5, -0.25, 0.0]), tau).sum().backward()
    assert log_ratios.grad.tolist() == pytest.approx([-0.5, 0.5, 0.25, 0.0], abs=1e-7)


def test_a_tiny_tau_gives_the_greatest_reward_as_baseline():
    rewards = torch.tensor([[300.0, -300.0], [0.25, 0.25]])
    assert kimi_baseline(rewards, 1e-6, "log_mean_exp").tolist() == [[300.0], [0.25]]


def test_equal_rewards_leave_the_pull_alone():
    log_ratios = torch.tensor([2.0, -1.0], requires_grad=True)
    rewards = torch.ones(1, 2)
    for kind in ("mean", "log_mean_exp"):
        advantages = (rewards - kimi_baseline(rewards, 0.25, kind))[0]
        (gradient,) = torch.autograd.grad(kimi_loss(log_ratios, advantages, 0.25).sum(), log_ratios)
        assert gradient.tolist() == pytest.approx([0.5, -0.25], abs=1e-7)


@pytest.mark.parametrize(
    ("kind", "expected"), [("mean", 0.5), ("log_mean_exp", 0.5 * math.log(0.5 * math.e**2 + 0.5))]
)
def test_what_cannot_be_scored_stays_out(kind, expected):
    rewards = torch.tensor([[1.0, math.nan, 0.0], [math.nan] * 3])
    baseline = kimi_baseline(rewards, 0.5, kind)
    assert baseline.shape == (2, 1)
    assert baseline[0].item() == pytest.approx(expected, abs=1e-6)
    assert baseline[1].isnan()

    log_ratios = torch.tensor([1.0, 1.0, math.nan], requires_grad=True)
    loss = kimi_loss(log_ratios, torch.tensor([0.5, math.nan, math.nan]), 0.5)
    loss.sum().backward()
    assert loss.tolist() == [0.0, 0.0, 0.0]  # 0.5 - 0.5 * 1 in the first
    assert log_ratios.grad.tolist() == [0.0, 0.0, 0.0]


def test_unknown_baseline():
    with pytest.raises(ValueError, match=r"baseline: expected one of \['mean', 'log_mean_exp'\], got 'max'"):
        kimi_baseline(REWARDS, 0.1, "max")
