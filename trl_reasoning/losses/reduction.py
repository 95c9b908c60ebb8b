"""From token losses to one number: each row's weight in the sum, known before the forward pass."""

import torch


REDUCTIONS = ("sequence_mean", "token_mean", "constant", "batch_tokens", "sequence_sum", "rows")


def row_weights(
    reduction: str,
    mask: torch.Tensor,
    *,
    accumulation: float = 1.0,
    constant: float = 1.0,
    batch_tokens: torch.Tensor | float = 1.0,
) -> torch.Tensor:
    r"""
    Weight of each row in `loss = (token_loss * mask * weights).sum()`.

    Writing the average as a weighted sum makes it independent of how the rows of an optimizer step are split into
    passes.

    | `reduction` | weight of row i | used by |
    |---|---|---|
    | `sequence_mean` | $1/(N |y_i|)$ | GRPO (DeepSeekMath, Eq. 3), SAPO |
    | `token_mean` | $1/\sum_j |y_j|$ | BNPO |
    | `constant` | $1/(N L)$ | Dr. GRPO, with a constant L |
    | `batch_tokens` | 1 / tokens of the whole optimizer step in all processes | DAPO, CISPO, VESPO |
    | `sequence_sum` | $1/N$ | LUSPO |
    | `rows` | $1/N$, for losses with one value a row; the mask is not applied | Kimi k1.5 |

    all but `batch_tokens` divided by the accumulation.

    Args:
        reduction (`str`):
            One of the names above.
        mask (`torch.Tensor`):
            (N, T) loss mask of one micro-batch.
        accumulation (`float`, *optional*, defaults to `1.0`):
            Number of micro-batches of this size in the optimizer step.
        constant (`float`, *optional*, defaults to `1.0`):
            L of `constant`, in tokens.
        batch_tokens (`torch.Tensor` or `float`, *optional*, defaults to `1.0`):
            Divisor of `batch_tokens`.

    Returns:
        `torch.Tensor` of shape (N, 1).

    Raises:
        ValueError: An unknown name.

    Example:

    ```python
    >>> import torch
    >>> mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    >>> row_weights("sequence_mean", mask).squeeze(1).tolist()  # 1/(2*3) and 1/(2*2)
    [0.1666666716337204, 0.25]

    ```
    """
    rows = mask.size(0)
    lengths = mask.sum(-1, keepdim=True).float()  # (N, 1)
    ones = torch.ones_like(lengths)
    if reduction == "sequence_mean":
        return ones / (lengths.clamp(min=1.0) * (rows * accumulation))
    if reduction == "token_mean":
        return ones / (lengths.sum().clamp(min=1.0) * accumulation)
    if reduction == "constant":
        return ones / (rows * constant * accumulation)
    if reduction == "batch_tokens":
        return ones / batch_tokens
    if reduction in ("sequence_sum", "rows"):
        return ones / (rows * accumulation)
    raise ValueError(f"reduction: expected one of {list(REDUCTIONS)}, got {reduction!r}")
