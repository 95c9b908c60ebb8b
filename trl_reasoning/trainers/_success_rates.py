"""Success rates of the training rows, and the probabilities that prioritised sampling makes of them."""

import torch


class SuccessRates:
    r"""
    Success rate of every row of the data, from the completions that were sampled for it.

    $$s_i = \frac{\sum_v d^{\,V_i - v}\, c_{i,v}}{\sum_v d^{\,V_i - v}\, n_{i,v}}$$

    over the visits $v = 1 \dots V_i$ of row $i$, with $c$ successes among $n$ scored completions and the decay $d$.
    `decay=1` is the running mean over all completions, `decay=0` the share of the last visit alone. A row without a
    scored completion has the rate 0.

    Args:
        rows (`int`):
            Number of rows of the data, R.
        decay (`float`):
            Weight of a visit once the row is visited again, in [0, 1].

    Example:

    ```python
    >>> rates = SuccessRates(rows=2, decay=0.5)
    >>> rates.update(torch.tensor([1, 1]), torch.tensor([1.0, 0.0]), threshold=0.5)
    >>> rates.update(torch.tensor([1, 1]), torch.tensor([1.0, 1.0]), threshold=0.5)
    >>> rates.rates.tolist()  # (0.5 * 1 + 2) / (0.5 * 2 + 2)
    [0.0, 0.8333333333333334]

    ```
    """

    def __init__(self, rows: int, decay: float):
        self.decay = decay
        self.successes = torch.zeros(rows, dtype=torch.float64)  # (R,)
        self.trials = torch.zeros(rows, dtype=torch.float64)  # (R,)

    @property
    def rates(self) -> torch.Tensor:
        """Success rates, (R,) in [0, 1]."""
        # A row with a scored completion has at least one trial, whatever the decay.
        return self.successes / self.trials.clamp(min=1.0)

    @property
    def seen(self) -> torch.Tensor:
        """Whether a row has a scored completion, (R,)."""
        return self.trials > 0

    def update(self, rows: torch.Tensor, rewards: torch.Tensor, threshold: float) -> None:
        """
        Count one visit of each row that is named.

        Args:
            rows (`torch.Tensor`):
                Row of each completion, (N,).
            rewards (`torch.Tensor`):
                Reward of each completion, (N,); NaN (not applicable) counts neither as a success nor as a trial.
            threshold (`float`):
                A reward above it is a success.
        """
        scored = ~rewards.isnan()
        rows, right = rows[scored], (rewards[scored] > threshold).double()
        visited = rows.unique()
        for total, addend in ((self.successes, right), (self.trials, torch.ones_like(right))):
            total[visited] *= self.decay
            total.index_add_(0, rows, addend)


def priorities(rates: torch.Tensor, floor: float = 0.0) -> torch.Tensor:
    r"""
    Probabilities of prioritised sampling, $P(i) \propto \max(1 - s_i,\ \mathrm{floor})$; uniform where all are 0.

    Args:
        rates (`torch.Tensor`):
            Success rates, (R,) in [0, 1].
        floor (`float`, *optional*, defaults to `0.0`):
            Least weight of a row, so that solved rows are met again.

    Returns:
        `torch.Tensor`: (R,), with sum 1.

    Reference: Kimi k1.5 ([paper](https://huggingface.co/papers/2501.12599)), section 2.3.4 (prioritised sampling).

    Example:

    ```python
    >>> priorities(torch.tensor([0.9, 0.5, 0.1, 1.0], dtype=torch.float64)).round(decimals=4).tolist()
    [0.0667, 0.3333, 0.6, 0.0]

    ```
    """
    weights = (1.0 - rates).clamp(min=floor)  # (R,)
    total = weights.sum()
    return weights / total if total > 0 else torch.full_like(weights, 1.0 / len(weights))


def draw_distinct(probabilities: torch.Tensor, count: int, generator: torch.Generator) -> list[int]:
    """
    Draw `count` different rows one after the other, each with its probability among those that are left.

    Rows of probability 0 are drawn, evenly, only once all others are.
    """
    possible = min(int((probabilities > 0).sum()), count)
    drawn = torch.multinomial(probabilities, possible, replacement=False, generator=generator)
    if possible < count:
        others = (probabilities == 0).nonzero().squeeze(1)
        order = torch.randperm(len(others), generator=generator)
        drawn = torch.cat([drawn, others[order[: count - possible]]])
    return drawn.tolist()
