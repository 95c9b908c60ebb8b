"""Merging a LoRA adapter into its base, measured before it is saved."""

import warnings
from pathlib import Path
from typing import Any, Literal

from ..builtin import resolve_model
from ..generation import split_adapter
from .exported import Exported, ExportError, settle_end_tokens
from .measuring import compare, probe_sequences, sequence_logits
from .quantized import (
    Quantization,
    compute_in_float32,
    dequantize,
    find_quantization,
    is_stored_quantized,
    load_quantized,
    run_recipe,
)
from .rounding import round_weights, saved_dtype


# Warnings of PEFT that a user can do nothing about here: it reads a name that transformers 5.24 renamed, and it warns
# of a merge with tied embeddings, whose result is measured and noted.
_KNOWN_WARNINGS = (
    ("`is_gradient_checkpointing` is deprecated", FutureWarning),
    ("Model has `tie_word_embeddings=True` and a tied layer is part of the adapter", UserWarning),
    ("Input and output embeddings are no longer tied", UserWarning),
)

# Float32 rounding, relative to the largest logit: merges of SmolLM2-135M differ by 1e-4 to 2e-4.
_FLOAT32_ROUNDING = 1e-5


def merge(
    model: str,
    adapter: str | None = None,
    *,
    into: Literal["original", "dequantized"] = "original",
    quantization: Quantization | None = None,
    dtype: str = "auto",
    device: str | None = None,
    check: bool = True,
    tolerance: float | None = None,
) -> Exported:
    r"""
    Merge a LoRA adapter into its base: $W + \frac{\alpha}{r} B A$ in float32, then rounded to the saved format.

    The base's own files are not touched. A full model without an adapter is only brought into the format `dtype`.

    An adapter that was trained on a 4-bit base fits the numbers of that base, not the original ones. Merged into
    `dequantized` weights it gives the model that was trained; merged into the `original` ones it gives a near one, and
    `differences["four_bit"]` says how near.

    Args:
        model (`str`):
            Folder of a LoRA run, a full model (folder or hub id) or `builtin:tiny`.
        adapter (`str`, *optional*):
            Folder of an adapter to merge into a full model.
        into (`"original"` or `"dequantized"`, *optional*, defaults to `"original"`):
            The weights to merge into; `dequantized` is for adapters that were trained on a 4-bit base.
        quantization ([`Quantization`], *optional*):
            How the base was quantised in training; by default what the run's `resolved.yaml` says.
        dtype (`str`, *optional*, defaults to `"auto"`):
            Format of the saved weights: `bfloat16`, `float16`, `float32`, or `auto` for the base's own.
        device (`str`, *optional*):
            Where to merge, `cpu`, `cuda`, ...; the first accelerator where there is one. It holds the whole model in
            float32.
        check (`bool`, *optional*, defaults to `True`):
            Whether to compare logits.
        tolerance (`float`, *optional*):
            Largest allowed difference of a logit between what was trained and the merged model, both in float32. By
            default 1e-4, or 1e-5 of the largest logit where that is more.

    Returns:
        [`Exported`]

    Raises:
        [`ExportError`]: when the merged model differs by more than `tolerance`, the settings contradict each other, or
            the model or the adapter is no causal language model: its head would be lost.
    """
    from transformers import AutoConfig, AutoTokenizer

    base, adapter = split_adapter(model, adapter)
    recipe: dict[str, Any] = {}
    if adapter is not None:
        recipe = run_recipe(adapter)
        quantization = quantization or find_quantization(recipe)
    if adapter == model and str(recipe.get("model_name_or_path")).startswith("builtin:"):
        base = recipe["model_name_or_path"]  # the adapter names the folder that it was on that machine
    path = resolve_model(base)
    revision = recipe.get("model_revision")
    config = AutoConfig.from_pretrained(path, revision=revision)
    _check_head(base, adapter, config)
    _check_settings(base, adapter, into, quantization, is_stored_quantized(config))
    target = saved_dtype(dtype, config)
    exported = Exported(base, str(target).removeprefix("torch."), adapter=adapter, quantization=quantization)
    exported.stored_dtype = str(saved_dtype("auto", config)).removeprefix("torch.")
    if recipe.get("load_in_8bit"):
        exported.notes.append("trained on an 8-bit base; how far the merged model is from that was not measured")
    if adapter is not None:
        exported.merged_into = into
    if adapter is not None and (Path(adapter) / "tokenizer_config.json").is_file():
        exported.tokenizer = AutoTokenizer.from_pretrained(adapter)
    else:
        exported.tokenizer = AutoTokenizer.from_pretrained(path, revision=revision)
    sequences = probe_sequences(exported.tokenizer) if check else []
    with warnings.catch_warnings():
        for message, category in _KNOWN_WARNINGS:
            warnings.filterwarnings("ignore", message, category)
        _build(exported, path, revision, device or _default_device(), target, sequences, tolerance)
    settle_end_tokens(exported)
    return exported


