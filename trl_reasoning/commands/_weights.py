"""The weights that a command's settings name: their format, and the model in memory."""

from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from ..generation import TransformersBackend
    from ._sampling import SamplingSettings


def weight_format(settings: "SamplingSettings") -> dict[str, Any]:
    """
    The format of the weights: `dtype`, and with `load_in_4bit` how the base is quantised.

    What the settings leave open is, for the adapter of a run on a 4-bit base, what the run's `resolved.yaml` says: the
    adapter fits the numbers of that base.
    """
    if not settings.load_in_4bit:
        return {"dtype": settings.dtype}
    from ..exporting.quantized import Quantization, find_quantization, run_recipe

    run = find_quantization(run_recipe(settings.adapter or settings.model))
    default = run or Quantization()
    quant_type, nested = settings.bnb_4bit_quant_type, settings.use_bnb_nested_quant
    return {
        "dtype": run.dtype if run is not None and settings.dtype == "auto" else settings.dtype,
        "bnb_4bit_quant_type": default.quant_type if quant_type is None else quant_type,
        "use_bnb_nested_quant": default.nested if nested is None else nested,
    }


def load_model(settings: "SamplingSettings") -> "TransformersBackend":
    """The model that the settings name."""
    from ..generation import load_backend

    return load_backend(
        settings.model,
        settings.adapter,
        load_in_4bit=settings.load_in_4bit,
        **weight_format(settings),
        device=settings.device,
        batch_size=settings.batch_size,
    )
