"""The number formats of a run: chosen for the device, with the reason."""

import os
from dataclasses import dataclass
from typing import Any

from .errors import RecipeError


_NO_BFLOAT16 = "the GPU has no bfloat16 arithmetic (compute capability below 8.0)"
_FROZEN_BASE = "The base weights are frozen, so bfloat16 loses no update and halves their memory."


@dataclass(frozen=True)
class Precision:
    """The chosen formats.

    Args:
        dtype (`str`):
            Format of the loaded weights: `"bfloat16"`, `"float16"`, `"float32"` or `"auto"`. Adapters are trained in
            float32 where they are not asked for in another format.
        bf16 (`bool`):
            Whether the forward pass runs under bfloat16 autocast.
        fp16 (`bool`):
            Whether the forward pass runs under float16 autocast.
        reason (`str`):
            One sentence.
    """

    dtype: str
    bf16: bool
    fp16: bool
    reason: str


def choose_precision(
    *,
    device_kind: str,
    capability: tuple[int, int] | None,
    lora: bool,
    quantized: bool,
    requested_dtype: str | None = None,
    bf16: bool | None = None,
    fp16: bool | None = None,
) -> Precision:
    """
    Choose the formats of weights and arithmetic for a device.

    What the recipe asks for wins where the device can do it. Otherwise: full fine-tuning keeps float32 weights, since
    a bfloat16 weight has 8 significant bits and an RL update of 1e-6 relative size is rounded away; frozen base
    weights under an adapter are bfloat16, which halves their memory.

    Args:
        device_kind (`str`):
            `"cpu"`, `"cuda"` or another torch device type.
        capability (`tuple[int, int]`, *optional*):
            CUDA compute capability, for instance `(8, 6)`.
        lora (`bool`):
            Whether only an adapter is trained.
        quantized (`bool`):
            Whether the base weights are stored in 4 or 8 bits; `dtype` is then the compute format.
        requested_dtype (`str`, *optional*):
            The recipe's `dtype`.
        bf16 (`bool`, *optional*):
            The recipe's `bf16`.
        fp16 (`bool`, *optional*):
            The recipe's `fp16`.

    Returns:
        [`Precision`]

    Raises:
        RecipeError: The device cannot do what the recipe asks for.

    Example:

    ```python
    >>> choice = choose_precision(device_kind="cuda", capability=(8, 6), lora=True, quantized=False)
    >>> choice.dtype, choice.bf16
    ('bfloat16', True)

    ```
    """
    _refuse_impossible(device_kind, capability, requested_dtype, bf16, fp16)
    default = _default(device_kind, capability, frozen_base=lora or quantized)
    asked = {"dtype": requested_dtype, "bf16": bf16, "fp16": fp16}
    asked = {key: value for key, value in asked.items() if value is not None}
    if not asked:
        return default
    chosen_fp16 = bool(fp16)
    chosen_bf16 = bf16 if bf16 is not None else default.bf16 and not chosen_fp16
    # float16 weights beside bfloat16 autocast would mix two half formats.
    if bf16 is None and requested_dtype == "float16":
        chosen_bf16 = False
    words = ", ".join(f"{key}: {str(value).lower()}" for key, value in asked.items())
    reason = f"The recipe asks for {words}"
    if requested_dtype in ("bfloat16", "float16") and not (lora or quantized):
        reason += f"; {requested_dtype} weights halve the memory but round small updates away"
    if requested_dtype is None:
        reason += f"; weights: {_lower_first(default.reason)}"
    return Precision(requested_dtype or default.dtype, chosen_bf16, chosen_fp16, reason.rstrip(".") + ".")


def device_facts(use_cpu: bool = False) -> tuple[str, tuple[int, int] | None]:
    """The device that a run will use and its CUDA capability (None elsewhere); accelerate may say CPU, too."""
    import torch

    if use_cpu or os.environ.get("ACCELERATE_USE_CPU", "").lower() == "true":
        return "cpu", None
    if torch.cuda.is_available():
        return "cuda", torch.cuda.get_device_capability()
    accelerator: Any = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return (accelerator.type if accelerator else "cpu"), None


def _default(device_kind: str, capability: tuple[int, int] | None, *, frozen_base: bool) -> Precision:
    if (device_kind == "cuda" and _has_bfloat16(capability)) or device_kind in ("xpu", "npu"):
        if frozen_base:
            return Precision("bfloat16", True, False, _FROZEN_BASE)
        return Precision(
            "float32",
            True,
            False,
            "Full fine-tuning keeps float32 master weights under bfloat16 autocast, since a bfloat16 weight cannot "
            "hold updates of the size of RL learning rates; `dtype: bfloat16` halves the memory of the weights.",
        )
    if device_kind == "cuda":
        return Precision(
            "float32",
            False,
            False,
            f"Everything is float32: {_NO_BFLOAT16}, and float16 overflows in RL (`fp16: true` asks for it).",
        )
    if device_kind == "cpu" and frozen_base:
        return Precision("bfloat16", False, False, _FROZEN_BASE)
    what = "Adapter and base weights" if frozen_base else "Full fine-tuning"
    return Precision("float32", False, False, f"{what} on {device_kind}: float32 throughout.")


def _refuse_impossible(
    device_kind: str,
    capability: tuple[int, int] | None,
    requested_dtype: str | None,
    bf16: bool | None,
    fp16: bool | None,
) -> None:
    if bf16 and fp16:
        raise RecipeError("bf16", "set together with `fp16`; keep one of the two")
    old_gpu = device_kind == "cuda" and not _has_bfloat16(capability)
    if old_gpu and bf16:
        raise RecipeError("bf16", f"{_NO_BFLOAT16}; remove the key (float32), or write `fp16: true`")
    if old_gpu and requested_dtype == "bfloat16":
        raise RecipeError("dtype", f"{_NO_BFLOAT16}; write `dtype: float32` or `dtype: float16`")
    if fp16 and device_kind == "cpu":
        raise RecipeError("fp16", "float16 autocast needs a GPU; remove the key, or write `bf16: true`")


def _has_bfloat16(capability: tuple[int, int] | None) -> bool:
    return capability is not None and capability >= (8, 0)


def _lower_first(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]
