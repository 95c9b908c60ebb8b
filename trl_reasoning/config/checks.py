"""Checks on the values of a recipe that need neither a file nor a device."""

from typing import Any

from ..data import ANSWER_FORMS, PROMPTS, DataError, parse_source
from .arguments import LORA_TASKS
from .convert import check_choice, convert
from .errors import RecipeError, did_you_mean
from .gates import check_gates
from .length_reward import check_length_reward, check_overlong
from .ptx import check_ptx
from .ranges import check_ranges
from .recipe import Recipe
from .rewards import make_rewards
from .routes import check_from_step
from .sampling import check_success_reward
from .schema import method_fields
from .step_rewards import make_step_reward


HELDOUT_HINTS: dict[str, Any] = {
    "task": str,
    "datasets": list[dict[str, Any]],
    "split": str,
    "params": dict[str, Any],
    "adapter": str,
    "columns": dict[str, str],
    "every": int,
    "samples": int,
    "limit": int | None,
    "temperature": float,
    "max_new_tokens": int | None,
    "batch_size": int,
}


def check_recipe(recipe: Recipe) -> None:
    """
    Check what the values of a recipe say together: required keys, ranges, contradictions.

    Args:
        recipe ([`Recipe`]):
            Names and types are right already.

    Raises:
        RecipeError: For the first contradiction.
    """
    _check_required(recipe)
    check_ranges(recipe)
    _check_weights_format(recipe)
    if recipe.get("prompt_template") is not None:
        check_choice(recipe.values["prompt_template"], tuple(PROMPTS), "prompt_template")
    if recipe.get("answer_form") is not None:
        check_choice(recipe.values["answer_form"], tuple(ANSWER_FORMS), "answer_form")
    _check_sources(recipe.get("datasets"), "datasets")
    check_from_step(recipe)
    if recipe.get("heldout") is not None:
        check_heldout(recipe.values["heldout"])
    _check_special_tokens(recipe)
    _check_sources(recipe.get("eval_datasets") or [], "eval_datasets")
    _check_evaluation(recipe)
    _check_task(recipe)
    if recipe.spec.kind == "policy":
        rewards = make_rewards(recipe.values["reward_funcs"], recipe.get("reward_weights"))
        check_success_reward(recipe, rewards)
        check_length_reward(recipe, rewards)
        check_gates(recipe, rewards)
        check_overlong(recipe, rewards)
        make_step_reward(recipe)
        check_ptx(recipe)
        _check_sampling(recipe)
        _check_vllm(recipe)


def check_heldout(heldout: dict[str, Any]) -> dict[str, Any]:
    """The `heldout` mapping in its types; an error for an unknown key, or where it does not name its problems."""
    for key in heldout:
        if key not in HELDOUT_HINTS:
            hint = did_you_mean(str(key), HELDOUT_HINTS)
            raise RecipeError(f"heldout.{key}", f"not a key of `heldout` ({', '.join(HELDOUT_HINTS)}).{hint}")
    values = {key: convert(value, HELDOUT_HINTS[key], f"heldout.{key}") for key, value in heldout.items()}
    if ("task" in values) == ("datasets" in values):
        raise RecipeError(
            "heldout", "names its problems with either `task` (for instance builtin:chain) or `datasets`"
        )
    for key in ("every", "samples", "limit", "max_new_tokens", "batch_size"):
        value = values.get(key)
        if value is not None and value < 1:
            raise RecipeError(f"heldout.{key}", f"expected at least 1, got {value}")
    if values.get("temperature", 1.0) < 0:
        raise RecipeError("heldout.temperature", f"expected 0 (greedy) or more, got {values['temperature']}")
    if "datasets" in values:
        _check_sources(values["datasets"], "heldout.datasets")
        for index, source in enumerate(values["datasets"]):
            if source.get("from_step"):
                raise RecipeError(
                    f"heldout.datasets[{index}].from_step",
                    "is for training rows; held-out problems are measured always",
                )
        for key in ("split", "params", "adapter", "columns"):
            if key in values:
                raise RecipeError(f"heldout.{key}", "belongs to `task`; with `datasets` it is a key of each entry")
    return values


def _check_required(recipe: Recipe) -> None:
    if not recipe.get("model_name_or_path"):
        raise RecipeError("model_name_or_path", "missing; a hub id, a local folder, or builtin:tiny")
    if not recipe.get("datasets"):
        raise RecipeError("datasets", "missing or empty; for instance `datasets: [{path: builtin:chain}]`")
    if recipe.spec.kind == "policy" and "reward_funcs" not in recipe.values:
        raise RecipeError("reward_funcs", f"missing; `method: {recipe.method}` needs at least one, e.g. [accuracy]")


def _check_sources(sources: list[dict[str, Any]], key: str) -> None:
    for index, source in enumerate(sources):
        try:
            parse_source(source)
        except DataError as error:
            raise RecipeError(f"{key}[{index}]", str(error).removeprefix("datasets: ")) from error


