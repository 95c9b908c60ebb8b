"""The folder of an export: whether it may be written, and its files."""

import json
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from .. import __version__
from .exported import Exported, ExportError, describe


EXPORT_FILE = "export.json"
# What an export writes; an earlier one's are deleted, since a model in more parts would otherwise leave some behind.
_OWN_FILES = (
    "*.safetensors",
    "*.safetensors.index.json",
    "config.json",
    "generation_config.json",
    "chat_template.jinja",
    "tokenizer*",
    "special_tokens_map.json",
    "vocab.json",
    "merges.txt",
    "README.md",
    EXPORT_FILE,
)
# A pipeline's stage has these in its folder before the command starts.
_PIPELINE_FILES = ("stage.json", "log.txt")


def check_output(output_dir: str | Path, *, sources: list[str | None], restart: bool = False) -> Path:
    """
    Whether an export may be written to a folder.

    Args:
        output_dir (`str` or `Path`):
            The folder; an earlier export in it is replaced.
        sources (`list[str | None]`):
            The folders that are read.
        restart (`bool`, *optional*, defaults to `False`):
            Write into a folder that holds other files, too. They stay, but for a model's own files.

    Returns:
        `Path`: the folder.

    Raises:
        [`ExportError`]: when it holds something else.
    """
    folder = Path(output_dir)
    if folder.resolve() in [Path(source).resolve() for source in sources if source is not None]:
        raise ExportError(f"output_dir: {folder} is the folder that is exported; choose another")
    if folder.exists() and not folder.is_dir():
        raise ExportError(f"output_dir: {folder} is a file")
    if (folder / "adapter_config.json").exists():
        raise ExportError(
            f"output_dir: {folder} holds an adapter, which would be put on the merged model again; choose another"
        )
    found = sorted(path.name for path in folder.glob("*") if path.name not in _PIPELINE_FILES)
    if found and EXPORT_FILE not in found and not restart:
        shown = ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")
        raise ExportError(
            f"output_dir: {folder} is not empty ({shown}) and no export; choose another, or --restart to write into it"
        )
    return folder


def save_export(exported: Exported, output_dir: str | Path) -> Path:
    """
    Write the model, its tokenizer, a card and `export.json` with what was merged and measured.

    Args:
        exported ([`Exported`]):
            From [`merge`], [`average`] or [`read_gguf`].
        output_dir (`str` or `Path`):
            A folder that [`check_output`] let pass.

    Returns:
        `Path`: the folder.
    """
    folder = Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in _OWN_FILES:
        for path in folder.glob(pattern):
            path.unlink()
    # First, so that an export that was stopped half-way is known as one.
    (folder / EXPORT_FILE).write_text(json.dumps({"status": "started"}) + "\n")
    exported.model.save_pretrained(folder)
    exported.tokenizer.save_pretrained(folder)
    (folder / "README.md").write_text(_card(exported, folder.name))
    record = {
        "status": "finished",
        "base": exported.base,
        "adapter": exported.adapter,
        "merged_into": exported.merged_into,
        "averaged": exported.averaged or None,
        "gguf_file": exported.gguf_file,
        "dtype": exported.dtype,
        "quantization": asdict(exported.quantization) if exported.quantization else None,
        "differences": {name: asdict(difference) for name, difference in exported.differences.items()},
        "notes": exported.notes,
        "packages": {name: version(name) for name in ("torch", "transformers", "peft")},
        "version": __version__,
    }
    (folder / EXPORT_FILE).write_text(json.dumps(record, indent=2) + "\n")
    return folder


def _card(exported: Exported, name: str) -> str:
    lines = "\n".join(f"- {line}" for line in describe(exported))
    base = "" if Path(exported.base).exists() or exported.base.startswith("builtin:") else exported.base
    head = ["library_name: transformers", "pipeline_tag: text-generation", "tags: [trl-reasoning]"]
    head += [f"base_model: {base}"] if base else []
    return (
        "---\n"
        + "\n".join(head)
        + f"\n---\n\n# {name}\n\nA plain model folder, written by `trl-reasoning export`.\n\n"
        f"{lines}\n\n"
        "It loads with `AutoModelForCausalLM.from_pretrained` and with `vllm serve`. For llama.cpp:\n\n"
        "    python convert_hf_to_gguf.py FOLDER --outfile model.gguf --outtype bf16\n"
        "    llama-quantize model.gguf model-Q4_K_M.gguf Q4_K_M\n"
    )
