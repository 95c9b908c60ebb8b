"""The 4-bit base that an adapter was trained on: its settings, its exact numbers, its logits in float32."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from ..config.recipe import read_mapping
from ..errors import UserError
from ..generation.four_bit import keep_unpacked


@dataclass(frozen=True)
class Quantization:
    """
    How a training run quantised its base; the defaults are those of [`~trl.ModelConfig`].

    Args:
        quant_type (`"nf4"` or `"fp4"`, *optional*, defaults to `"nf4"`):
            `bnb_4bit_quant_type` of the recipe.
        nested (`bool`, *optional*, defaults to `False`):
            `use_bnb_nested_quant` of the recipe: the block scales are quantised, too.
        dtype (`str`, *optional*, defaults to `"bfloat16"`):
            `dtype` of the recipe: the format in which the weights were loaded before they were quantised.
    """

    quant_type: Literal["nf4", "fp4"] = "nf4"
    nested: bool = False
    dtype: str = "bfloat16"


def find_quantization(recipe: dict[str, Any]) -> Quantization | None:
    """
    How a training run quantised its base to 4 bits.

    Args:
        recipe (`dict[str, Any]`):
            The run's resolved recipe, see [`run_recipe`].

    Returns:
        [`Quantization`], or `None` where the recipe does not say `load_in_4bit`.
    """
    if not recipe.get("load_in_4bit"):
        return None
    given = {
        "quant_type": recipe.get("bnb_4bit_quant_type"),
        "nested": recipe.get("use_bnb_nested_quant"),
        "dtype": recipe.get("dtype"),
    }
    return Quantization(**{key: value for key, value in given.items() if value is not None})


def run_recipe(folder: str | Path) -> dict[str, Any]:
    """
    The resolved recipe of the run that made an adapter.

    Args:
        folder (`str` or `Path`):
            A run's output folder or one of its checkpoints.

    Returns:
        `dict[str, Any]`: what its `resolved.yaml` says; empty where there is none.
    """
    path = Path(folder).absolute()
    run = path.parent if path.name.startswith("checkpoint-") else path
    file = run / "resolved.yaml"
    return read_mapping(file) if file.is_file() else {}


def load_quantized(base: str, quantization: Quantization, *, device: str, revision: str | None = None) -> Any:
    """
    Load the 4-bit base of a training run so that it computes in float32.

    Its weights are the run's; only the arithmetic differs, so that its logits can be compared to the last digit.

    Args:
        base (`str`):
            Folder or hub id of the base.
        quantization ([`Quantization`]):
            How the run quantised it; a base that is stored in 4 bits keeps its own settings.
        device (`str`):
            Where to quantise it. The rounding of the block scales may differ between devices.
        revision (`str`, *optional*):
            Revision of the base on the hub.

    Returns:
        [`~transformers.PreTrainedModel`] in evaluation mode.

    Raises:
        [`~trl_reasoning.errors.UserError`]: when bitsandbytes is missing.
    """
    if find_spec("bitsandbytes") is None:
        raise UserError("a 4-bit base needs bitsandbytes: pip install 'trl-reasoning[quantization]'")
    import torch
    from bitsandbytes.nn import Linear4bit
    from transformers import AutoConfig, AutoModelForCausalLM, BitsAndBytesConfig

    settings: dict[str, Any] = {}
    if not is_stored_quantized(AutoConfig.from_pretrained(base, revision=revision)):
        settings["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type=quantization.quant_type,
            bnb_4bit_use_double_quant=quantization.nested,
            bnb_4bit_compute_dtype=torch.float32,
        )
    dtype = quantization.dtype if quantization.dtype == "auto" else getattr(torch, quantization.dtype)
    model: Any = AutoModelForCausalLM.from_pretrained(
        base, dtype=dtype, revision=revision, device_map=device, **settings
    ).eval()
    for module in model.modules():
        if isinstance(module, Linear4bit):
            module.compute_dtype, module.compute_type_is_set = torch.float32, True
            module.weight.quant_state.dtype = torch.float32  # type: ignore[union-attr]
    keep_unpacked(model)
    return compute_in_float32(model)


def compute_in_float32(model: Any) -> Any:
    """Turn every weight of a model that is not stored in 4 bits into float32, which loses nothing."""
    from bitsandbytes.nn import Params4bit

    for parameter in model.parameters():
        if not isinstance(parameter, Params4bit):
            parameter.data = parameter.data.float()
    return model


def is_stored_quantized(config: Any) -> bool:
    """Whether a model's files hold quantised weights, so that there are no original ones."""
    return getattr(config, "quantization_config", None) is not None


def dequantize(model: Any) -> Any:
    """
    Turn a model of [`load_quantized`] into a plain float32 one with exactly the numbers that it computes with.

    Args:
        model ([`~transformers.PreTrainedModel`]):
            The 4-bit model; its modules are replaced.

    Returns:
        [`~transformers.PreTrainedModel`] without a quantisation config.
    """
    import torch
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # it names the format of every weight as a warning
    try:
        return model.dequantize(dtype=torch.float32).eval()
    finally:
        logging.set_verbosity(verbosity)
