"""Adapters on 4-bit and 8-bit weights."""

from typing import Any

import torch
from peft import PeftModel

from ..generation.four_bit import keep_unpacked


class QuantizedBase:
    """
    Mixin for TRL's trainers: a quantised base gets float32 adapters and keeps its layers in a form that has gradients.

    TRL turns the adapter on a quantised base into bfloat16, whose steps are 1/256 of a weight: an update of the size
    of reinforcement learning's rates (1e-5) is rounded away, and so is the start adapter itself. Adapters are small,
    the memory for float32 is some megabytes.
    """

    def __init__(self, model: Any, *args: Any, **kwargs: Any):
        start = _adapter_weights(model) if isinstance(model, PeftModel) and _is_quantized(model) else {}
        super().__init__(model, *args, **kwargs)  # type: ignore[call-arg]
        trained: Any = self.model  # type: ignore[attr-defined]
        if not _is_quantized(trained):
            return
        for name, weight in _adapter_weights(trained).items():
            if weight.dtype == torch.bfloat16:
                trained.get_parameter(name).data = start.get(name, weight).float()
        if trained.is_loaded_in_4bit:
            keep_unpacked(trained)


def _is_quantized(model: Any) -> bool:
    # Models that are not quantised do not have the attributes.
    return getattr(model, "is_loaded_in_4bit", False) or getattr(model, "is_loaded_in_8bit", False)


def _adapter_weights(model: Any) -> dict[str, torch.Tensor]:
    return {name: parameter.data for name, parameter in model.named_parameters() if parameter.requires_grad}
