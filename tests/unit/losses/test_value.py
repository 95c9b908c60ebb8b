"""Token rewards, generalised advantages, whitening and the value loss, on numbers worked out by hand."""

import pytest
import torch

from trl_reasoning.losses import PolicyTokens, clipped_loss
from trl_reasoning.losses.value import clipped_value_loss, generalized_advantages, shaped_rewards, whiten


VALUES = torch.tensor([[0.5, 0.6, 0.7, 0.8]], dtype=torch.float64)
REWARDS = torch.tensor([[0.0, 0.0, 0.0, 1.0]], dtype=torch.float64)
ALL = torch.ones(1, 4)
LOGPS = torch.tensor([[-1.0, -0.5, -2.0, -0.1]], dtype=torch.float64)
REF = torch.tensor([[-1.2, -0.4, -1.5, -0.1]], dtype=torch.float64)


def near(numbers):
    return pytest.approx(numbers, abs=2e-6)


@pytest.mark.parametrize(
    ("gamma", "lam", "expected"),
    [
        (1.0, 0.95, [0.456725, 0.3755, 0.29, 0.2]),
        (1.0, 1.0, [0.5, 0.4, 0.3, 0.2]),
        (1.0, 0.0, [0.1, 0.1, 0.1, 0.2]),
        (0.9, 0.8, [0.146618, 0.148080, 0.164, 0.2]),
    ],
)
def test_generalised_advantages(gamma, lam, expected):
    advantages, returns = generalized_advantages(REWARDS, VALUES, ALL, gamma, lam)
    assert advantages[0].tolist() == near(expected)
    assert returns.tolist()[0] == near([a + v for a, v in zip(expected, [0.5, 0.6, 0.7, 0.8], strict=True)])


def test_returns_and_whitened_advantages():
    advantages, returns = generalized_advantages(REWARDS, VALUES, ALL, 1.0, 0.95)
    assert returns[0].tolist() == near([0.956725, 0.9755, 0.99, 1.0])
    assert whiten(advantages, ALL)[0].tolist() == near([1.141838, 0.406745, -0.367037, -1.181545])


@pytest.mark.parametrize(
    ("beta", "rewards", "returns", "advantages"),
    [
        (0.1, [-0.02, 0.01, 0.05, 1.0], [1.04, 1.06, 1.05, 1.0], [0.49135, 0.433, 0.34, 0.2]),
        (0.02, [-0.004, 0.002, 0.01, 1.0], [1.008, 1.012, 1.01, 1.0], [0.46365, 0.387, 0.3, 0.2]),
    ],
)
def test_rewards_with_the_divergence(beta, rewards, returns, advantages):
    shaped = shaped_rewards(LOGPS, REF, torch.tensor([1.0]), ALL, beta)
    assert shaped[0].tolist() == near(rewards)
    assert shaped.sum().item() == near(returns[0])
    assert shaped.flip(1).cumsum(1).flip(1)[0].tolist() == near(returns)
    assert generalized_advantages(shaped, VALUES, ALL, 1.0, 0.95)[0][0].tolist() == near(advantages)


def test_without_a_reference_the_score_is_all_there_is():
    assert shaped_rewards(LOGPS, None, torch.tensor([2.5]), ALL, 0.1)[0].tolist() == [0, 0, 0, 2.5]


@pytest.mark.parametrize(
    "mask",
    [[1, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1], [1, 0, 1, 1, 0, 1], [0, 1, 1, 0, 1, 1]],
    ids=["right", "left", "holes", "left and holes"],
)
def test_padding_and_holes_change_nothing(mask):
    """The same four tokens wherever they stand; what lies in between is garbage."""
    mask = torch.tensor([mask])
    where = mask[0] == 1

    def spread(row):
        out = torch.full((1, 6), 77.0, dtype=torch.float64)
        out[0, where] = row[0]
        return out

    shaped = shaped_rewards(spread(LOGPS), spread(REF), torch.tensor([1.0]), mask, 0.1)
    assert shaped[0, where].tolist() == near([-0.02, 0.01, 0.05, 1.0])
    assert shaped[0, ~where].tolist() == [0, 0]
    advantages, returns = generalized_advantages(shaped, spread(VALUES), mask, 1.0, 0.95)
    assert advantages[0, where].tolist() == near([0.49135, 0.433, 0.34, 0.2])
    assert advantages[0, ~where].tolist() == returns[0, ~where].tolist() == [0, 0]
    plain = generalized_advantages(spread(REWARDS), spread(VALUES), mask, 1.0, 0.95)[0]
    assert whiten(torch.where(mask == 1, plain, 77.0), mask)[0, where].tolist() == near(
        [1.141838, 0.406745, -0.367037, -1.181545]
    )


