"""Divergences of student and teacher, against numbers worked by hand and against TRL's."""

import itertools
import math

import pytest
import torch
from trl.kernels.chunked_divergence import ChunkedDivergenceFunction

from trl_reasoning.losses import chunked_top_k_loss, distillation_divergence, top_k_loss


# Teacher (1/2, 1/4, 1/4), student (1/4, 1/2, 1/4); the mixture of both is (3/8, 3/8, 1/4).
TEACHER = torch.tensor([[0.5, 0.25, 0.25]])
STUDENT = torch.tensor([[0.25, 0.5, 0.25]])
LOG2 = math.log(2)
LABEL = torch.tensor([1])


def random_case(seed: int = 0, positions: int = 7, width: int = 5, vocabulary: int = 11):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    return draw(positions, width), draw(vocabulary, width), draw(positions, 3), draw(vocabulary, 3)


@pytest.mark.parametrize(
    ("beta", "expected"),
    [
        (0.0, 0.5 * LOG2 - 0.25 * LOG2),
        (1.0, 0.5 * LOG2 - 0.25 * LOG2),
        (0.5, 0.5 * math.log(4 / 3) + 0.25 * math.log(2 / 3)),  # both halves are equal here
    ],
)
def test_divergence_by_hand(beta, expected):
    assert distillation_divergence(STUDENT.log(), TEACHER.log(), beta).item() == pytest.approx(expected, abs=1e-6)


def test_the_ends_are_two_different_divergences():
    """Teacher (1/2, 1/2), student (9/10, 1/10)."""
    teacher, student = torch.tensor([0.5, 0.5]).log(), torch.tensor([0.9, 0.1]).log()
    forward, reverse = (distillation_divergence(student, teacher, beta).item() for beta in (0.0, 1.0))
    assert forward == pytest.approx(0.5 * math.log(5 / 9) + 0.5 * math.log(5), abs=1e-6)
    assert reverse == pytest.approx(0.9 * math.log(9 / 5) + 0.1 * math.log(1 / 5), abs=1e-6)


