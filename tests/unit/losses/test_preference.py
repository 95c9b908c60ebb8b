"""DPO, length-normalised DPO and SimPO on numbers worked out by hand."""

import math

import pytest
import torch

from trl_reasoning.losses import dpo_loss, ln_dpo_loss, per_token, simpo_loss


def tensors(*values: float) -> list[torch.Tensor]:
    return [torch.tensor([value], dtype=torch.float64, requires_grad=True) for value in values]


def z_of(loss: torch.Tensor) -> float:
    """The argument of the sigmoid: loss = -log sigmoid(z)."""
    return -math.log(math.expm1(loss.item()))


@pytest.mark.parametrize(
    ("logps", "refs", "beta", "z", "loss"),
    [
        ((-40, -60), (-42, -57), 0.1, 0.5, 0.474077),
        ((-42, -57), (-42, -57), 0.1, 0.0, 0.693147),
        ((-50, -55), (-40, -60), 0.1, -1.5, 1.701413),
        ((-40, -60), (-42, -57), 0.5, 2.5, 0.078890),
    ],
)
def test_dpo(logps, refs, beta, z, loss):
    found = dpo_loss(*tensors(*logps, *refs), beta=beta)
    assert found.item() == pytest.approx(loss, abs=1e-6)
    assert z_of(found) == pytest.approx(z, abs=1e-6)


@pytest.mark.parametrize(("logps", "weight"), [((-40.0, -60.0), 0.037754), ((-42.0, -57.0), 0.05)])
def test_gradient_of_dpo_is_the_weight_on_the_difference(logps, weight):
    chosen, rejected, *refs = tensors(*logps, -42.0, -57.0)
    dpo_loss(chosen, rejected, *refs, beta=0.1).sum().backward()
    assert chosen.grad.item() == pytest.approx(-weight, abs=1e-6)
    assert rejected.grad.item() == pytest.approx(weight, abs=1e-6)


@pytest.mark.parametrize(
    ("chosen", "rejected", "beta", "z", "loss"),
    [  # (policy, reference, length)
        ((-40, -42, 20), (-60, -57, 30), 5.0, 1.0, 0.313262),
        ((-40, -42, 20), (-60, -57, 30), 0.1, 0.02, 0.683197),
        ((-12, -15, 10), (-50, -46, 40), 5.0, 2.0, 0.126928),
        ((-10, -11, 50), (-4, -5, 5), 5.0, -0.9, 1.241154),
    ],
)
def test_ln_dpo(chosen, rejected, beta, z, loss):
    logps = tensors(chosen[0], rejected[0], chosen[1], rejected[1])
    found = ln_dpo_loss(*logps, torch.tensor([chosen[2]]), torch.tensor([rejected[2]]), beta=beta)
    assert found.item() == pytest.approx(loss, abs=1e-6)
    assert z_of(found) == pytest.approx(z, abs=1e-6)


SIMPO = [  # (log-prob, length), z with beta 2 and gamma 1, loss
    ((-20, 10), (-30, 12), 0.0, 0.693147),
    ((-15, 10), (-36, 12), 2.0, 0.126928),
    ((-24, 8), (-20, 10), -3.0, 3.048587),
]


def simpo(chosen, rejected, **kwargs) -> torch.Tensor:
    lengths = torch.tensor([chosen[1]]), torch.tensor([rejected[1]])
    return simpo_loss(*tensors(chosen[0], rejected[0]), *lengths, beta=2.0, gamma=1.0, **kwargs)


@pytest.mark.parametrize(("chosen", "rejected", "z", "loss"), SIMPO)
def test_simpo(chosen, rejected, z, loss):
    found = simpo(chosen, rejected)
    assert found.item() == pytest.approx(loss, abs=1e-6)
    assert z_of(found) == pytest.approx(z, abs=1e-6)


@pytest.mark.parametrize(("chosen", "rejected", "z", "loss"), SIMPO)
def test_simpo_with_a_hinge_and_with_smoothed_labels(chosen, rejected, z, loss):
    assert simpo(chosen, rejected, loss_type="hinge").item() == pytest.approx(max(0.0, 1.0 - z), abs=1e-6)
    # -log sigmoid(-z) = z - log sigmoid(z): a pair that is the wrong way round in one of four cases.
    assert simpo(chosen, rejected, label_smoothing=0.25).item() == pytest.approx(loss + 0.25 * z, abs=1e-6)


def test_an_unknown_loss_is_refused():
    with pytest.raises(ValueError, match=r"loss_type: expected one of \['sigmoid', 'hinge'\], got 'ipo'"):
        simpo((-20, 10), (-30, 12), loss_type="ipo")


def test_gradient_of_simpo_is_divided_by_the_length():
    chosen, rejected = tensors(-20.0, -30.0)
    simpo_loss(chosen, rejected, torch.tensor([10]), torch.tensor([12]), beta=2.0, gamma=1.0).sum().backward()
    # z = 0: beta sigmoid(-z) / length
    assert chosen.grad.item() == pytest.approx(-2.0 * 0.5 / 10)
    assert rejected.grad.item() == pytest.approx(2.0 * 0.5 / 12)


def test_a_reply_without_tokens_gives_no_nan():
    lengths = [torch.tensor([0]), torch.tensor([4])]
    chosen, rejected, *refs = tensors(0.0, -4.0, 0.0, -6.0)
    # The empty reply counts as 0 nats per token: z = 2 (0 + 1) - 1 and 5 (0 - 2 / 4).
    losses = [
        simpo_loss(chosen, rejected, *lengths, beta=2.0, gamma=1.0),
        ln_dpo_loss(chosen, rejected, *refs, *lengths),
    ]
    assert [z_of(loss) for loss in losses] == pytest.approx([1.0, -2.5])
    sum(losses).sum().backward()
    assert chosen.grad.isfinite().all() and rejected.grad.isfinite().all()
    assert per_token(torch.tensor([0.0]), torch.tensor([0])).item() == 0.0
