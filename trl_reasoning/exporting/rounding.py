"""The format of the saved weights, and what it costs to round to it."""

from typing import Any

from .exported import Exported
from .measuring import compare, sequence_logits


def round_weights(
    exported: Exported, model: Any, target: Any, sequences: list[list[int]], before: list[Any]
) -> list[Any]:
    """
    Round the weights in place and measure it: `differences["rounding"]`.

    Args:
        exported ([`Exported`]):
            Gets the difference.
        model ([`~transformers.PreTrainedModel`]):
            In float32.
        target (`torch.dtype`):
            The saved format.
        sequences (`list[list[int]]`):
            Token ids of the probes; without any nothing is measured.
        before (`list[torch.Tensor]`):
            Logits before the rounding, one tensor (T, V) a probe.

    Returns:
        `list[torch.Tensor]`: the logits that the rounded weights give in float32 arithmetic.
    """
    for parameter in model.parameters():
        parameter.data = parameter.data.to(target).float()
    after = sequence_logits(model, sequences)
    if sequences:
        exported.differences["rounding"] = compare(before, after)
    for parameter in model.parameters():
        parameter.data = parameter.data.to(target)
    return after


def saved_dtype(name: str, config: Any) -> Any:
    """The torch type of this name; `auto` is the format of the files that the configuration belongs to."""
    import torch

    if name == "auto":
        return config.dtype or torch.float32
    return getattr(torch, name)
