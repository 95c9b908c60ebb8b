"""The loss of process reward models: binary cross-entropy at the ends of steps."""

import torch
import torch.nn.functional as F


IGNORED = -100.0
"""Label of a token at which no labelled step ends."""


def prm_loss(
    logits: torch.Tensor, labels: torch.Tensor, *, num_steps: torch.Tensor | float | None = None
) -> torch.Tensor:
    r"""
    Mean binary cross-entropy of the labelled steps.

    $$ L = -\frac{1}{K} \sum_{i,t} y_{i,t} \log \sigma(z_{i,t}) + (1 - y_{i,t}) \log (1 - \sigma(z_{i,t})) $$

    over the K tokens with a label. With a label of 0 or 1 this is Math-Shepherd's hard estimation, with a share of
    continuations that end right its soft one.

    Args:
        logits (`torch.Tensor`):
            (N, T) log-odds that the step which ends at this token is right.
        labels (`torch.Tensor`):
            (N, T) labels in [0, 1]; [`IGNORED`] where no labelled step ends.
        num_steps (`torch.Tensor` or `float`, *optional*):
            K, where it is not the number of labels here: labelled steps of a whole optimizer step.

    Returns:
        `torch.Tensor`: a scalar; 0, with zero gradients, where there is no label.

    Reference: Math-Shepherd (https://huggingface.co/papers/2312.08935), Section 3, its loss of process reward models.

    Example:

    ```python
    >>> import torch
    >>> logits, labels = torch.tensor([[9.0, 0.0, 0.0]]), torch.tensor([[-100.0, 1.0, 0.25]])
    >>> round(prm_loss(logits, labels).item(), 4)  # log 2 for both, whatever their labels
    0.6931

    ```
    """
    is_labelled = labels != IGNORED  # (N, T)
    # Targets outside [0, 1] would be refused; what they give is multiplied by 0.
    targets = labels.clamp(min=0.0).to(logits.dtype)  # (N, T)
    losses = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")  # (N, T)
    count = is_labelled.sum() if num_steps is None else torch.as_tensor(num_steps, device=logits.device)
    # `where`, not a product: padding may hold logits that are not finite.
    return torch.where(is_labelled, losses, 0.0).sum() / count.clamp(min=1)