def _check_weights_format(recipe: Recipe) -> None:
    if recipe.get("bf16") and recipe.get("fp16"):
        raise RecipeError("bf16", "set together with `fp16`; keep one of the two")
    if recipe.get("load_in_4bit") and recipe.get("load_in_8bit"):
        raise RecipeError("load_in_4bit", "set together with `load_in_8bit`; keep one of the two")
    if recipe.get("load_in_4bit") and recipe.get("dtype") == "auto":
        raise RecipeError("dtype", "with `load_in_4bit` it is the format of the arithmetic, which `auto` is not")
    for key in ("load_in_4bit", "load_in_8bit"):
        if recipe.get(key) and not (recipe.get("use_peft") or recipe.get("adapter_name_or_path")):
            raise RecipeError(
                key, "quantised weights cannot be trained; set `use_peft: true` to train an adapter on them"
            )


def _check_special_tokens(recipe: Recipe) -> None:
    tokens = recipe.get("add_special_tokens")
    if not tokens or not recipe.get("use_peft"):
        return
    saved = recipe.get("lora_modules_to_save") or []
    if "embed_tokens" not in saved:
        raise RecipeError(
            "add_special_tokens",
            f"the embedding rows of {', '.join(tokens)} are new and an adapter does not train them; set "
            "`lora_modules_to_save: [embed_tokens, lm_head]` (embed_tokens alone where the model ties the two)",
        )


def _check_evaluation(recipe: Recipe) -> None:
    """Without an evaluation set the trainer's own evaluation would stop once the model is loaded."""
    if recipe.get("eval_datasets"):
        return
    has_key = "eval_datasets" in method_fields(recipe.method)
    for key, needs_a_set in (
        ("load_best_model_at_end", recipe.get("load_best_model_at_end", False)),
        ("eval_strategy", recipe.get("eval_strategy", "no") != "no"),
        ("eval_on_start", recipe.get("eval_on_start", False)),
        ("save_strategy", recipe.get("save_strategy") == "best"),
    ):
        if needs_a_set:
            raise RecipeError(
                key,
                f"got {recipe.values[key]!r}, but the recipe has no evaluation set"
                + ("; write `eval_datasets: [{path: ...}]`" if has_key else " to measure a loss on")
                + (
                    "; for accuracy during training write `heldout: {task: builtin:chain, every: 50}` (or `datasets` "
                    "in place of `task`)"
                    if "heldout" in method_fields(recipe.method)
                    else ""
                ),
            )


def _check_task(recipe: Recipe) -> None:
    """The task of an adapter says which head PEFT trains and saves."""
    wanted, task = LORA_TASKS[recipe.spec.architecture], recipe.get("lora_task_type")
    if task is not None and task != wanted:
        lost = " (the score head would be neither trained nor saved)" if wanted != "CAUSAL_LM" else ""
        raise RecipeError(
            "lora_task_type", f"`method: {recipe.method}` needs {wanted}, got {task}{lost}; remove the key"
        )


def _check_sampling(recipe: Recipe) -> None:
    temperature = recipe.setting("temperature")
    if temperature <= 0:
        raise RecipeError(
            "temperature",
            f"expected more than 0, got {temperature}: greedy sampling makes all completions of a group equal, so "
            "that every advantage is 0; 1.0 samples from the policy itself",
        )
    if not 0 < recipe.setting("top_p") <= 1:
        raise RecipeError("top_p", f"expected a share in (0, 1], got {recipe.setting('top_p')}")
    generations = recipe.setting("num_generations")
    least = recipe.spec.min_generations
    if generations is None or generations < least:
        wanted = "2 completions a prompt to compare" if least == 2 else "1 completion a prompt"
        raise RecipeError("num_generations", f"expected at least {wanted}, got {generations}; 8 is common")
    if recipe.get("steps_per_generation") is not None and recipe.get("generation_batch_size") is not None:
        raise RecipeError("steps_per_generation", "set together with `generation_batch_size`; keep one of the two")


def _check_vllm(recipe: Recipe) -> None:
    room, completion = recipe.get("vllm_max_model_length"), recipe.setting("max_completion_length")
    if room is not None and completion is not None:
        prompt = recipe.get("max_prompt_tokens") or 0
        if room <= completion or room < completion + prompt:
            wanted = completion + (prompt or 512)
            raise RecipeError(
                "vllm_max_model_length",
                f"{room} tokens hold prompt and completion together, and `max_completion_length` {completion}"
                + (f" with `max_prompt_tokens` {prompt}" if prompt else "")
                + f" leaves no room for the prompt; write for instance {wanted}",
            )
    if not recipe.get("use_vllm"):
        return
    if recipe.get("load_in_8bit"):
        raise RecipeError("load_in_8bit", "vLLM has no in-flight 8-bit quantisation; set `use_vllm: false`")
    if recipe.get("load_in_4bit"):
        mode = recipe.setting("vllm_mode")
        raise RecipeError(
            "load_in_4bit",
            f"`vllm_mode: {mode}` cannot carry it: TRL merges the adapter into the packed 4-bit weights and sends "
            "these to vLLM, whose shapes differ or which then samples from another policy. Set `use_vllm: false`, or "
            "`load_in_4bit: false` with `dtype: bfloat16` (16-bit LoRA)",
        )
