"""Divergences of a student from its teacher: on whole vocabularies, and on the teacher's most likely tokens."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch.utils.checkpoint import checkpoint


def distillation_divergence(
    student_logits: torch.Tensor, teacher_logits: torch.Tensor, beta: float, temperature: float = 1.0
) -> torch.Tensor:
    r"""
    Divergence of a teacher $q$ and a student $p$ over a whole vocabulary, position by position.

    | `beta` | divergence |
    |---|---|
    | 0 | forward, $\mathrm{KL}(q\,\|\,p)$ |
    | 1 | reverse, $\mathrm{KL}(p\,\|\,q)$ |
    | between | $\beta\,\mathrm{KL}(q\,\|\,m) + (1-\beta)\,\mathrm{KL}(p\,\|\,m)$ with $m = \beta q + (1-\beta)p$ |

    0.5 is the Jensen-Shannon divergence.

    This is the definition in the open: the trainer computes the same number in tiles that never hold all logits.
    Generalized knowledge distillation, [paper](https://huggingface.co/papers/2306.13649), Eq. 2.

    Args:
        student_logits (`torch.Tensor`):
            (..., V).
        teacher_logits (`torch.Tensor`):
            (..., V) over the same tokens.
        beta (`float`):
            In [0, 1].
        temperature (`float`, *optional*, defaults to `1.0`):
            Both logits are divided by it.

    Returns:
        `torch.Tensor` of shape (...), in nats.

    Example:

    ```python
    >>> import torch
    >>> q, p = torch.tensor([0.5, 0.5]).log(), torch.tensor([0.9, 0.1]).log()
    >>> [round(distillation_divergence(p, q, beta).item(), 4) for beta in (0.0, 0.5, 1.0)]
    [0.5108, 0.1017, 0.3681]

    ```
    """
    student = torch.log_softmax(student_logits.float() / temperature, dim=-1)
    teacher = torch.log_softmax(teacher_logits.float() / temperature, dim=-1)
    if beta == 0:
        return _kl(teacher, student)
    if beta == 1:
        return _kl(student, teacher)
    weights = torch.tensor([beta, 1 - beta], device=student.device).log()
    mixture = torch.logaddexp(teacher + weights[0], student + weights[1])
    return beta * _kl(teacher, mixture) + (1 - beta) * _kl(student, mixture)


class TopKLoss(NamedTuple):
    """
    What [`top_k_loss`] gives for each of N positions.

    Args:
        divergence (`torch.Tensor`):
            (N,) forward KL on the teacher's k tokens and the rest.
        cross_entropy (`torch.Tensor`):
            (N,) negative log-probability of the label.
        entropy (`torch.Tensor`):
            (N,) entropy of the student, without gradient.
        is_top1 (`torch.Tensor`):
            (N,) whether the label is the student's most likely token.
    """

    divergence: torch.Tensor
    cross_entropy: torch.Tensor
    entropy: torch.Tensor
    is_top1: torch.Tensor


def top_k_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    top_ids: torch.Tensor,
    top_logps: torch.Tensor,
    temperature: float = 1.0,
    rest_logps: torch.Tensor | None = None,
) -> TopKLoss:
    r"""
    Forward KL from the teacher's k most likely tokens and the bucket of all others, and the cross-entropy.

    With $q_1 \dots q_k$ the stored probabilities and $q_{k+1}$ that of all other tokens together, and the student's
    $p_i$ on the same buckets,

    $$\mathrm{KL} = \tau^2 \sum_{i=1}^{k+1} \tilde q_i \log\frac{\tilde q_i}{\tilde p_i}, \quad
    \tilde q_i \propto q_i^{1/\tau},\ \tilde p_i \propto p_i^{1/\tau}$$

    The temperature acts on the k + 1 buckets, so that their probabilities at temperature 1 are all it needs. It is
    zero where the student has the teacher's probabilities on all buckets. Where the k tokens are the whole
    vocabulary it is the KL of the full distributions, times $\tau^2$, which keeps the size of its gradient beside the
    cross-entropy (Hinton et al., [paper](https://huggingface.co/papers/1503.02531), Section 2).

    Args:
        logits (`torch.Tensor`):
            (N, V) of the student.
        labels (`torch.Tensor`):
            (N,) the tokens that follow.
        top_ids (`torch.Tensor`):
            (N, k) token ids, without repeats in a row.
        top_logps (`torch.Tensor`):
            (N, k) the teacher's log-probabilities of them at temperature 1.
        temperature (`float`, *optional*, defaults to `1.0`):
            τ.
        rest_logps (`torch.Tensor`, *optional*):
            (N,) the logarithm of $q_{k+1}$. Unset, it is $1 - \sum_i q_i$, whose rounding error is that of the largest
            probabilities: harmless at temperature 1, far off at a higher one, which makes a small rest large.

    Returns:
        [`TopKLoss`]

    Example: two of three tokens are known, the third has what is left: q = (0.5, 0.25, 0.25), p = (0.25, 0.5, 0.25).

    ```python
    >>> import torch
    >>> logits = torch.tensor([[0.25, 0.5, 0.25]]).log()
    >>> top = torch.tensor([[0, 1]]), torch.tensor([[0.5, 0.25]]).log()
    >>> round(top_k_loss(logits, torch.tensor([1]), *top).divergence.item(), 4)  # 0.5 log 2 - 0.25 log 2
    0.1733

    ```
    """
    logits = logits.float()
    logps = torch.log_softmax(logits, dim=-1)  # (N, V)
    teacher, student = top_logps.float(), logps.gather(1, top_ids)  # (N, k)
    if top_ids.size(1) < logits.size(1):
        rest = logps.scatter(1, top_ids, -torch.inf).logsumexp(1, keepdim=True)  # (N, 1)
        if rest_logps is None:
            # 1 - sum(q), from the side where it is small; rounding may make it negative, which is none left.
            left = -torch.expm1(teacher.logsumexp(1))
            rest_logps = left.clamp(min=torch.finfo(left.dtype).tiny).log()
        teacher = torch.cat([teacher, rest_logps.float().unsqueeze(1)], dim=1)  # (N, k + 1)
        student = torch.cat([student, rest], dim=1)  # (N, k + 1)
    teacher = torch.log_softmax(teacher / temperature, dim=-1)
    student = torch.log_softmax(student / temperature, dim=-1)
    with torch.no_grad():
        entropy = -(logps.exp() * logps.clamp(min=torch.finfo(logps.dtype).min)).sum(1)
        is_top1 = logps.argmax(1) == labels
    cross_entropy = -logps.gather(1, labels.unsqueeze(1)).squeeze(1)
    return TopKLoss(temperature**2 * _kl(teacher, student), cross_entropy, entropy, is_top1)


def chunked_top_k_loss(
    hidden_states: torch.Tensor,
    head: Callable[[torch.Tensor], torch.Tensor],
    labels: torch.Tensor,
    top_ids: torch.Tensor,
    top_logps: torch.Tensor,
    temperature: float = 1.0,
    chunk_size: int = 1024,
    rest_logps: torch.Tensor | None = None,
) -> TopKLoss:
    """
    [`top_k_loss`] from hidden states, with the logits of at most `chunk_size` positions in memory at a time.

    The backward pass computes each chunk's logits anew.

    Args:
        hidden_states (`torch.Tensor`):
            (N, H) of the student, at the positions that count.
        head (`Callable`):
            From (n, H) to logits (n, V).
        labels, top_ids, top_logps, temperature, rest_logps:
            As in [`top_k_loss`].
        chunk_size (`int`, *optional*, defaults to `1024`):
            Positions of a chunk.

    Returns:
        [`TopKLoss`]
    """

    def one(hidden: torch.Tensor, *rows: torch.Tensor) -> TopKLoss:
        rest = rows[3] if len(rows) == 4 else None
        return top_k_loss(head(hidden), *rows[:3], temperature=temperature, rest_logps=rest)

    inputs = (hidden_states, labels, top_ids, top_logps, *(() if rest_logps is None else (rest_logps,)))
    chunks = [
        checkpoint(one, *(tensor[start : start + chunk_size] for tensor in inputs), use_reentrant=False)
        for start in range(0, max(len(labels), 1), chunk_size)  # an empty batch still needs its graph
    ]
    return TopKLoss(*(torch.cat(parts) for parts in zip(*chunks, strict=True)))


def _kl(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """KL of distributions given as log-probabilities over the last axis; a probability of zero adds nothing."""
    terms = first.exp() * (first - second)
    return terms.masked_fill(first == -torch.inf, 0.0).sum(-1)
