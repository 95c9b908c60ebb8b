"""Averaging the weights of models: Kimi's merge of a long thinker and a short one, without training."""

import math
from collections.abc import Sequence
from typing import Any, Literal

from ..generation import split_adapter
from .exported import Exported, ExportError
from .measuring import compare, probe_sequences, sequence_logits
from .merging import merge
from .quantized import Quantization, find_quantization, run_recipe
from .rounding import round_weights


# What a configuration says of a model's files and not of what it computes.
_FILE_KEYS = ("_name_or_path", "dtype", "torch_dtype", "transformers_version", "use_cache", "architectures")
_SHOWN = 3


def average(
    models: Sequence[str],
    weights: Sequence[float] | None = None,
    *,
    into: Literal["original", "dequantized"] = "original",
    quantization: Quantization | None = None,
    dtype: str = "auto",
    device: str | None = None,
    check: bool = True,
    tolerance: float | None = None,
) -> Exported:
    r"""
    Average the weights of models of one architecture, in float32, then rounded to the saved format.

    $$ W = \sum_i w_i W_i, \qquad \sum_i w_i = 1 $$

    A LoRA run counts as its base with the adapter merged into it. For adapters on one base $W_0$ this is the exact
    average of what they add, $W_0 + \sum_i w_i \frac{\alpha_i}{r_i} B_i A_i$; averaging the factors $B$ and $A$ would
    give another model. Runs with an adapter and full models can be mixed.

    Tokenizer, chat template, configuration, generation config and buffers are the first model's.

    Args:
        models (`Sequence[str]`):
            At least two: folders of LoRA runs, full models (folder or hub id) or `builtin:tiny`.
        weights (`Sequence[float]`, *optional*):
            One for each model, with the sum 1; equal ones by default. A negative one goes away from that model.
        into, quantization, dtype, device, tolerance:
            As for [`merge`], for each model that has an adapter. `auto` is the format of the first model's files.
        check (`bool`, *optional*, defaults to `True`):
            Whether to compare logits: each adapter's merge, and the average with each model.

    Returns:
        [`Exported`]: `differences` says by each model's name how far it is from the average.

    Raises:
        [`ExportError`]: for weights that do not fit, models of different architectures, shapes or vocabularies (with
            the names that differ), and as [`merge`].

    Reference: Kimi k1.5 (https://huggingface.co/papers/2501.12599), section 2.4.

    Example:

    ```python
    exported = average(["outputs/long", "outputs/short"], [0.5, 0.5])
    save_export(exported, "outputs/merged")
    ```
    """
    import torch

    shares = check_weights(models, weights)
    exported: Exported | None = None
    logits: dict[str, list[torch.Tensor]] = {}
    sequences: list[list[int]] = []
    merged_into = set()
    for name, share in zip(models, shares, strict=True):
        part = _load(name, into, quantization, device, check, tolerance)
        merged_into.add(part.merged_into)
        if exported is None:
            sequences = probe_sequences(part.tokenizer) if check else []
        else:
            _check_same(exported, part, models[0], name)
        logits[name] = sequence_logits(part.model, sequences)
        for parameter in part.model.parameters():
            parameter.data.mul_(share)
        if exported is None:
            exported = part
        else:
            _add(exported, part)
    assert exported is not None
    if into not in merged_into and into == "dequantized":
        raise ExportError("base: `dequantized` is for adapters that were trained on a 4-bit base; none of these was")
    exported.averaged = dict(zip(models, shares, strict=True))
    after = sequence_logits(exported.model, sequences)
    exported.differences = {name: compare(own, after) for name, own in logits.items() if own}
    exported.dtype = exported.stored_dtype if dtype == "auto" else dtype
    if exported.dtype != "float32":
        round_weights(exported, exported.model, getattr(torch, exported.dtype), sequences, after)
    exported.adapter = exported.merged_into = exported.quantization = None
    return exported


