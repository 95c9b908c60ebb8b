"""From a checked recipe to everything a training run needs, without the model."""

import dataclasses
import importlib.util
import os
from typing import TYPE_CHECKING, Any

from .adapter_checks import check_adapter
from .arguments import build_arguments, peft_config, quantization_config
from .environment import check_environment, process_count
from .errors import RecipeError
from .pairs import fit_pairs
from .precision import Precision
from .ptx import load_ptx_rows
from .recipe import Recipe
from .resume import check_resume
from .reward_checks import check_ready
from .rewards import check_reward_models
from .rows import load_heldout, load_training_rows, mark_prompts
from .step_rewards import make_step_reward
from .tokenizer import check_assistant_mask, check_end_token, check_vocabulary, load_tokenizer
from .vocabulary import check_teacher


if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase

_TRACKERS = ("tensorboard", "trackio", "wandb", "mlflow", "swanlab", "clearml", "comet_ml")


@dataclasses.dataclass
class Prepared:
    """
    A run that passed every check; only the model is still to be loaded.

    Args:
        recipe ([`Recipe`]):
            The resolved recipe: what was given, our defaults and the chosen number formats.
        args (`Any`):
            Instance of the method's configuration class.
        model_config (`trl.ModelConfig`):
            The model's settings, its `dtype` chosen.
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            With the recipe's chat template, EOS and new tokens.
        train_dataset ([`~datasets.Dataset`]):
            The rows; for policy methods with `thought_opened`.
        eval_dataset ([`~datasets.Dataset`], *optional*):
            Rows of `eval_datasets`, on which the trainer measures its loss.
        reward_funcs (`list`):
            Callables in the recipe's order; empty for other methods.
        heldout ([`~datasets.Dataset`], *optional*):
            Problems that are not trained on.
        heldout_settings (`dict`):
            `every`, `samples`, `temperature`, `max_new_tokens`, `batch_size`.
        precision ([`Precision`]):
            Number formats and the reason for them.
        peft_config (`peft.LoraConfig`, *optional*):
            A new adapter.
        quantization_config (`transformers.BitsAndBytesConfig`, *optional*):
            4-bit or 8-bit base weights.
        notes (`list[str]`):
            What the preparation left out, for people.
        step_reward (`Callable`, *optional*):
            Of the methods that judge the steps of a thought.
        ptx_dataset ([`~datasets.Dataset`], *optional*):
            Pretraining rows, for PPO-ptx.
    """

    recipe: Recipe
    args: Any
    model_config: Any
    tokenizer: "PreTrainedTokenizerBase"
    train_dataset: "Dataset"
    eval_dataset: "Dataset | None"
    reward_funcs: list[Any]
    heldout: "Dataset | None"
    heldout_settings: dict[str, Any]
    precision: Precision
    peft_config: Any
    quantization_config: Any
    notes: list[str]
    step_reward: Any = None
    ptx_dataset: "Dataset | None" = None


def prepare(recipe: Recipe, *, check_env: bool = True) -> Prepared:
    """
    Make every check that needs a device, a tokenizer or data, and build what the trainer takes.

    Args:
        recipe ([`Recipe`]):
            From [`load_recipe`].
        check_env (`bool`, *optional*, defaults to `True`):
            As in [`load_recipe`].

    Returns:
        [`Prepared`]

    Raises:
        RecipeError: Names the key, the row or the column, what was expected and the nearest setting.
    """
    try:
        return _prepare(recipe, check_env)
    except RecipeError as error:
        error.path = error.path or recipe.path
        raise


def check_templates(recipe: Recipe, tokenizer: "PreTrainedTokenizerBase", dataset: "Dataset") -> None:
    """Checks of the chat template, where the rows are messages and go through it."""
    column = "messages" if "messages" in dataset.column_names else "prompt"
    if "input_ids" in dataset.column_names:  # rows of tokens, which went through the teacher's template
        return
    if isinstance(dataset[0][column], str):
        return
    if tokenizer.chat_template is None:
        raise RecipeError(
            "chat_template",
            f"the rows are messages and the tokenizer of {recipe.values['model_name_or_path']} has no chat template; "
            "name one, or choose a `prompt_template` of plain text (r1_zero, none_text)",
        )
    check_end_token(recipe, tokenizer)
    if recipe.spec.kind == "sft":
        asked = recipe.get("assistant_only_loss")
        if asked or (asked is None and column == "messages"):
            check_assistant_mask(tokenizer)


