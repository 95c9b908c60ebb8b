"""Load a model for generation, and name its weights by their content."""

import hashlib
import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..builtin import resolve_model
from ..errors import UserError
from .backends import TransformersBackend


if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

_WEIGHT_FILES = ("*.safetensors", "*.bin", "config.json", "adapter_config.json")
# What a head is called, the method that trains it, and its task in an adapter's configuration.
_HEADS = {
    "ForCausalLM": ("causal language model", "sft", "CAUSAL_LM"),
    "ForSequenceClassification": ("sequence classification model with one label", "reward", "SEQ_CLS"),
    "ForTokenClassification": ("token classification model", "prm", "TOKEN_CLS"),
}


def load_backend(
    model_name_or_path: str,
    adapter_name_or_path: str | None = None,
    *,
    dtype: str = "auto",
    load_in_4bit: bool = False,
    bnb_4bit_quant_type: Literal["nf4", "fp4"] = "nf4",
    use_bnb_nested_quant: bool = False,
    device: str | None = None,
    batch_size: int = 32,
) -> TransformersBackend:
    """
    Load a model, its tokenizer and optionally a LoRA adapter.

    Args:
        model_name_or_path (`str`):
            `builtin:tiny`, a local folder or a hub id. A folder that holds only an adapter loads the base that the
            adapter names.
        adapter_name_or_path (`str`, *optional*):
            Folder or hub id of a LoRA adapter to put on the model.
        dtype (`str`, *optional*, defaults to `"auto"`):
            `float32`, `bfloat16`, `float16`; `auto` takes bfloat16 on an accelerator that computes in it, float16 on
            an older one and float32 on the CPU.
        load_in_4bit (`bool`, *optional*, defaults to `False`):
            Quantize the base with bitsandbytes; the arithmetic is in `dtype`.
        bnb_4bit_quant_type (`"nf4"` or `"fp4"`, *optional*, defaults to `"nf4"`):
            The 4-bit numbers.
        use_bnb_nested_quant (`bool`, *optional*, defaults to `False`):
            Whether the block scales are quantised, too.
        device (`str`, *optional*):
            `cpu`, `cuda`, `cuda:1`, `mps`; the first accelerator where there is one.
        batch_size (`int`, *optional*, defaults to `32`):
            Most rows in one batch.

    Returns:
        [`TransformersBackend`].
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    base, adapter = split_adapter(model_name_or_path, adapter_name_or_path)
    target = torch.device(device or default_device())
    torch_dtype = dtype_of(dtype, target)
    quantization = {}
    if load_in_4bit:
        quantization["quantization_config"] = _four_bit(torch_dtype, bnb_4bit_quant_type, use_bnb_nested_quant)
    base_path = resolve_model(base)
    model: Any = AutoModelForCausalLM.from_pretrained(base_path, dtype=torch_dtype, device_map=target, **quantization)
    if adapter is not None:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, adapter)
    has_tokenizer = adapter is not None and (Path(adapter) / "tokenizer_config.json").is_file()
    tokenizer = AutoTokenizer.from_pretrained(adapter if has_tokenizer else base_path)
    name = base if adapter is None else f"{base} + {adapter}"
    if load_in_4bit:  # other numbers than the files hold, so that their samples are not taken for each other
        name += f" (4-bit {bnb_4bit_quant_type}{', nested' if use_bnb_nested_quant else ''})"
    weights = weights_hash(model_name_or_path, adapter_name_or_path)
    return TransformersBackend(model.eval(), tokenizer, batch_size, name=name, weights=weights)


def check_model_folder(path: str, architecture: str) -> None:
    """
    Check that a folder holds a model with the head that is needed. Names that are no folder pass.

    Args:
        path (`str`):
            Builtin name, folder with a model or with an adapter alone, or hub id.
        architecture (`str`):
            What the class of the model ends with: `"ForCausalLM"`, `"ForSequenceClassification"` or
            `"ForTokenClassification"`.

    Raises:
        ValueError: The folder holds another kind of model, or an adapter for another task. Begins with `model: `.
    """
    folder = Path(resolve_model(path))
    kind, method, task = _HEADS[architecture]
    if (folder / "config.json").is_file():
        found = json.loads((folder / "config.json").read_text()).get("architectures") or ["a model without a name"]
        if any(architecture in name for name in found):
            return
        holds = found[0]
    elif (folder / "adapter_config.json").is_file():
        found = json.loads((folder / "adapter_config.json").read_text()).get("task_type")
        if found == task:
            return
        holds = f"an adapter for the task {found}"
    else:
        return
    raise ValueError(f"model: {path} holds {holds}, not a {kind}; train one with `method: {method}`")


def split_adapter(model_name_or_path: str, adapter_name_or_path: str | None = None) -> tuple[str, str | None]:
    """
    Base and adapter of a model that may itself be a folder with an adapter.

    Args:
        model_name_or_path (`str`):
            A model, or the folder of a LoRA run.
        adapter_name_or_path (`str`, *optional*):
            An adapter named beside it.

    Returns:
        `tuple[str, str | None]`: the base model and the adapter.

    Raises:
        [`~trl_reasoning.errors.UserError`]: for an adapter on top of an adapter.
    """
    folder = Path(model_name_or_path)
    if not (folder / "adapter_config.json").is_file() or (folder / "config.json").is_file():
        return model_name_or_path, adapter_name_or_path
    if adapter_name_or_path is not None:
        raise UserError(
            f"adapter: {model_name_or_path} is itself an adapter; name its base as the model, or merge it first with "
            "`trl-reasoning export`"
        )
    settings = json.loads((folder / "adapter_config.json").read_text())
    return settings["base_model_name_or_path"], model_name_or_path


def weights_hash(model_name_or_path: str, adapter_name_or_path: str | None = None) -> str:
    """
    A name for the weights behind a model: the hash of local weight files, the name itself for a hub id.

    Needs no model in memory, so that a command can tell quickly whether its work is already done.

    Args:
        model_name_or_path (`str`):
            As for [`load_backend`].
        adapter_name_or_path (`str`, *optional*):
            As for [`load_backend`].

    Returns:
        `str`: 64 hexadecimal digits.
    """
    base, adapter = split_adapter(model_name_or_path, adapter_name_or_path)
    digest = hashlib.sha256()
    for part in (resolve_model(base), adapter):
        folder = Path(part) if part is not None else None
        if folder is None or not folder.is_dir():
            digest.update(f"name:{part}".encode())
            continue
        for file in sorted({found for pattern in _WEIGHT_FILES for found in folder.glob(pattern)}):
            with file.open("rb") as stream:
                digest.update(file.name.encode() + hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def parameters_hash(model: "PreTrainedModel") -> str:
    """Hash of every parameter of a model in memory, for instance in the middle of its training."""
    import torch

    digest = hashlib.sha256()
    for name, parameter in sorted(model.named_parameters()):
        raw = parameter.detach().cpu().contiguous().flatten().view(torch.uint8)
        digest.update(name.encode() + raw.numpy().tobytes())
    return digest.hexdigest()


def default_device() -> str:
    """The first accelerator of this machine, or the CPU."""
    import torch

    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return "cpu" if accelerator is None else accelerator.type


def dtype_of(name: str, device: "torch.device") -> "torch.dtype":
    """The torch type of this name; `auto` is what the device computes in natively, float32 on a CPU."""
    import torch

    named = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if name in named:
        return named[name]
    if name != "auto":
        raise UserError(f"dtype: expected auto or one of {sorted(named)}, got {name!r}")
    if device.type == "cpu":
        return torch.float32
    # Emulated bfloat16 (Turing and older) is slower than float16.
    native = device.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.bfloat16 if native else torch.float16


def _four_bit(compute_dtype: "torch.dtype", quant_type: str, nested: bool) -> Any:
    from transformers import BitsAndBytesConfig

    if find_spec("bitsandbytes") is None:
        raise UserError("load_in_4bit needs bitsandbytes: pip install 'trl-reasoning[quantization]'")
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type=quant_type,
        bnb_4bit_use_double_quant=nested,
        bnb_4bit_compute_dtype=compute_dtype,
    )