def check_weights(models: Sequence[str], weights: Sequence[float] | None) -> list[float]:
    """
    The weights of an average.

    Args:
        models (`Sequence[str]`):
            At least two different ones.
        weights (`Sequence[float]`, *optional*):
            One for each; equal ones by default.

    Returns:
        `list[float]`: with the sum 1.

    Raises:
        [`ExportError`]: says what does not fit.
    """
    if len(models) < 2:
        raise ExportError(f"average: expected at least two models, got {len(models)}")
    twice = [name for place, name in enumerate(models) if name in models[:place]]
    if twice:
        raise ExportError(f"average: {twice[0]} is named twice; give it a larger weight")
    if weights is None:
        return [1 / len(models)] * len(models)
    if len(weights) != len(models):
        raise ExportError(f"weights: {len(weights)} for {len(models)} models; give one for each")
    total = sum(weights)
    if not math.isclose(total, 1, abs_tol=1e-6):
        scaled = f"; with the sum 1 they are {[round(weight / total, 4) for weight in weights]}" if total > 0 else ""
        raise ExportError(f"weights: expected the sum 1, got {total:g}{scaled}")
    return list(weights)


def _load(
    model: str,
    into: Literal["original", "dequantized"],
    quantization: Quantization | None,
    device: str | None,
    check: bool,
    tolerance: float | None,
) -> Exported:
    """One model in float32, its adapter merged into it and measured."""
    _, adapter = split_adapter(model)
    own = None if adapter is None else quantization or find_quantization(run_recipe(adapter))
    part = merge(
        model,
        into=into if own is not None else "original",
        quantization=own,
        dtype="float32",
        device=device,
        check=check,
        tolerance=tolerance,
    )
    part.notes = [f"{model}: {note}" for note in part.notes]
    if adapter is not None:
        measured = f"; against base plus adapter {part.differences['merge']}" if check else ""
        if "four_bit" in part.differences:
            measured += f"; against the 4-bit base plus adapter {part.differences['four_bit']}"
        part.notes.append(f"{model}: adapter merged into {part.base} ({part.merged_into} weights){measured}")
    return part


def _check_same(first: Exported, other: Exported, first_name: str, other_name: str) -> None:
    """Everything that has to be equal for an average to mean something; what only may differ is noted."""
    where = f"average: {first_name} and {other_name}"
    if type(first.model) is not type(other.model):
        raise ExportError(f"{where} are a {type(first.model).__name__} and a {type(other.model).__name__}")
    shapes, others = (
        {name: tuple(parameter.shape) for name, parameter in part.model.named_parameters()} for part in (first, other)
    )
    missing = [f"{name} (only in one)" for name in shapes.keys() ^ others.keys()]
    unequal = [
        f"{name} ({shape}, {others[name]})"
        for name, shape in shapes.items()
        if name in others and others[name] != shape
    ]
    if missing or unequal:
        raise ExportError(f"{where} have different weights: {_some(sorted(missing + unequal))}")
    ours, theirs = (part.tokenizer.get_vocab() for part in (first, other))
    # Added tokens may be named anew, as the distilled models of DeepSeek do with those of Qwen.
    added = first.tokenizer.get_added_vocab().keys() | other.tokenizer.get_added_vocab().keys()
    changed = sorted(token for token in ours.keys() | theirs.keys() if ours.get(token) != theirs.get(token))
    shown = [f"{token!r} ({ours.get(token)}, {theirs.get(token)})" for token in changed]
    if not added.issuperset(changed):
        raise ExportError(f"{where} have different tokenizers; tokens and their ids: {_some(shown)}")
    if changed:
        first.notes.append(f"tokenizer of {first_name}; {other_name} has other added tokens: {_some(shown)}")
    if first.tokenizer.chat_template != other.tokenizer.chat_template:
        first.notes.append(f"chat template of {first_name}; that of {other_name} is another one")
    if first.tokenizer.eos_token != other.tokenizer.eos_token:
        first.notes.append(
            f"EOS {first.tokenizer.eos_token!r} of {first_name}; {other_name} has {other.tokenizer.eos_token!r}"
        )
    ours, theirs = (part.model.config.to_dict() for part in (first, other))
    keys = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
    keys = [key for key in keys if key not in _FILE_KEYS]
    if keys:
        first.notes.append(f"config of {first_name}; that of {other_name} differs in {', '.join(keys)}")


def _add(total: Exported, part: Exported) -> None:
    """Add the weights in place, so that two models are in memory at most."""
    own: dict[str, Any] = dict(part.model.named_parameters())
    for name, parameter in total.model.named_parameters():
        parameter.data.add_(own[name].data)
    total.notes += part.notes
    if part.stored_dtype != total.stored_dtype:
        total.notes.append(f"the files hold {total.stored_dtype} and {part.stored_dtype}")


def _some(entries: Sequence[str]) -> str:
    more = f" and {len(entries) - _SHOWN} more" if len(entries) > _SHOWN else ""
    return ", ".join(entries[:_SHOWN]) + more
