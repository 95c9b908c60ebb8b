"""From a recipe's values to the objects that a trainer takes: configuration, model settings, adapter, rewards."""

import dataclasses
import os
from typing import Any

from .errors import RecipeError
from .precision import Precision, choose_precision, device_facts
from .recipe import Recipe
from .rewards import RewardFunction, make_rewards


# Settings that `resolved.yaml` names even where they are defaults: they decide what was trained.
_RECORDED = (
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "num_generations",
    "num_iterations",
    "max_completion_length",
    "max_length",
    "temperature",
    "beta",
    "loss_type",
    "scale_rewards",
    "learning_rate",
    "seed",
)


# PEFT trains and saves the head of a model that does not write text only under that model's task.
LORA_TASKS = {
    "AutoModelForCausalLM": "CAUSAL_LM",
    "AutoModelForSequenceClassification": "SEQ_CLS",
    "AutoModelForTokenClassification": "TOKEN_CLS",
}


def build_arguments(
    recipe: Recipe, *, device: tuple[str, tuple[int, int] | None] | None = None
) -> tuple[Recipe, Any, Any, Precision, list[RewardFunction]]:
    """
    Build what a trainer takes, but for the model and the data.

    Args:
        recipe ([`Recipe`]):
            The recipe.
        device (`tuple[str, tuple[int, int] | None]`, *optional*):
            Device type and CUDA capability to choose the precision for; this machine's when not given.

    Returns:
        `tuple`: the resolved recipe, the method's configuration, `trl.ModelConfig`, the precision and the rewards.

    Raises:
        RecipeError: The device cannot do what the recipe asks for, or the configuration class refuses a value.
    """
    from trl.trainer.model_config import ModelConfig

    from .schema import method_fields

    is_policy = recipe.spec.kind == "policy"
    rewards = make_rewards(recipe.values["reward_funcs"], recipe.get("reward_weights")) if is_policy else []
    precision = _precision(recipe, device or device_facts(bool(recipe.get("use_cpu"))))
    values = _with_defaults(recipe) | {"dtype": precision.dtype, "bf16": precision.bf16, "fp16": precision.fp16}
    fields = method_fields(recipe.method)
    by_owner: dict[str, dict[str, Any]] = {"config": {}, "model": {}, "own": {}}
    for key, value in values.items():
        by_owner[fields[key].owner][key] = value
    config_class = recipe.spec.config_class()
    settings = by_owner["config"]
    if any(reward.weight != 1.0 for reward in rewards):
        settings["reward_weights"] = [reward.weight for reward in rewards]
    if recipe.get("eos_token") is not None and recipe.spec.kind in ("sft", "reward"):
        settings["eos_token"] = recipe.values["eos_token"]  # these trainers write it into the model's config
    if device_facts()[0] == "cpu":
        # Without it accelerate does not join several processes on a CPU, and transformers looks for a bfloat16 GPU.
        settings["use_cpu"] = True
        # Memory is not short there, time is; and there is no device to pin memory for.
        settings.setdefault("activation_checkpointing", False)
        settings.setdefault("dataloader_pin_memory", False)
    if settings.get("resume_from_checkpoint") is True:
        settings["resume_from_checkpoint"] = None  # the run finds its newest checkpoint by itself
    args = _build(config_class, settings)
    model_config = _build(ModelConfig, by_owner["model"])
    targets = model_config.lora_target_modules
    if isinstance(values.get("lora_target_modules"), list) and targets not in (None, "all-linear"):
        # ModelConfig turns a list of one into text, which PEFT would take as a pattern over whole module names.
        model_config.lora_target_modules = values["lora_target_modules"]
    recorded = {key: getattr(args, key) for key in _RECORDED if key in fields}
    values = values | {key: value for key, value in recorded.items() if key not in values}
    return dataclasses.replace(recipe, values=values), args, model_config, precision, rewards


def peft_config(recipe: Recipe, model_config: Any) -> Any:
    """The new adapter's configuration; None for full fine-tuning and for a saved adapter."""
    from trl.trainer.utils import get_peft_config

    if recipe.get("adapter_name_or_path") is not None:
        return None  # the saved adapter brings its own
    return get_peft_config(model_config)


def quantization_config(model_config: Any) -> Any:
    """How the base weights are quantised, the arithmetic in the chosen `dtype`; None where they are not."""
    from trl.trainer.utils import get_quantization_config

    return get_quantization_config(model_config)


def _precision(recipe: Recipe, device: tuple[str, tuple[int, int] | None]) -> Precision:
    asked = {"bf16": recipe.get("bf16"), "fp16": recipe.get("fp16")}
    launched = os.environ.get("ACCELERATE_MIXED_PRECISION", "no")
    if launched in asked:  # accelerate was told a format and the recipe does not contradict it
        asked[launched] = True
    return choose_precision(
        device_kind=device[0],
        capability=device[1],
        lora=bool(recipe.get("use_peft") or recipe.get("adapter_name_or_path")),
        quantized=bool(recipe.get("load_in_4bit") or recipe.get("load_in_8bit")),
        requested_dtype=recipe.get("dtype"),
        **asked,
    )


def _with_defaults(recipe: Recipe) -> dict[str, Any]:
    """The recipe's values over this package's own defaults."""
    from ..evaluation import template_stop_strings
    from .schema import method_fields

    defaults: dict[str, Any] = {"output_dir": f"outputs/{recipe.name}", "report_to": ["tensorboard"]}
    if recipe.get("use_peft") and recipe.get("adapter_name_or_path") is None:
        defaults["lora_target_modules"] = "all-linear"
        defaults["lora_task_type"] = LORA_TASKS[recipe.spec.architecture]
    if recipe.get("eval_datasets"):
        defaults["eval_strategy"] = "epoch"
    if recipe.spec.kind in ("policy", "prompts"):
        defaults["logging_steps"] = 1
        stop_strings = template_stop_strings(recipe.get("prompt_template"))
        if stop_strings and "stop_strings" in method_fields(recipe.method):
            defaults["stop_strings"] = list(stop_strings)
    return defaults | {key: value for key, value in recipe.values.items() if value is not None or key not in defaults}


def _build(config_class: Any, settings: dict[str, Any]) -> Any:
    """Make a configuration; what it refuses becomes an error that names the recipe's key."""
    try:
        return config_class(**settings)
    except (ValueError, TypeError) as error:
        message = str(error)
        key, colon, rest = message.partition(": ")
        names = {field.name for field in dataclasses.fields(config_class)}
        if colon and key in names:
            raise RecipeError(key, rest) from error
        named = next((name for name in settings if name in message), None)
        raise RecipeError(named, message) from error
