"""Advantages from rewards: groups of completions of one prompt, and steps inside completions."""

import torch


STD_KINDS = ("sample", "population")


def group_advantages(
    rewards: torch.Tensor,
    num_generations: int,
    *,
    std: str | None = "sample",
    epsilon: float = 1e-4,
    leave_one_out: bool = False,
) -> torch.Tensor:
    r"""
    Advantages of the completions of each prompt.

    $$A_i = \frac{r_i - \mathrm{mean}(r)}{\mathrm{std}(r) + \epsilon}$$

    (GRPO, [paper](https://huggingface.co/papers/2402.03300), Section 4.1.2); without the division Dr. GRPO's
    ([paper](https://huggingface.co/papers/2503.20783)), with the mean of the others RLOO's
    ([paper](https://huggingface.co/papers/2402.14740)).

    Args:
        rewards (`torch.Tensor`):
            (N,) with the completions of a prompt one after the other; NaN for a completion without a reward, which
            stays out of the statistics.
        num_generations (`int`):
            G, completions of a prompt.
        std (`"sample"`, `"population"` or `None`, *optional*, defaults to `"sample"`):
            Which standard deviation divides; `None` for no division.
        epsilon (`float`, *optional*, defaults to `1e-4`):
            Added to the standard deviation (1e-4 as in TRL).
        leave_one_out (`bool`, *optional*, defaults to `False`):
            Whether the baseline is the mean of the other completions.

    Returns:
        `torch.Tensor` of shape (N,): 0 without a reward and in a group without a spread.

    Example:

    ```python
    >>> import torch
    >>> group_advantages(torch.tensor([1.0, 0.0, 0.0, 1.0]), 4, std="population", epsilon=0.0).tolist()
    [1.0, -1.0, -1.0, 1.0]

    ```
    """
    groups = rewards.view(-1, num_generations)  # (P, G)
    centred, scale = _centred(groups, std, epsilon)
    if leave_one_out:
        counts = (~groups.isnan()).sum(dim=1, keepdim=True)
        centred = centred * counts / (counts - 1).clamp(min=1)
    return (centred / scale).nan_to_num(nan=0.0).view(-1)


def normalize_steps(
    step_rewards: torch.Tensor, num_generations: int, *, std: str | None = "sample", epsilon: float = 1e-4
) -> torch.Tensor:
    r"""
    Normalise step rewards with the mean and the deviation of all steps of all completions of the prompt.

    $$\tilde r_i^{(j)} = \frac{r_i^{(j)} - \mathrm{mean}(R)}{\mathrm{std}(R) + \epsilon}$$

    Args:
        step_rewards (`torch.Tensor`):
            (N, S) rewards of up to S steps a completion, NaN where there is no step. Whole groups: where a group is
            spread over several processes, gather first.
        num_generations, std, epsilon:
            As in [`group_advantages`].

    Returns:
        `torch.Tensor` of shape (N, S): 0 where there is no step, and in a group without a spread.

    Reference: process supervision of DeepSeekMath (https://huggingface.co/papers/2402.03300), Section 4.1.3.
    """
    rows, steps = step_rewards.shape
    if steps == 0:  # not one completion has a step
        return step_rewards
    centred, scale = _centred(step_rewards.reshape(-1, num_generations * steps), std, epsilon)  # (P, G*S)
    return (centred / scale).nan_to_num(nan=0.0).view(rows, steps)


def spread_steps(step_values: torch.Tensor, step_ends: torch.Tensor, length: int) -> torch.Tensor:
    r"""
    Give each token the sum of the values of the steps that end at it or after it.

    $$A_{i,t} = \sum_{j:\ \mathrm{index}(j) \ge t} \tilde r_i^{(j)}$$

    Args:
        step_values (`torch.Tensor`):
            (N, S).
        step_ends (`torch.Tensor`):
            (N, S), index of each step's last token from 0; -1 where there is no step.
        length (`int`):
            T, tokens of the padded completions.

    Returns:
        `torch.Tensor` of shape (N, T): 0 after the last step.
    """
    is_step = step_ends >= 0
    at_ends = torch.zeros(len(step_values), length, dtype=step_values.dtype, device=step_values.device)  # (N, T)
    at_ends.scatter_add_(1, step_ends.clamp(min=0), step_values * is_step)
    return at_ends.flip(1).cumsum(1).flip(1)


def process_advantages(
    step_rewards: torch.Tensor,
    step_ends: torch.Tensor,
    length: int,
    num_generations: int,
    *,
    std: str | None = "sample",
    epsilon: float = 1e-4,
) -> torch.Tensor:
    """
    Token advantages from step rewards: [`normalize_steps`], then [`spread_steps`].

    Args:
        step_rewards (`torch.Tensor`):
            (N, S), NaN where there is no step.
        step_ends (`torch.Tensor`):
            (N, S), index of each step's last token from 0; -1 where there is no step.
        length (`int`):
            T.
        num_generations, std, epsilon:
            As in [`group_advantages`].

    Returns:
        `torch.Tensor` of shape (N, T).

    Example:

    ```python
    >>> import torch
    >>> rewards = torch.tensor([[0.8, 0.6], [0.2, torch.nan]])
    >>> ends = torch.tensor([[1, 3], [2, -1]])
    >>> rows = process_advantages(rewards, ends, 4, 2, std="population", epsilon=0.0).tolist()
    >>> [[round(value, 4) for value in row] for row in rows]
    [[1.3363, 1.3363, 0.2673, 0.2673], [-1.3363, -1.3363, -1.3363, 0.0]]

    ```
    """
    return spread_steps(normalize_steps(step_rewards, num_generations, std=std, epsilon=epsilon), step_ends, length)


def _centred(groups: torch.Tensor, std: str | None, epsilon: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(P, M) values minus their group's mean, and what divides them (P, 1); NaN is left out."""
    if std is not None and std not in STD_KINDS:
        raise ValueError(f"std: expected one of {list(STD_KINDS)} or None, got {std!r}")
    counts = (~groups.isnan()).sum(dim=1, keepdim=True)
    centred = groups - groups.nanmean(dim=1, keepdim=True)
    # Equal rewards may differ from their mean by rounding, which a division would blow up.
    has_spread = groups.nan_to_num(nan=-torch.inf).amax(1, True) > groups.nan_to_num(nan=torch.inf).amin(1, True)
    centred = torch.where(has_spread | groups.isnan(), centred, torch.zeros_like(centred))
    if std is None:
        return centred, torch.ones_like(counts, dtype=groups.dtype)
    divisor = counts - 1 if std == "sample" else counts
    scale = (centred.nan_to_num(nan=0.0).square().sum(dim=1, keepdim=True) / divisor.clamp(min=1)).sqrt() + epsilon
    return centred, torch.where(has_spread, scale, torch.ones_like(scale))
