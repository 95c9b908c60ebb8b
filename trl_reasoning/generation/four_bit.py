"""What 4-bit weights of bitsandbytes need so that training and comparing them is exact."""

from typing import Any


def keep_unpacked(model: Any) -> None:
    """
    Keep bitsandbytes from repacking 4-bit weights on the CPU.

    On a CPU with bfloat16 instructions the first forward pass in evaluation mode packs the weights for a kernel that
    computes in bfloat16 and has no backward pass. If training goes on afterwards (a held-out evaluation is enough), no
    gradient passes through these layers any more and nothing says so.

    Args:
        model (`torch.nn.Module`):
            Any model, changed in place; one without 4-bit layers stays as it is.
    """
    from bitsandbytes.nn import Linear4bit

    for module in model.modules():
        if isinstance(module, Linear4bit):
            module.support_avx512bf16_for_cpu = False
