"""From a GGUF file to a plain model in memory."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .exported import Exported, ExportError, settle_end_tokens


def read_gguf(folder: str, gguf_file: str, *, dtype: str = "auto") -> Exported:
    """
    Read a GGUF file as a plain model, which can be trained and saved like any other.

    Numbers that the file holds in few bits stay as coarse as they are there.

    Args:
        folder (`str`):
            Local folder or hub id with the file.
        gguf_file (`str`):
            Name of the file in it.
        dtype (`str`, *optional*, defaults to `"auto"`):
            As for [`merge`]; `auto` is bfloat16.

    Returns:
        [`Exported`]

    Raises:
        [`ExportError`]: when the package gguf or the file is missing.
    """
    exported = Exported(folder, "bfloat16" if dtype == "auto" else dtype, gguf_file=gguf_file)
    exported.model, exported.tokenizer = _load(folder, gguf_file, dtype=exported.dtype)
    settle_end_tokens(exported)
    return exported


def _load(folder: str, gguf_file: str, *, dtype: str = "bfloat16") -> tuple[Any, Any]:
    """transformers dequantises the weights; the result has no trace of the file's format and can be saved."""
    if find_spec("gguf") is None:
        raise ExportError("gguf_file: needs the package gguf: pip install 'trl-reasoning[gguf]'")
    if Path(folder).is_dir() and not (Path(folder) / gguf_file).is_file():
        found = ", ".join(sorted(path.name for path in Path(folder).glob("*.gguf"))) or "none"
        raise ExportError(f"gguf_file: no file {gguf_file!r} in {folder}; GGUF files there: {found}")
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    weights_dtype = getattr(torch, dtype)
    settings: dict[str, Any] = {"gguf_file": gguf_file, "dtype": weights_dtype}
    # Versions that can compute with the file's blocks keep them as they are unless told otherwise.
    if hasattr(transformers, "GgufConfig"):
        settings["quantization_config"] = transformers.GgufConfig(dequantize=True)
    loaded: Any = AutoModelForCausalLM.from_pretrained(folder, **settings)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=gguf_file)
    config = loaded.config
    vars(config).pop("quantization_config", None)
    # The loaded object keeps its quantiser and would not save; a fresh one of the same config has none.
    model: Any = AutoModelForCausalLM.from_config(config, dtype=weights_dtype)
    model.load_state_dict(loaded.state_dict())
    model.generation_config = loaded.generation_config
    return model.eval(), tokenizer
