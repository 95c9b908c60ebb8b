"""Binary cross-entropy at step ends on numbers worked out by hand."""

import math

import pytest
import torch

from trl_reasoning.losses import prm_loss


def logit(probability: float) -> float:
    return math.log(probability / (1 - probability))


# Two solutions with three and one labelled steps; what stands elsewhere must not count.
SCORES = [[0.3, 0.8, 0.5, 0.9], [0.2, 0.99, 0.99, 0.99]]
LABELS = [[-100.0, 1.0, 0.0, 0.25], [0.0, -100.0, -100.0, -100.0]]
TERMS = [
    -math.log(0.8),
    -math.log(0.5),
    -0.25 * math.log(0.9) - 0.75 * math.log(0.1),
    -math.log(0.8),
]


@pytest.fixture
def logits():
    return torch.tensor([[logit(score) for score in row] for row in SCORES], dtype=torch.float64, requires_grad=True)


def test_hard_and_soft_labels(logits):
    loss = prm_loss(logits, torch.tensor(LABELS))
    # 0.223144, 0.693147, 1.753279, 0.223144
    assert pytest.approx([0.223144, 0.693147, 1.753279, 0.223144], abs=1e-6) == TERMS
    assert loss.item() == pytest.approx(0.723178, abs=1e-6)


def test_gradient_is_score_minus_label_at_step_ends(logits):
    prm_loss(logits, torch.tensor(LABELS)).backward()
    expected = [[0.0, -0.2 / 4, 0.5 / 4, 0.65 / 4], [0.2 / 4, 0.0, 0.0, 0.0]]
    assert logits.grad.tolist() == [pytest.approx(row, abs=1e-9) for row in expected]


def test_parts_add_up_to_the_whole(logits):
    """Divided by the steps of the whole batch, the losses of its rows sum up to the loss of the batch."""
    labels = torch.tensor(LABELS)
    whole = prm_loss(logits, labels)
    parts = sum(prm_loss(logits[row : row + 1], labels[row : row + 1], num_steps=torch.tensor(4)) for row in (0, 1))
    assert parts.item() == pytest.approx(whole.item(), abs=1e-12)


def test_no_label_is_no_loss():
    logits = torch.tensor([[1.0, torch.inf]], requires_grad=True)
    for num_steps in (None, 0):
        loss = prm_loss(logits, torch.full((1, 2), -100.0), num_steps=num_steps)
        loss.backward()
        assert loss.item() == 0.0
        assert logits.grad.tolist() == [[0.0, 0.0]]


def test_large_logits_stay_finite():
    loss = prm_loss(torch.tensor([[200.0, -200.0]]), torch.tensor([[0.0, 1.0]]))
    assert loss.item() == pytest.approx(200.0)
