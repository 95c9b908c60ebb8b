"""Bradley-Terry losses of reward models: pairs, rankings, soft labels, and the bias that centres the scores."""

import torch
import torch.nn.functional as F


def bradley_terry_loss(
    chosen: torch.Tensor,
    rejected: torch.Tensor,
    margin: torch.Tensor | None = None,
    preference: torch.Tensor | None = None,
) -> torch.Tensor:
    r"""
    Negative log-likelihood of each pair's preference under the Bradley-Terry model.

    $$-\log\sigma(r_c - r_r - m), \qquad -p\log\sigma(r_c - r_r) - (1-p)\log\sigma(r_r - r_c)$$

    with a margin $m$, and for a soft label: the probability $p$ that the chosen reply is the better one. Only the gap
    of the two scores counts, so that adding one number to all scores changes nothing.

    Args:
        chosen, rejected (`torch.Tensor`):
            (N,) scores of the two replies.
        margin (`torch.Tensor`, *optional*):
            (N,) by how much the chosen reply should be ahead.
        preference (`torch.Tensor`, *optional*):
            (N,) $p$ in [0, 1]; 1 is the hard label.

    Returns:
        `torch.Tensor` of shape (N,), in nats.

    Raises:
        ValueError: Both a margin and a soft label.

    Reference: InstructGPT (https://huggingface.co/papers/2203.02155), Eq. 1; margin: Llama 2
    (https://huggingface.co/papers/2307.09288), Eq. 2; soft labels: Constitutional AI
    (https://huggingface.co/papers/2212.08073), Section 4.1.

    Example:

    ```python
    >>> chosen, rejected = torch.tensor([1.0, 6.0, 0.3]), torch.tensor([0.2, 5.2, 0.3])
    >>> [round(value, 6) for value in bradley_terry_loss(chosen, rejected).tolist()]
    [0.371101, 0.371101, 0.693147]

    ```
    """
    gap = chosen - rejected  # (N,)
    if preference is not None:
        if margin is not None:
            raise ValueError("margin: a pair has a margin or a soft label, not both")
        return -preference * F.logsigmoid(gap) - (1.0 - preference) * F.logsigmoid(-gap)
    return -F.logsigmoid(gap if margin is None else gap - margin)


