"""Token rewards, advantages and the value loss of PPO with a learned value function, in pure torch."""

from collections.abc import Callable

import torch

from .divergence import k1


def shaped_rewards(
    per_token_logps: torch.Tensor,
    ref_logps: torch.Tensor | None,
    scores: torch.Tensor,
    mask: torch.Tensor,
    beta: float,
) -> torch.Tensor:
    r"""
    $\hat r_t = -\beta(\log\pi(y_t) - \log\pi_{ref}(y_t)) + \mathbb{1}[t = T]\, r$.

    The reward of InstructGPT ([paper](https://huggingface.co/papers/2203.02155), Eq. 2 and Appendix C.4) token by
    token: the KL penalty is part of the reward, estimated by the log-ratio at rollout.

    Args:
        per_token_logps (`torch.Tensor`):
            (N, T) log-probabilities of the policy that sampled, in nats.
        ref_logps (`torch.Tensor`, *optional*):
            (N, T) of the reference; None leaves the KL term out.
        scores (`torch.Tensor`):
            (N,) reward of each completion.
        mask (`torch.Tensor`):
            (N, T), 1 for real tokens. The score falls on the last one, wherever the padding or the holes are.
        beta (`float`):
            KL coefficient, at least 0.

    Returns:
        `torch.Tensor` of shape (N, T), 0 outside the mask.

    Example:

    ```python
    >>> import torch
    >>> logps, ref = torch.tensor([[-1.0, -0.5, -2.0, -0.1]]), torch.tensor([[-1.2, -0.4, -1.5, -0.1]])
    >>> rewards = shaped_rewards(logps, ref, torch.tensor([1.0]), torch.ones(1, 4), beta=0.1)
    >>> [round(reward, 4) for reward in rewards[0].tolist()]
    [-0.02, 0.01, 0.05, 1.0]

    ```
    """
    mask = mask.to(per_token_logps.dtype)
    rewards = torch.zeros_like(per_token_logps)  # (N, T)
    if ref_logps is not None:
        rewards = rewards - beta * k1(per_token_logps, ref_logps)
    is_last = (mask.flip(1).cumsum(1).flip(1) == 1) & (mask == 1)  # (N, T), True once in a row that has tokens
    rewards = rewards + is_last * scores.to(rewards.dtype).unsqueeze(1)
    return torch.where(mask == 1, rewards, torch.zeros_like(rewards))


def generalized_advantages(
    rewards: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, gamma: float, lam: float
) -> tuple[torch.Tensor, torch.Tensor]:
    r"""
    $\delta_t = \hat r_t + \gamma V_{t+1} - V_t$, $A_t = \delta_t + \gamma\lambda A_{t+1}$, with $V_{T+1} = 0$.

    Generalised advantage estimation ([paper](https://huggingface.co/papers/1506.02438), Eq. 16). Tokens outside the
    mask are stepped over: the token after a hole is the next one of the token before it.

    Args:
        rewards, values (`torch.Tensor`):
            (N, T) reward of each token, and value of the state in which it was sampled.
        mask (`torch.Tensor`):
            (N, T), 1 for real tokens.
        gamma (`float`):
            Discount in [0, 1].
        lam (`float`):
            Trace decay in [0, 1]; 1 gives the sum of rewards to come minus the value.

    Returns:
        `tuple[torch.Tensor, torch.Tensor]`: advantages and returns $A_t + V_t$, both (N, T) and 0 outside the mask.

    Example:

    ```python
    >>> import torch
    >>> rewards, values = torch.tensor([[0.0, 0.0, 0.0, 1.0]]), torch.tensor([[0.5, 0.6, 0.7, 0.8]])
    >>> advantages, _ = generalized_advantages(rewards, values, torch.ones(1, 4), gamma=1.0, lam=1.0)
    >>> [round(value, 4) for value in advantages[0].tolist()]
    [0.5, 0.4, 0.3, 0.2]

    ```
    """
    is_real = mask == 1
    advantages = torch.zeros_like(values)  # (N, T)
    next_value = next_advantage = values.new_zeros(len(values))  # (N,)
    for token in reversed(range(values.size(1))):
        delta = rewards[:, token] + gamma * next_value - values[:, token]
        advantage = delta + gamma * lam * next_advantage
        real = is_real[:, token]
        advantages[:, token] = torch.where(real, advantage, torch.zeros_like(advantage))
        next_value = torch.where(real, values[:, token], next_value)
        next_advantage = torch.where(real, advantage, next_advantage)
    returns = torch.where(is_real, advantages + values, torch.zeros_like(values))
    return advantages, returns


def whiten(
    x: torch.Tensor, mask: torch.Tensor, reduce: Callable[[torch.Tensor], torch.Tensor] = lambda sums: sums
) -> torch.Tensor:
    r"""
    $(x - \mathrm{mean}) / \mathrm{std}$ over the masked elements, with the sample standard deviation.

    Args:
        x (`torch.Tensor`):
            (N, T).
        mask (`torch.Tensor`):
            (N, T), 1 for the elements that count.
        reduce (`Callable`, *optional*):
            Adds a vector of sums up over the processes; called twice. Without it the statistics are this process's.

    Returns:
        `torch.Tensor` of shape (N, T), 0 outside the mask. Elements that are all equal become 0.

    Example:

    ```python
    >>> import torch
    >>> white = whiten(torch.tensor([[1.0, 2.0, 3.0, 9.0]]), torch.tensor([[1, 1, 1, 0]]))
    >>> [round(value, 4) for value in white[0].tolist()]
    [-1.0, 0.0, 1.0, 0.0]

    ```
    """
    is_real = mask == 1
    total, count = reduce(torch.stack([torch.where(is_real, x, 0.0).sum(), is_real.sum().to(x.dtype)]))
    centred = torch.where(is_real, x - total / count.clamp(min=1.0), 0.0)
    # Two passes: the difference of large sums would lose the spread of values far from 0.
    (squares,) = reduce((centred**2).sum().view(1))
    std = (squares / (count - 1.0).clamp(min=1.0)).sqrt()
    return centred / (std + 1e-8)


def clipped_value_loss(
    values: torch.Tensor, old_values: torch.Tensor, returns: torch.Tensor, clip: float | None
) -> torch.Tensor:
    r"""
    $\frac12 \max[(V - R)^2,\ (\mathrm{clip}(V, V_{old} - c, V_{old} + c) - R)^2]$, element by element.

    Args:
        values (`torch.Tensor`):
            Values of the live model, with gradient.
        old_values, returns (`torch.Tensor`):
            Values at rollout and the returns made with them, in the shape of `values`.
        clip (`float`, *optional*):
            c, in units of the reward; None does not clip.

    Returns:
        `torch.Tensor` in the shape of `values`.

    Example:

    ```python
    >>> import torch
    >>> one = torch.tensor(1.0)
    >>> round(clipped_value_loss(0.9 * one, 0.5 * one, one, clip=0.2).item(), 6)
    0.045

    ```
    """
    loss = (values - returns) ** 2
    if clip is not None:
        clipped = torch.maximum(torch.minimum(values, old_values + clip), old_values - clip)
        loss = torch.maximum(loss, (clipped - returns) ** 2)
    return 0.5 * loss
