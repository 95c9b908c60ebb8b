"""Every check of a recipe that needs neither the hub nor a GPU, for `recipes check`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .adapter_checks import check_adapter
from .arguments import build_arguments
from .environment import check_batch
from .prepare import check_templates, finish_rows
from .recipe import Recipe
from .rewards import check_reward_models
from .rows import load_heldout, load_rows, load_training_rows
from .step_rewards import make_step_reward, process_models_on_hub
from .tokenizer import check_vocabulary, is_hub_model, load_tokenizer
from .vocabulary import check_teacher


if TYPE_CHECKING:
    from pathlib import Path

# A recipe for a GPU must pass on a laptop: number formats are chosen for the GPUs that the recipes are written for.
_AMPERE = ("cuda", (8, 0))


def check_offline(recipe: Recipe) -> list[str]:
    """
    Check a recipe as far as that is possible without the hub.

    Args:
        recipe ([`Recipe`]):
            From [`load_recipe`] with `check_env=False`.

    Returns:
        `list[str]`: what lies on the hub and was not checked, for instance `["Qwen/Qwen3-1.7B", "openai/gsm8k"]`.

    Raises:
        RecipeError: As [`prepare`].
    """
    if recipe.spec.kind == "policy":
        check_batch(recipe, processes=1)
    recipe, args, _, _, rewards = build_arguments(recipe, device=None if recipe.get("use_cpu") else _AMPERE)
    unchecked: list[str] = check_reward_models(rewards)
    step_reward = make_step_reward(recipe)
    if step_reward:
        unchecked += process_models_on_hub(step_reward)
        rewards = [*rewards, step_reward]
    tokenizer = None
    model = recipe.values["model_name_or_path"]
    if is_hub_model(model):
        unchecked.append(model)
    else:
        check_adapter(recipe)
        tokenizer = load_tokenizer(recipe)
        check_vocabulary(recipe, tokenizer)
        if recipe.spec.kind in ("prompts", "logits"):
            check_teacher(recipe, args, tokenizer, offline=True)
    train = None
    sources = recipe.values["datasets"]
    on_hub = _hub_paths(sources, recipe.base_dir)
    if on_hub:
        for index, source in enumerate(sources):
            if source["path"] not in on_hub:
                load_rows(recipe, source, rewards, f"datasets[{index}]")
    else:
        train = load_training_rows(recipe, rewards)
    if train is not None and tokenizer is not None:
        check_templates(recipe, tokenizer, train)
        train = finish_rows(recipe, train, tokenizer, notes=[])
    evaluation = recipe.get("eval_datasets") or []
    evaluation_on_hub = _hub_paths(evaluation, recipe.base_dir)
    on_hub += evaluation_on_hub
    if evaluation and not evaluation_on_hub:
        load_training_rows(recipe, [], "eval_datasets")
    heldout = recipe.get("heldout")
    if heldout is not None:
        heldout_on_hub = _hub_paths(heldout.get("datasets") or [{"path": heldout["task"]}], recipe.base_dir)
        on_hub += heldout_on_hub
        if not heldout_on_hub:
            load_heldout(recipe, train, notes=[])
    return list(dict.fromkeys(unchecked + on_hub))


def _hub_paths(sources: Sequence[dict[str, Any]], base_dir: "Path | None") -> list[str]:
    """Paths of the sources that can only be hub ids."""
    from ..data.files import find_local, looks_local
    from ..data.source_spec import BUILTIN_PREFIX, REASONING_GYM_PREFIX

    paths = [source["path"] for source in sources]
    return [
        path
        for path in paths
        if not path.startswith((BUILTIN_PREFIX, REASONING_GYM_PREFIX))
        and not looks_local(path)
        and find_local(path, base_dir) is None
    ]