def test_a_row_without_tokens_gets_nothing():
    mask = torch.tensor([[1, 1], [0, 0]])
    shaped = shaped_rewards(torch.zeros(2, 2), None, torch.tensor([1.0, 5.0]), mask, 0.1)
    assert shaped.tolist() == [[0, 1], [0, 0]]
    advantages, returns = generalized_advantages(shaped, torch.ones(2, 2), mask, 1.0, 1.0)
    assert advantages[1].tolist() == returns[1].tolist() == [0, 0]


def test_whitening_over_processes_is_whitening_of_everything():
    x = torch.tensor([[1.0, 2.0, 4.0], [8.0, 16.0, 0.0]], dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    whole = whiten(x, mask)
    assert whole[mask == 1].mean().item() == near(0.0)
    assert whole[mask == 1].std().item() == near(1.0)  # the sample standard deviation

    centre = x[mask == 1].mean()
    totals = iter(
        [torch.stack([x.sum(), torch.tensor(5.0, dtype=x.dtype)]), ((x - centre)[mask == 1] ** 2).sum().view(1)]
    )
    part = whiten(x[:1], mask[:1], reduce=lambda sums: next(totals))
    assert part.tolist() == [near(whole[0].tolist())]


@pytest.mark.parametrize("x", [[[3.0, 3.0]], [[3.0, 9.0]]])
def test_whitening_without_a_spread_is_zero(x):
    mask = torch.tensor([[1, 1]]) if x[0][1] == 3.0 else torch.tensor([[1, 0]])
    assert whiten(torch.tensor(x), mask).tolist() == [[0, 0]]


def test_whitening_of_values_far_from_zero_keeps_their_spread():
    x = torch.tensor([[10000.0, 10001.0, 10002.0]])
    assert whiten(x, torch.ones(1, 3))[0].tolist() == pytest.approx([-1, 0, 1], abs=1e-3)


@pytest.mark.parametrize(
    ("value", "clip", "expected"), [(0.9, 0.2, 0.045), (0.6, 0.2, 0.08), (0.9, None, 0.005), (0.1, 0.2, 0.405)]
)
def test_value_loss(value, clip, expected):
    values = torch.tensor([value], dtype=torch.float64, requires_grad=True)
    loss = clipped_value_loss(values, torch.tensor([0.5], dtype=torch.float64), torch.ones(1), clip)
    assert loss.item() == near(expected)
    loss.sum().backward()
    # Clipped, the value is held where it is; otherwise it is pulled towards the return.
    assert values.grad is not None and values.grad.item() == near(0.0 if value == 0.9 and clip else value - 1.0)


def test_the_clip_of_the_ratio():
    ratios = torch.tensor([[0.5, 0.8, 1.0, 1.2, 1.5]], dtype=torch.float64)
    for advantage, terms in ((1.0, [0.5, 0.8, 1.0, 1.2, 1.2]), (-1.0, [-0.8, -0.8, -1.0, -1.2, -1.5])):
        logps = ratios.log().requires_grad_()
        zeros = torch.zeros_like(ratios)
        tokens = PolicyTokens(
            per_token_logps=logps,
            old_per_token_logps=zeros,
            ref_per_token_logps=None,
            entropies=zeros,
            advantages=torch.full_like(ratios, advantage),
            mask=torch.ones_like(ratios),
            log_weights=logps,
        )
        loss = clipped_loss(tokens, epsilon_low=0.2, epsilon_high=0.2).loss
        assert (-loss)[0].tolist() == near(terms)
        loss.sum().backward()
        assert logps.grad is not None
        assert logps.grad is not None
        has_gradient = (logps.grad[0].abs() > 1e-9).tolist()
        assert has_gradient[4 if advantage > 0 else 0] is False
        assert all(has_gradient[1:4])