def ordered_pairs(ranks: torch.Tensor, prompts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """
    All pairs of replies of one prompt of which one is ranked above the other; ties give none.

    Args:
        ranks (`torch.Tensor`):
            (R,) how good each reply is, higher is better.
        prompts (`torch.Tensor`):
            (R,) number of the prompt that each reply answers.

    Returns:
        `tuple[torch.Tensor, torch.Tensor]`: (M,) indices of the better and of the worse reply of each pair.

    Example:

    ```python
    >>> better, worse = ordered_pairs(torch.tensor([2.0, 1.0, 1.0, 5.0]), torch.tensor([0, 0, 0, 1]))
    >>> better.tolist(), worse.tolist()
    ([0, 0], [1, 2])

    ```
    """
    is_pair = (ranks.unsqueeze(1) > ranks) & (prompts.unsqueeze(1) == prompts)  # (R, R)
    better, worse = is_pair.nonzero(as_tuple=True)
    return better, worse


def prompt_means(values: torch.Tensor, prompts: torch.Tensor, size: int) -> torch.Tensor:
    """
    Mean of the values of each prompt's pairs.

    Args:
        values (`torch.Tensor`):
            (M,) one value for each pair.
        prompts (`torch.Tensor`):
            (M,) number of the pair's prompt, in [0, size).
        size (`int`):
            Number of prompts P.

    Returns:
        `torch.Tensor` of shape (P,); 0 for a prompt without a pair.
    """
    counts = torch.zeros(size, device=values.device, dtype=values.dtype).index_add(0, prompts, torch.ones_like(values))
    return torch.zeros_like(counts).index_add(0, prompts, values) / counts.clamp(min=1.0)


def ranking_loss(
    rewards: torch.Tensor,
    ranks: torch.Tensor,
    prompts: torch.Tensor,
    size: int,
    margin: torch.Tensor | None = None,
    preference: torch.Tensor | None = None,
) -> torch.Tensor:
    r"""
    Loss of each prompt's ranking: the mean over all pairs of its K replies, which are one element of the batch.

    $$-\binom{K}{2}^{-1} \sum_{r_i \succ r_j} \log\sigma(r_i - r_j)$$

    Each reply has one score, however many pairs it is part of. Pairs of equal rank are dropped, from the divisor as
    well: with ties the mean is over the pairs that are left, so that every prompt has the same weight. (The paper
    drops ties and does not say what becomes of the divisor.)

    Args:
        rewards (`torch.Tensor`):
            (R,) scores of the replies of all prompts.
        ranks (`torch.Tensor`):
            (R,) how good each reply is, higher is better.
        prompts (`torch.Tensor`):
            (R,) number of the prompt that each reply answers, in [0, size).
        size (`int`):
            Number of prompts P.
        margin, preference (`torch.Tensor`, *optional*):
            (P,) for prompts with two replies: as for [`bradley_terry_loss`], about the better ranked one.

    Returns:
        `torch.Tensor` of shape (P,), in nats; 0 for a prompt whose replies are all tied.

    Reference: InstructGPT (https://huggingface.co/papers/2203.02155), Eq. 1.

    Example:

    ```python
    >>> rewards = torch.tensor([2.0, 1.0, 0.0, 1.5, 0.5, 0.0, -1.0])
    >>> ranks, prompts = torch.tensor([3, 2, 1, 4, 3, 2, 1]), torch.tensor([0, 0, 0, 1, 1, 1, 1])
    >>> [round(value, 6) for value in ranking_loss(rewards, ranks, prompts, 2).tolist()]
    [0.25115, 0.263719]

    ```
    """
    better, worse = ordered_pairs(ranks, prompts)
    of = prompts[better]  # (M,)
    losses = bradley_terry_loss(
        rewards[better],
        rewards[worse],
        None if margin is None else margin[of],
        None if preference is None else preference[of],
    )
    return prompt_means(losses, of, size)


def option_preference(
    logps: torch.Tensor, other_logps: torch.Tensor, bounds: tuple[float, float] | None = None
) -> torch.Tensor:
    r"""
    Soft label of a pair from a judge's log-probs of the two options: $e^{l_1} / (e^{l_1} + e^{l_2})$.

    Args:
        logps, other_logps (`torch.Tensor`):
            (N,) the judge's log-probs of naming the first and the second reply.
        bounds (`tuple[float, float]`, *optional*):
            Clamp to this range; Constitutional AI uses (0.4, 0.6) where the judge thinks aloud first, since its
            log-probs are then near 0 and 1.

    Returns:
        `torch.Tensor` of shape (N,): probability that the first reply is the better one.

    Reference: Constitutional AI (https://huggingface.co/papers/2212.08073), Section 4.1.

    Example:

    ```python
    >>> round(option_preference(torch.tensor([-1.0]), torch.tensor([-2.0])).item(), 6)
    0.731059

    ```
    """
    preference = (logps - other_logps).sigmoid()
    return preference if bounds is None else preference.clamp(*bounds)


def demonstration_bias(scores: torch.Tensor) -> float:
    """
    The number that is added to all scores so that demonstrations average 0.

    Args:
        scores (`torch.Tensor`):
            (N,) scores of the demonstrations without a bias.

    Returns:
        `float`: minus their mean.

    Reference: InstructGPT (https://huggingface.co/papers/2203.02155), Section 3.5.

    Example:

    ```python
    >>> round(demonstration_bias(torch.tensor([1.2, 0.4, -0.1])), 6)
    -0.5

    ```
    """
    return -scores.double().mean().item()