def finish_rows(
    recipe: Recipe, dataset: "Dataset", tokenizer: "PreTrainedTokenizerBase", notes: list[str]
) -> "Dataset":
    """What the tokenizer is needed for: prompts and pairs that are too long, marks of prompts that open a thought."""
    if recipe.spec.kind in ("policy", "prompts"):
        return mark_prompts(dataset, tokenizer, recipe, notes)
    if recipe.spec.kind in ("preference", "reward"):
        return fit_pairs(dataset, tokenizer, recipe, notes)
    return dataset


def check_extras(recipe: Recipe) -> None:
    """Packages that the recipe needs and that are not among this package's own requirements."""
    optimizer = str(recipe.setting("optim"))
    for key, module, extra, is_needed in (
        ("load_in_4bit", "bitsandbytes", "quantization", bool(recipe.get("load_in_4bit"))),
        ("load_in_8bit", "bitsandbytes", "quantization", bool(recipe.get("load_in_8bit"))),
        ("optim", "bitsandbytes", "quantization", optimizer.startswith("paged_") or optimizer.endswith("_8bit")),
        ("use_vllm", "vllm", "vllm", bool(recipe.get("use_vllm"))),
    ):
        if is_needed and importlib.util.find_spec(module) is None:
            raise RecipeError(key, f"needs {module}, which is not installed: pip install 'trl-reasoning[{extra}]'")
    for name in recipe.get("report_to") or ():
        if name in _TRACKERS and importlib.util.find_spec(name) is None:
            package = "'trl-reasoning[track]'" if name == "trackio" else name
            raise RecipeError("report_to", f"{name} is not installed: pip install {package}")


def dry_run_text(prepared: Prepared) -> str:
    """The resolved recipe as YAML, with what was chosen and counted as comments above it."""
    recipe, args = prepared.recipe, prepared.args
    processes = process_count(os.environ)
    batch = args.per_device_train_batch_size * args.gradient_accumulation_steps * processes
    lines = [
        "every check passed; nothing was trained",
        f"precision: dtype {prepared.precision.dtype}, bf16 {str(prepared.precision.bf16).lower()}, "
        f"fp16 {str(prepared.precision.fp16).lower()}. {prepared.precision.reason}",
        f"rows: {len(prepared.train_dataset)}" + (f", held out: {len(prepared.heldout)}" if prepared.heldout else ""),
        f"batch: {args.per_device_train_batch_size} x {args.gradient_accumulation_steps} x {processes} = {batch}"
        + (f" completions, {batch / args.num_generations:g} prompts" if recipe.spec.kind == "policy" else " rows"),
        *prepared.notes,
    ]
    return "".join(f"# {line}\n" for line in lines) + recipe.to_yaml()


def _prepare(recipe: Recipe, check_env: bool) -> Prepared:
    os.environ.update(recipe.get("env") or {})
    if check_env:
        check_environment(recipe)
        check_resume(recipe, process_count(os.environ))
    check_extras(recipe)
    recipe, args, model_config, precision, rewards = build_arguments(recipe)
    check_adapter(recipe)
    check_reward_models(rewards)
    check_ready(rewards)
    tokenizer = load_tokenizer(recipe)
    check_vocabulary(recipe, tokenizer)
    if recipe.spec.kind in ("prompts", "logits"):
        check_teacher(recipe, args, tokenizer)
    notes: list[str] = []
    step_reward = make_step_reward(recipe)
    train = load_training_rows(recipe, [*rewards, step_reward] if step_reward else rewards, notes=notes)
    check_templates(recipe, tokenizer, train)
    train = finish_rows(recipe, train, tokenizer, notes)
    evaluation = None
    if recipe.get("eval_datasets"):
        evaluation = load_training_rows(recipe, [], "eval_datasets", notes=notes)
        evaluation = finish_rows(recipe, evaluation, tokenizer, notes)
    heldout, heldout_settings = None, {}
    if recipe.get("heldout") is not None:
        heldout, heldout_settings = load_heldout(recipe, train, notes)
    return Prepared(
        recipe=recipe,
        args=args,
        model_config=model_config,
        tokenizer=tokenizer,
        train_dataset=train,
        eval_dataset=evaluation,
        reward_funcs=[reward.function for reward in rewards],
        heldout=heldout,
        heldout_settings=heldout_settings,
        precision=precision,
        peft_config=peft_config(recipe, model_config),
        quantization_config=quantization_config(model_config),
        notes=notes,
        step_reward=step_reward.function if step_reward else None,
        ptx_dataset=load_ptx_rows(recipe),
    )
