"""Ranges of numbers in a recipe."""

import math

from .errors import RecipeError
from .recipe import Recipe


_POSITIVE = (
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "steps_per_generation",
    "generation_batch_size",
    "num_iterations",
    "max_completion_length",
    "max_prompt_tokens",
    "max_length",
    "lora_r",
    "save_total_limit",
)
# key: (least, most, whether the ends themselves are excluded)
_RANGES: dict[str, tuple[float, float, bool]] = {
    "learning_rate": (0.0, math.inf, True),
    "max_seconds": (0.0, math.inf, True),
    "num_train_epochs": (0.0, math.inf, True),
    "weight_decay": (0.0, math.inf, False),
    "max_grad_norm": (0.0, math.inf, False),
    "adam_beta1": (0.0, 1.0, False),
    "adam_beta2": (0.0, 1.0, False),
    "beta": (0.0, math.inf, False),
    "epsilon": (0.0, math.inf, True),
    "top_k": (0.0, math.inf, False),
    "min_p": (0.0, 1.0, False),
    "repetition_penalty": (0.0, math.inf, True),
    "lora_dropout": (0.0, 1.0, False),
    "max_failing_golds": (0.0, 1.0, False),
}


def check_ranges(recipe: Recipe) -> None:
    """Refuse numbers that no run could use, before anything is loaded."""
    for key in _POSITIVE:
        value = recipe.get(key)
        if value is not None and value < 1:
            raise RecipeError(key, f"expected at least 1, got {value}")
    for key, (least, most, excluded) in _RANGES.items():
        value = recipe.get(key)
        if value is None:
            continue
        if not least <= value <= most or (excluded and value in (least, most)):
            upper = "" if most == math.inf else f" and at most {most:g}"
            raise RecipeError(key, f"expected {'more than' if excluded else 'at least'} {least:g}{upper}, got {value}")
    if recipe.get("max_steps") is not None and recipe.values["max_steps"] != -1 and recipe.values["max_steps"] < 1:
        raise RecipeError(
            "max_steps", f"expected at least 1, or -1 for whole epochs, got {recipe.values['max_steps']}"
        )
    if recipe.get("save_only_model"):
        raise RecipeError("save_only_model", "such checkpoints cannot be resumed from; remove the key")
    if recipe.spec.kind == "policy" and recipe.values.get("max_completion_length", 1) is None:
        raise RecipeError("max_completion_length", "expected a number of tokens, got null")
