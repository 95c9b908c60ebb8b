import pytest
import torch

from trl_reasoning.losses import k1, k2, k3


@pytest.mark.parametrize(
    ("gap", "expected"),
    [(0.1, 0.005171), (-0.1, 0.004837), (0.5, 0.148721), (-0.5, 0.106531), (1.0, 0.718282), (0, 0)],
)
def test_k3(gap, expected):
    """`gap` is log pi_ref - log pi."""
    assert k3(torch.tensor(-1.0), torch.tensor(-1.0 + gap)).item() == pytest.approx(expected, abs=1e-6)


def test_gradient_of_k3():
    """Advantage 1, beta 0.04, gap 0.5: the coefficient of the gradient of log pi is 1.025949."""
    logp = torch.tensor(-1.0, requires_grad=True)
    (logp * 1.0 - 0.04 * k3(logp, torch.tensor(-0.5))).backward()
    assert logp.grad.item() == pytest.approx(1.025949, abs=1e-6)


def test_all_three_estimate_the_same_divergence():
    """Under samples of pi the means of k1 and k3 are the divergence itself."""
    p, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.4, 0.4, 0.2])
    exact = (p * (p / q).log()).sum()
    assert (p * k1(p.log(), q.log())).sum() == pytest.approx(exact.item(), abs=1e-7)
    assert (p * k3(p.log(), q.log())).sum() == pytest.approx(exact.item(), abs=1e-7)
    assert (k2(p.log(), q.log()) >= 0).all()