def _check_head(base: str, adapter: str | None, config: Any) -> None:
    """Read as a language model, a reward model would lose the head that was trained, without an error."""
    from peft import PeftConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    if adapter is not None:
        task = PeftConfig.from_pretrained(adapter).task_type
        if task not in (None, "CAUSAL_LM"):
            raise ExportError(
                f"model: {adapter} holds an adapter for the task {task}, whose head a language model does not have; "
                "the scorers and `reward_model` read such a folder as it is"
            )
    names = config.architectures or []
    known = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    if names and not known.intersection(names):
        raise ExportError(
            f"model: {base} holds {names[0]}, not a causal language model, and its head would be lost; the scorers "
            "and `reward_model` read such a folder as it is"
        )


def _check_settings(
    base: str, adapter: str | None, into: str, quantization: Quantization | None, is_stored_quantized: bool
) -> None:
    if into == "dequantized" and quantization is None:
        if adapter is None:
            reason = f"{base} is merged with no adapter"
        else:
            reason = f"no resolved.yaml beside {adapter} says so; where it was, add `--load_in_4bit true`"
        raise ExportError(f"base: `dequantized` is for an adapter that was trained on a 4-bit base, and {reason}")
    if is_stored_quantized and not (into == "dequantized" and quantization is not None):
        raise ExportError(
            f"base: the files of {base} hold quantised weights, so there are no original ones; add "
            "`--base dequantized --load_in_4bit true`"
        )


def _build(
    exported: Exported,
    path: str,
    revision: str | None,
    device: str,
    target: Any,
    sequences: list[list[int]],
    tolerance: float | None,
) -> None:
    """Fill in the model and the differences; one model at a time is in memory."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    adapter, quantization = exported.adapter, exported.quantization
    model: Any = None
    four_bit: list[torch.Tensor] = []
    if quantization is not None and (sequences or exported.merged_into == "dequantized"):
        model = load_quantized(path, quantization, device=device, revision=revision)
        if sequences:
            trained: Any = compute_in_float32(PeftModel.from_pretrained(model, str(adapter)).eval())
            four_bit = sequence_logits(trained, sequences)
            model = trained.unload()
        model = dequantize(model) if exported.merged_into == "dequantized" else None
    if model is None:
        model = AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.float32, revision=revision, device_map=device
        ).eval()
    reference: list[torch.Tensor] = []
    if adapter is not None:
        trained = PeftModel.from_pretrained(model, adapter).float().eval()
        reference = four_bit if exported.merged_into == "dequantized" else sequence_logits(trained, sequences)
        model = _unload(trained, exported.notes)
    logits = sequence_logits(model, sequences)
    if reference:
        exported.differences["merge"] = compare(reference, logits)
        _refuse_unequal(exported, tolerance)
    if target != torch.float32:
        logits = round_weights(exported, model, target, sequences, logits)
    if four_bit and exported.merged_into == "original":
        exported.differences["four_bit"] = compare(four_bit, logits)
    exported.model = model


def _unload(model: Any, notes: list[str]) -> Any:
    """PEFT's merge, where tied embeddings that an adapter trained apart become two matrices."""
    was_tied = model.config.tie_word_embeddings
    merged = model.merge_and_unload(safe_merge=True)
    if was_tied and not merged.config.tie_word_embeddings:
        notes.append("the adapter trained the output matrix apart, so it is no longer tied to the input embeddings")
    return merged.eval()


def _refuse_unequal(exported: Exported, tolerance: float | None) -> None:
    difference = exported.differences["merge"]
    # Also refuses NaN, which compares as false.
    allowed = max(1e-4, _FLOAT32_ROUNDING * difference.scale) if tolerance is None else tolerance
    if not difference.max <= allowed:
        raise ExportError(
            f"the merged model is not what was trained: {difference}; allowed is {allowed:.2g}. `--tolerance` allows "
            "more (a rounding error grows with the size of the logits), `--no_check` leaves the comparison out"
        )


def _default_device() -> str:
    import torch

    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return "cpu" if accelerator is None else accelerator.type