@pytest.mark.parametrize("beta", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_divergence_is_trls(beta, temperature):
    hidden, head, teacher_hidden, teacher_head = random_case()
    theirs, _ = ChunkedDivergenceFunction.apply(
        hidden.requires_grad_(), head, None, teacher_hidden, teacher_head, None, beta, temperature
    )
    ours = distillation_divergence(hidden @ head.T, teacher_hidden @ teacher_head.T, beta, temperature)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    gradients = [torch.autograd.grad(values.sum(), hidden)[0] for values in (ours, theirs)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


def test_top_k_by_hand():
    """Of four tokens two are stored: q = (1/2, 1/4, rest 1/4), p = (1/4, 1/4, rest 1/2)."""
    logits = torch.tensor([[0.25, 0.125, 0.375, 0.25]]).log()  # tokens 0 and 3 are stored
    top_ids, top_logps = torch.tensor([[0, 3]]), torch.tensor([[0.5, 0.25]]).log()
    loss = top_k_loss(logits, LABEL, top_ids, top_logps)
    assert loss.divergence.item() == pytest.approx(0.5 * LOG2 + 0.0 - 0.25 * LOG2, abs=1e-6)
    assert loss.cross_entropy.item() == pytest.approx(math.log(8), abs=1e-6)
    entropy = 0.25 * math.log(4) * 2 + 0.125 * math.log(8) + 0.375 * math.log(8 / 3)
    assert loss.entropy.item() == pytest.approx(entropy, abs=1e-6)
    assert not loss.is_top1.item() and top_k_loss(logits, torch.tensor([2]), top_ids, top_logps).is_top1.item()


def test_temperature_by_hand():
    """At 2 the square roots of the buckets, times 4: teacher (4/5, 1/5) -> (2/3, 1/3), student (1/2, 1/2) stays."""
    logits = torch.zeros(1, 2)
    loss = top_k_loss(logits, LABEL, torch.tensor([[0]]), torch.tensor([[0.8]]).log(), temperature=2.0)
    expected = 4 * (2 / 3 * math.log(4 / 3) + 1 / 3 * math.log(2 / 3))
    assert loss.divergence.item() == pytest.approx(expected, abs=1e-6)


def test_a_small_rest_by_hand():
    """Beside probabilities in half precision; at 4 the fourth roots of 1 - e^-16 and e^-16 are 1 and e^-4."""
    top = torch.tensor([[0]]), torch.log1p(-torch.tensor([[-16.0]]).exp()).half()
    rest = torch.tensor([-16.0])
    equal = torch.tensor([[16.0, 0.0]])  # the student has the same two classes
    loss = top_k_loss(equal, LABEL, *top, temperature=4.0, rest_logps=rest)
    assert loss.divergence.item() == pytest.approx(0.0, abs=1e-6)
    even = top_k_loss(torch.zeros(1, 2), LABEL, *top, temperature=4.0, rest_logps=rest)
    share = math.exp(-4) / (1 + math.exp(-4))
    by_hand = LOG2 + share * math.log(share) + (1 - share) * math.log(1 - share)
    assert even.divergence.item() == pytest.approx(16 * by_hand, rel=1e-5)
    none_left = top_k_loss(equal, LABEL, *top, rest_logps=torch.tensor([-torch.inf]))
    assert none_left.divergence.item() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_all_tokens_are_the_full_divergence(temperature):
    hidden, head, teacher_hidden, teacher_head = random_case()
    logits, teacher = hidden @ head.T, teacher_hidden @ teacher_head.T
    top_logps, top_ids = torch.log_softmax(teacher, dim=-1).topk(11)
    loss = top_k_loss(logits, torch.zeros(7, dtype=torch.long), top_ids, top_logps, temperature)
    full = temperature**2 * distillation_divergence(logits, teacher, 0.0, temperature)
    torch.testing.assert_close(loss.divergence, full, rtol=1e-4, atol=1e-6)


def test_top_k_is_a_lower_bound_that_rises_to_the_full_divergence():
    hidden, head, teacher_hidden, teacher_head = random_case()
    logits, teacher = hidden @ head.T, teacher_hidden @ teacher_head.T
    values = []
    for k in (1, 4, 10, 11):
        top_logps, top_ids = torch.log_softmax(teacher, dim=-1).topk(k)
        values.append(top_k_loss(logits, torch.zeros(7, dtype=torch.long), top_ids, top_logps).divergence)
    assert all((later >= earlier - 1e-6).all() for earlier, later in itertools.pairwise(values))
    torch.testing.assert_close(values[2], values[3], rtol=1e-4, atol=1e-5)  # the rest is the eleventh token alone


def test_no_divergence_and_no_gradient_at_the_teachers_distribution():
    logits = torch.randn(4, 9, generator=torch.Generator().manual_seed(1)).requires_grad_()
    top_logps, top_ids = torch.log_softmax(logits.detach(), dim=-1).topk(3)
    loss = top_k_loss(logits, torch.zeros(4, dtype=torch.long), top_ids, top_logps)
    torch.testing.assert_close(loss.divergence, torch.zeros(4), rtol=0, atol=1e-6)
    (gradient,) = torch.autograd.grad(loss.divergence.sum(), logits)
    torch.testing.assert_close(gradient, torch.zeros(4, 9), rtol=0, atol=1e-6)


def test_a_certain_teacher_gives_finite_numbers():
    """The stored probabilities may add up to 1, and in half precision to a little more; the student may be certain."""
    logits = torch.tensor([[90.0, 0.0, 0.0], [0.0, 90.0, 0.0]], requires_grad=True)
    top_ids = torch.tensor([[0, 1], [0, 1]])
    top_logps = torch.tensor([[0.0, -60.0], [-0.6929, -0.6929]]).half()  # 2 exp(-0.6929) is above 1
    loss = top_k_loss(logits, torch.tensor([0, 1]), top_ids, top_logps)
    assert torch.isfinite(torch.cat([loss.divergence, loss.cross_entropy, loss.entropy])).all()
    assert loss.divergence[0].item() == pytest.approx(0.0, abs=1e-6)
    (gradient,) = torch.autograd.grad(loss.divergence.sum(), logits)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("chunk_size", [2, 7, 100])
def test_chunks_change_nothing(chunk_size):
    hidden, head, teacher_hidden, teacher_head = random_case()
    hidden.requires_grad_()
    labels = torch.arange(7)
    top_logps, top_ids = torch.log_softmax(teacher_hidden @ teacher_head.T, dim=-1).topk(4)
    rest = -torch.rand(7) - 1
    whole = top_k_loss(hidden @ head.T, labels, top_ids, top_logps, rest_logps=rest)
    chunked = chunked_top_k_loss(
        hidden, lambda x: x @ head.T, labels, top_ids, top_logps, chunk_size=chunk_size, rest_logps=rest
    )
    for ours, theirs in zip(chunked, whole, strict=True):
        torch.testing.assert_close(ours, theirs)
    gradients = [
        torch.autograd.grad((loss.divergence + loss.cross_entropy).sum(), hidden)[0] for loss in (chunked, whole)
    ]
    torch.testing.assert_close(*gradients)


def test_no_position_is_a_zero_with_a_graph():
    hidden = torch.zeros(0, 5, requires_grad=True)
    empty = torch.zeros(0, 2)
    loss = chunked_top_k_loss(hidden, lambda x: x @ torch.ones(5, 4), empty[:, 0].long(), empty.long(), empty)
    loss.divergence.sum().backward()
    assert hidden.grad is not None


def test_the_logits_of_all_positions_are_never_in_memory():
    """No tensor that the loss keeps for its backward pass has as many elements as all logits."""
    hidden, head = torch.randn(64, 4, requires_grad=True), torch.randn(50, 4)
    top_logps, top_ids = torch.log_softmax(torch.randn(64, 50), dim=-1).topk(2)
    sizes = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: sizes.append(tensor.numel()) or tensor, lambda x: x):
        chunked_top_k_loss(hidden, lambda x: x @ head.T, top_ids[:, 0], top_ids, top_logps, chunk_size=8)
    assert max(sizes) < 64 * 50 / 4
