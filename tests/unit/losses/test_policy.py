"""Clipping at the token level, against numbers worked out by hand. TRL's other types: tests/trainers."""

import pytest
import torch

from trl_reasoning.losses import PolicyTokens, cispo_loss, clipped_loss, sapo_loss


def tokens(ratios, advantages) -> PolicyTokens:
    logps = torch.tensor([ratios]).log().requires_grad_()
    return PolicyTokens(
        per_token_logps=logps,
        old_per_token_logps=torch.zeros_like(logps),
        ref_per_token_logps=None,
        entropies=torch.zeros_like(logps),
        advantages=torch.tensor([advantages]),
        mask=torch.ones_like(logps),
        log_weights=logps,
    )


RATIOS = [0.5, 0.8, 1.0, 1.2, 1.5]


@pytest.mark.parametrize(
    ("advantage", "expected"), [(1.0, [0.5, 0.8, 1.0, 1.2, 1.2]), (-1.0, [-0.8, -0.8, -1.0, -1.2, -1.5])]
)
def test_clip(advantage, expected):
    loss = clipped_loss(tokens(RATIOS, [advantage]), epsilon_low=0.2, epsilon_high=0.2).loss
    assert (-loss).squeeze(0).tolist() == pytest.approx(expected, abs=1e-6)


def test_no_gradient_beyond_the_clip():
    for advantage, is_flat in ((1.0, [False, False, False, False, True]), (-1.0, [True, False, False, False, False])):
        rows = tokens([0.5, 0.9, 1.0, 1.1, 1.5], [advantage])
        clipped_loss(rows, epsilon_low=0.2, epsilon_high=0.2).loss.sum().backward()
        assert (rows.per_token_logps.grad == 0).squeeze(0).tolist() == is_flat


def test_flags():
    output = clipped_loss(tokens(RATIOS, [1.0]), epsilon_low=0.2, epsilon_high=0.3)
    assert output.flags["clip_ratio/high_mean"].tolist() == [[0, 0, 0, 0, 1]]
    assert output.flags["clip_ratio/low_mean"].sum() == 0
    assert output.flags["clip_ratio/region_mean"].tolist() == [[0, 0, 0, 0, 1]]


def test_two_sided_clip_bounds_bad_rows():
    loss = clipped_loss(tokens([4.0], [-1.0]), epsilon_low=0.2, epsilon_high=0.2, delta=2.0).loss
    assert loss.item() == pytest.approx(2.0)


def test_cispo_weights_do_not_carry_gradient():
    rows = tokens([0.5, 3.0], [2.0])
    cispo_loss(rows, epsilon_high=1.5).loss.sum().backward()
    assert rows.per_token_logps.grad.squeeze(0).tolist() == pytest.approx([-0.5 * 2, -1.5 * 2])


def test_sapo_is_the_policy_gradient_at_ratio_one():
    for advantage in (1.0, -1.0):
        rows = tokens([1.0], [advantage])
        sapo_loss(rows, temperature_pos=1.0, temperature_neg=1.05).loss.sum().backward()
        assert rows.per_token_logps.grad.item() == pytest.approx(-advantage, abs=1e-6)
