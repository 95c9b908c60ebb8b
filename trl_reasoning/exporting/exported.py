"""An exported model and what is known of it."""

from dataclasses import dataclass, field
from typing import Any

from ..errors import UserError
from .measuring import Difference
from .quantized import Quantization


class ExportError(UserError):
    """An export that cannot be made as it was asked for, or whose model is not what was trained."""


@dataclass
class Exported:
    """
    A model that is ready to be saved, and what is known of it.

    Args:
        base (`str`):
            What the model was made from.
        dtype (`str`):
            Format of the weights.
        model ([`~transformers.PreTrainedModel`]):
            The plain model.
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The adapter's tokenizer where it brought one, else the base's.
        adapter (`str`, *optional*):
            The merged adapter.
        merged_into (`str`, *optional*):
            `original` or `dequantized` weights of the base.
        gguf_file (`str`, *optional*):
            The GGUF file that was read.
        quantization ([`Quantization`], *optional*):
            How the base was quantised in training.
        stored_dtype (`str`, *optional*):
            Format of the base's own files.
        averaged (`dict[str, float]`):
            The models that were averaged and their weights.
        differences (`dict[str, Difference]`):
            `merge`: the merged model against what was trained (base plus adapter; with `dequantized` weights the 4-bit
            base plus adapter), both in float32. `rounding`: what the step from there to `dtype` changes. `four_bit`:
            the saved model against the 4-bit base plus adapter, where it was merged into the original weights. For an
            average each model's name: that model against the average, in float32.
        notes (`list[str]`):
            What the user should know.
    """

    base: str
    dtype: str
    model: Any = None
    tokenizer: Any = None
    adapter: str | None = None
    merged_into: str | None = None
    gguf_file: str | None = None
    quantization: Quantization | None = None
    stored_dtype: str = ""
    averaged: dict[str, float] = field(default_factory=dict)
    differences: dict[str, Difference] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def describe(exported: Exported) -> list[str]:
    """
    What was merged and how it was measured, a line each, for the terminal and the model card.

    Args:
        exported ([`Exported`]):
            From [`merge`], [`average`] or [`read_gguf`].

    Returns:
        `list[str]`
    """
    if exported.averaged:
        parts = ", ".join(f"{weight:g} x {model}" for model, weight in exported.averaged.items())
        lines = [f"Average of weights in float32, saved as {exported.dtype}: {parts}."]
    elif exported.gguf_file is not None:
        lines = [f"Weights of {exported.gguf_file} (GGUF, dequantised), saved as {exported.dtype}."]
    elif exported.adapter is None:
        lines = [f"Weights of {exported.base}, saved as {exported.dtype}."]
    else:
        into = "its dequantised 4-bit weights" if exported.merged_into == "dequantized" else "its original weights"
        lines = [
            f"LoRA adapter {exported.adapter} merged into {exported.base} ({into}) in float32, "
            f"saved as {exported.dtype}."
        ]
    trained = "the 4-bit base plus adapter" if exported.merged_into == "dequantized" else "base plus adapter"
    labels = {
        "merge": f"merged against {trained}, in float32",
        "rounding": f"rounded to {exported.dtype} against float32",
        "four_bit": "saved model against the 4-bit base plus adapter that was trained",
    }
    labels |= {model: f"the average against {model}" for model in exported.averaged}
    lines += [f"{labels[name]}: {difference}" for name, difference in exported.differences.items()]
    if exported.quantization is not None and exported.merged_into == "original":
        lines.append(
            "the adapter was trained on a 4-bit base and fits its numbers; `--base dequantized` merges into those"
        )
    return [*lines, *exported.notes]


def settle_end_tokens(exported: Exported) -> None:
    """
    Put the tokenizer's EOS among the tokens that stop an engine, and name a pad token.

    An adapter's run may have changed the tokenizer's EOS; the base's generation config does not know it.

    Args:
        exported ([`Exported`]):
            Its model's generation config is changed.
    """
    config, tokenizer = exported.model.generation_config, exported.tokenizer
    configured = config.eos_token_id
    ids = configured if isinstance(configured, list) else [] if configured is None else [configured]
    end = tokenizer.eos_token_id
    if end is not None and end not in ids:
        config.eos_token_id = [end, *ids] if ids else end
        exported.notes.append(f"generation_config.json now stops at {tokenizer.eos_token!r}, too")
    if config.pad_token_id is None and tokenizer.pad_token_id is not None:
        config.pad_token_id = tokenizer.pad_token_id
