"""Checks of LoRA settings against the model's modules, from its config alone."""

import re
from pathlib import Path
from typing import Any

from .errors import RecipeError, did_you_mean
from .recipe import Recipe
from .tokenizer import is_hub_model, resolve_model_path


def check_adapter(recipe: Recipe) -> None:
    """
    A saved adapter must be one, and every LoRA target must be the name of a module.

    The model is built without memory for its weights (torch's meta device).

    Raises:
        RecipeError: Names the target that matches nothing and the nearest module.
    """
    adapter = recipe.get("adapter_name_or_path")
    if adapter is not None and not is_hub_model(adapter) and not (Path(adapter) / "adapter_config.json").is_file():
        raise RecipeError(
            "adapter_name_or_path", f"{adapter} is not a folder with an adapter (no adapter_config.json)"
        )
    mixup = recipe.get("ref_model_mixup_alpha", 1.0)
    if recipe.get("sync_ref_model") and mixup != 1.0 and (adapter is not None or recipe.get("use_peft")):
        raise RecipeError(
            "ref_model_mixup_alpha", f"expected 1.0 with an adapter, whose two factors cannot be mixed, got {mixup}"
        )
    targets = recipe.get("lora_target_modules")
    if not recipe.get("use_peft") or targets in (None, "all-linear", ["all-linear"]):
        return
    model = _model_without_weights(recipe)
    modules = [name for name, _ in model.named_modules() if name]
    if isinstance(targets, str):  # PEFT takes one text as a regular expression over whole names
        if not any(re.fullmatch(targets, module) for module in modules):
            hint = _known(targets, model)
            raise RecipeError("lora_target_modules", f"the pattern {targets!r} matches no module.{hint}")
        return
    for target in targets:
        if not any(module == target or module.endswith(f".{target}") for module in modules):
            raise RecipeError("lora_target_modules", f"no module is called {target!r}.{_known(target, model)}")


def _known(target: str, model: Any) -> str:
    """The layers that an adapter can sit on: those with a matrix."""
    names = {name.split(".")[-2] for name, weight in model.named_parameters() if weight.ndim == 2}
    return f"{did_you_mean(target, names)} Layers: {', '.join(sorted(names))}; `all-linear` takes all linear ones."


def _model_without_weights(recipe: Recipe) -> Any:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    settings: Any = {"trust_remote_code": recipe.setting("trust_remote_code")}
    path = resolve_model_path(recipe)
    try:
        config = AutoConfig.from_pretrained(path, revision=recipe.setting("model_revision"), **settings)
    except (OSError, ValueError) as error:
        raise RecipeError("model_name_or_path", f"no model config in {path!r}: {error}") from error
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config, **settings)
