"""Bradley-Terry losses on numbers worked out by hand."""

import math

import pytest
import torch

from trl_reasoning.losses.reward import (
    bradley_terry_loss,
    demonstration_bias,
    option_preference,
    ordered_pairs,
    prompt_means,
    ranking_loss,
)


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(
    ("chosen", "rejected", "probability", "loss"),
    [(1.0, 0.2, 0.689974, 0.371101), (6.0, 5.2, 0.689974, 0.371101), (0.3, 0.3, 0.5, 0.693147)],
)
def test_a_pair(chosen, rejected, probability, loss):
    found = bradley_terry_loss(tensor(chosen), tensor(rejected)).item()
    assert found == pytest.approx(loss, abs=1e-6)
    assert math.exp(-found) == pytest.approx(probability, abs=1e-6)


def test_a_margin_is_taken_from_the_gap():
    """Ahead by 0.8 with a margin of 0.8 is a tie."""
    assert bradley_terry_loss(tensor(1.0), tensor(0.2), margin=tensor(0.8)).item() == pytest.approx(0.693147, abs=1e-6)


def test_a_soft_label_is_a_cross_entropy():
    assert bradley_terry_loss(tensor(0.5), tensor(0.0), preference=tensor(0.6)).item() == pytest.approx(
        0.674077, abs=1e-6
    )
    hard = bradley_terry_loss(tensor(1.0), tensor(0.2), preference=tensor(1.0)).item()
    assert hard == pytest.approx(0.371101, abs=1e-6)
    # The least of the loss is where the model's probability is the label: gap log(0.6 / 0.4).
    gap = torch.tensor([math.log(1.5)], dtype=torch.float64, requires_grad=True)
    bradley_terry_loss(gap, tensor(0.0), preference=tensor(0.6)).sum().backward()
    assert gap.grad.item() == pytest.approx(0.0, abs=1e-12)


def test_a_margin_and_a_soft_label_are_refused():
    with pytest.raises(ValueError, match="^margin: "):
        bradley_terry_loss(tensor(1.0), tensor(0.0), margin=tensor(1.0), preference=tensor(0.5))


def test_great_gaps_do_not_overflow():
    assert bradley_terry_loss(tensor(-1e4), tensor(1e4)).item() == pytest.approx(2e4)
    assert bradley_terry_loss(tensor(1e4), tensor(-1e4)).item() == 0.0


@pytest.mark.parametrize(
    ("rewards", "loss"), [((2.0, 1.0, 0.0), 0.251150), ((1.5, 0.5, 0.0, -1.0), 0.263719)], ids=["K3", "K4"]
)
def test_a_ranking(rewards, loss):
    ranks = torch.arange(len(rewards), 0, -1)
    prompts = torch.zeros(len(rewards), dtype=torch.long)
    assert ranking_loss(tensor(*rewards), ranks, prompts, 1).tolist() == pytest.approx([loss], abs=1e-6)


@pytest.mark.parametrize(("replies", "pairs"), [(4, 6), (5, 10), (6, 15), (7, 21), (8, 28), (9, 36)])
def test_every_pair_of_a_prompt_and_none_across_prompts(replies, pairs):
    ranks = torch.randperm(replies, generator=torch.Generator().manual_seed(0)).repeat(2)
    prompts = torch.arange(2).repeat_interleave(replies)
    better, worse = ordered_pairs(ranks, prompts)
    assert len(better) == 2 * pairs
    assert (ranks[better] > ranks[worse]).all() and (prompts[better] == prompts[worse]).all()


def test_ties_are_dropped_and_the_mean_is_over_the_pairs_that_are_left():
    """Scores 1.0, 0.2, 0.2 with the last two tied: two pairs of loss 0.371101, not two thirds of it."""
    loss = ranking_loss(tensor(1.0, 0.2, 0.2), torch.tensor([2, 1, 1]), torch.zeros(3, dtype=torch.long), 1)
    assert loss.item() == pytest.approx(0.371101, abs=1e-6)


def test_each_prompt_is_one_element_and_a_tied_one_has_no_gradient():
    rewards = torch.tensor([1.0, 0.2, 2.0, 1.0, 0.0, 5.0, 1.0], requires_grad=True)
    ranks, prompts = torch.tensor([1, 0, 2, 1, 0, 3, 3]), torch.tensor([0, 0, 1, 1, 1, 2, 2])
    losses = ranking_loss(rewards, ranks, prompts, 3)
    assert losses.tolist() == pytest.approx([0.371101, 0.251150, 0.0], abs=1e-6)
    losses.mean().backward()
    assert rewards.grad is not None and rewards.grad[5:].tolist() == [0.0, 0.0]
    assert rewards.grad.sum().item() == pytest.approx(0.0, abs=1e-7)


def test_labels_of_pairs_reach_their_pairs():
    rewards, ranks, prompts = tensor(1.0, 0.2, 0.0, 0.5), torch.tensor([1, 0, 0, 1]), torch.tensor([0, 0, 1, 1])
    soft = ranking_loss(rewards, ranks, prompts, 2, preference=tensor(1.0, 0.6))
    assert soft.tolist() == pytest.approx([0.371101, 0.674077], abs=1e-6)
    ahead = ranking_loss(rewards, ranks, prompts, 2, margin=tensor(0.8, 0.5))
    assert ahead.tolist() == pytest.approx([0.693147, 0.693147], abs=1e-6)


def test_a_shift_of_all_scores_changes_no_loss():
    rewards, ranks, prompts = (
        tensor(2.0, 1.0, 0.0, 0.7, 0.1),
        torch.tensor([3, 2, 1, 2, 1]),
        torch.tensor([0, 0, 0, 1, 1]),
    )
    before = ranking_loss(rewards, ranks, prompts, 2)
    assert ranking_loss(rewards + 5.0, ranks, prompts, 2).tolist() == pytest.approx(before.tolist(), abs=1e-12)


def test_means_of_prompts():
    means = prompt_means(tensor(1.0, 2.0, 6.0), torch.tensor([0, 0, 2]), 3)
    assert means.tolist() == [1.5, 0.0, 6.0]


def test_demonstrations_average_0_with_the_bias():
    assert demonstration_bias(tensor(1.2, 0.4, -0.1)) == pytest.approx(-0.5, abs=1e-12)


def test_a_judges_log_probs_become_a_soft_label():
    assert option_preference(tensor(-1.0), tensor(-2.0)).item() == pytest.approx(0.731059, abs=1e-6)
    logits = torch.logit(tensor(0.97, 0.03, 0.55))
    clamped = option_preference(logits, torch.zeros(3, dtype=torch.float64), bounds=(0.4, 0.6))
    assert clamped.tolist() == pytest.approx([0.6, 0.4, 0.55], abs=1e-9)
