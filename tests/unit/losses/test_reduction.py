"""Worked averages of the 2 x 3 example: lengths 3 and 2, token terms [0.55, 0.45, 0.60] and [-0.5, -0.4]."""

import pytest
import torch

from trl_reasoning.losses import row_weights


MASK = torch.tensor([[1, 1, 1], [1, 1, 0]])
TERMS = -torch.tensor([[0.55, 0.45, 0.60], [-0.5, -0.4, 9.0]])  # the padded token must not count


def total(reduction, **kwargs) -> float:
    return (TERMS * MASK * row_weights(reduction, MASK, **kwargs)).sum().item()


@pytest.mark.parametrize(
    ("reduction", "kwargs", "expected"),
    [
        ("sequence_mean", {}, -(1.6 / 3 - 0.9 / 2) / 2),
        ("token_mean", {}, -0.14),
        ("constant", {"constant": 3}, -0.116667),
        ("constant", {"constant": 4}, -0.0875),
        ("batch_tokens", {"batch_tokens": 10.0}, -0.07),
        ("sequence_sum", {}, -0.35),
    ],
)
def test_worked_numbers(reduction, kwargs, expected):
    assert total(reduction, **kwargs) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("reduction", ["sequence_mean", "token_mean", "constant", "sequence_sum", "rows"])
def test_accumulation_divides(reduction):
    assert total(reduction, accumulation=4) == pytest.approx(total(reduction) / 4)


def test_the_length_bias_in_one_line():
    """On-policy, lengths 1 and 3, L = 3, advantages 1 and -1 (population) or 0.5 and -0.5."""
    mask = torch.tensor([[1, 0, 0], [1, 1, 1]])
    assert row_weights("sequence_mean", mask).squeeze(1).tolist() == pytest.approx([0.5, 0.166667], abs=1e-6)
    dr_grpo = row_weights("constant", mask, constant=3).squeeze(1) * torch.tensor([0.5, -0.5])
    assert dr_grpo.tolist() == pytest.approx([0.083333, -0.083333], abs=1e-6)


def test_rows_without_tokens():
    mask = torch.tensor([[0, 0], [1, 1]])
    assert row_weights("sequence_mean", mask).isfinite().all()
    assert row_weights("token_mean", torch.zeros(2, 2)).isfinite().all()


def test_unknown_name():
    with pytest.raises(ValueError, match="reduction: expected one of"):
        row_weights("mean", MASK)
