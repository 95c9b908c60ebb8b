"""The rows of a run: sources, prompts, checks, mixture and held-out problems."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..rewards.puzzles import PUZZLE
from .checks import check_heldout
from .errors import RecipeError
from .golds import GOLD, check_graded, gold_limit
from .languages import check_languages
from .mixture import mix, with_nones, with_start
from .recipe import Recipe
from .reward_checks import check_tests
from .rewards import RewardFunction
from .routes import check_routes, needed_columns, reward_columns
from .sampling import check_difficulties


if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase

# Columns that sources have to agree on, besides `prompt`, where they have them.
_COLUMNS = {
    "sft": ("completion", "messages", GOLD),
    "preference": ("chosen", "rejected"),
    "reward": ("chosen", "rejected", "margin", "preference", "replies", "scores"),
    "steps": ("steps", "labels"),
    "prompts": (),
    "logits": ("input_ids", "labels", "top_ids", "top_logps", "completion", "messages"),
}


def load_training_rows(
    recipe: Recipe, rewards: Sequence[RewardFunction], key: str = "datasets", *, notes: list[str] | None = None
) -> "Dataset":
    """
    Load every source of the recipe, build its prompts, check its rows and mix the sources.

    Args:
        recipe ([`Recipe`]):
            The recipe.
        rewards (`Sequence[RewardFunction]`):
            Their columns must be there.
        key (`str`, *optional*, defaults to `"datasets"`):
            The list of sources: `datasets` or `eval_datasets`.
        notes (`list[str]`, *optional*):
            Gets a line for each source whose rows were selected.

    Returns:
        [`~datasets.Dataset`]: in the columns that all sources share.

    Raises:
        RecipeError: Names the source, the row or the column.
    """
    specs = recipe.values[key]
    parts = [load_rows(recipe, spec, rewards, f"{key}[{index}]", notes=notes) for index, spec in enumerate(specs)]
    routed = [reward for reward in rewards if reward.route is not None]
    parts = with_start(with_nones(parts, reward_columns(routed)), specs)
    needed = reward_columns(rewards) if recipe.spec.kind == "policy" else _COLUMNS[recipe.spec.kind]
    rows = mix(parts, specs, ("prompt", *needed), seed=recipe.setting("seed"))
    check_routes(rows, rewards)
    check_difficulties(rows, recipe)
    return rows


def load_rows(
    recipe: Recipe,
    spec: dict[str, Any],
    rewards: Sequence[RewardFunction],
    key: str,
    *,
    notes: list[str] | None = None,
) -> "Dataset":
    """One source with its prompts, checked; arguments as in [`load_training_rows`]."""
    from ..data import DataError, add_prompts, check_columns, load_source, split_pairs, to_sft
    from ..data.step_rows import as_step_rows

    if recipe.get("columns"):
        spec = {**spec, "columns": {**recipe.values["columns"], **(spec.get("columns") or {})}}
    template, system = recipe.get("prompt_template"), recipe.get("system_prompt")
    try:
        dataset = load_source(spec, base_dir=recipe.base_dir, notes=notes)
        found = set(dataset.column_names)
        is_dialogue = recipe.spec.kind in ("sft", "logits")
        if is_dialogue and "rationale" in found and not found & {"completion", "messages"}:
            form = recipe.get("answer_form") or "boxed"
            dataset = to_sft(dataset, answer_form=form, template=template or "none", system_prompt=system)
        elif recipe.get("answer_form"):
            raise DataError(
                "answer_form: these rows have their replies; it is for `question`, `rationale`, `solution`"
            )
        elif (template or system) and "messages" in found:
            raise DataError("prompt_template and system_prompt have no effect on rows of `messages`; remove them")
        elif (template or system) and len(dataset):
            dataset = add_prompts(dataset, template=template or "none", system_prompt=system)
        if recipe.spec.kind in ("preference", "reward"):
            dataset = split_pairs(dataset)
        elif recipe.spec.kind == "steps":
            dataset = as_step_rows(dataset)
        needed = needed_columns(dataset, rewards)
        check_columns(dataset, recipe.spec.kind, needed)
        check_tests(dataset, rewards)
        check_languages(dataset, rewards)
        if GOLD in needed:
            check_graded(dataset, rewards, recipe, notes)
    except DataError as error:
        raise RecipeError(f"{key} ({spec['path']})", str(error).removeprefix("datasets: ")) from error
    return dataset


def load_heldout(recipe: Recipe, train: "Dataset | None", notes: list[str]) -> tuple["Dataset", dict[str, Any]]:
    """
    The held-out problems and their settings; problems that are trained on are left out.

    Args:
        recipe ([`Recipe`]):
            With `heldout`.
        train ([`~datasets.Dataset`], *optional*):
            The rows that are trained on; None where they are not known.
        notes (`list[str]`):
            Gets a line with the number of problems left out.

    Returns:
        `tuple[Dataset, dict]`: rows with `prompt` and `solution`; `every`, `samples`, `temperature`, `max_new_tokens`,
        `batch_size`.

    Raises:
        RecipeError: All problems are trained on, or their rows cannot be used.
    """
    from ..data import DataError, check_columns, check_golds
    from ..evaluation import load_task, task_source

    given = check_heldout(recipe.values["heldout"])
    settings = {"every": 50, "samples": 1, "limit": 100, "temperature": 1.0, "max_new_tokens": None, "batch_size": 64}
    settings |= {key: given[key] for key in settings if key in given}
    if "task" in given:
        options = {key: given[key] for key in ("split", "params", "adapter", "columns") if key in given}
        sources = [task_source(given["task"], **options)]
    else:
        sources = given["datasets"]
    try:
        parts = [
            load_task(
                source,
                prompt_template=recipe.get("prompt_template"),
                system_prompt=recipe.get("system_prompt"),
                base_dir=recipe.base_dir,
            )
            for source in sources
        ]
        problems = mix(with_nones(parts, [PUZZLE]), sources, ("prompt", GOLD), seed=recipe.setting("seed"))
        check_columns(problems, "evaluation", {GOLD: "the held-out accuracy"})
        verified = problems
        if PUZZLE in problems.column_names:
            verified = problems.select([row for row, puzzle in enumerate(problems[PUZZLE]) if puzzle is None])
        line = check_golds(verified, GOLD, gold_limit(recipe)).summary()
        notes += [f"heldout: {line}"] if line else []
    except DataError as error:
        raise RecipeError("heldout", str(error).removeprefix("datasets: ")) from error
    if train is not None:
        problems = _without_trained(problems, train, notes)
    return problems.select(range(min(settings["limit"] or len(problems), len(problems)))), settings


def mark_prompts(
    dataset: "Dataset", tokenizer: "PreTrainedTokenizerBase", recipe: Recipe, notes: list[str]
) -> "Dataset":
    """
    Add the column `thought_opened`, and leave out prompts longer than `max_prompt_tokens`.

    Args:
        dataset ([`~datasets.Dataset`]):
            Rows with `prompt`.
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            Renders the prompts as the trainer will.
        recipe ([`Recipe`]):
            For `chat_template_kwargs` and `max_prompt_tokens`.
        notes (`list[str]`):
            Gets a line with the number of rows left out.
    """
    from ..generation import render_prompt
    from ..text import prompt_opens_thought

    kwargs = recipe.get("chat_template_kwargs") or {}
    limit = recipe.get("max_prompt_tokens")
    opened, kept = [], []
    for index, prompt in enumerate(dataset["prompt"]):
        ids = render_prompt(tokenizer, prompt, **kwargs)
        opened.append(prompt_opens_thought(str(tokenizer.decode(ids))))
        if limit is None or len(ids) <= limit:
            kept.append(index)
    if not kept:
        raise RecipeError("max_prompt_tokens", f"the data set is empty: no prompt has at most {limit} tokens")
    if "thought_opened" in dataset.column_names:
        dataset = dataset.remove_columns("thought_opened")
    dataset = dataset.add_column("thought_opened", opened)  # type: ignore[call-arg]
    if len(kept) < len(dataset):
        notes.append(
            f"max_prompt_tokens: {len(dataset) - len(kept)} of {len(dataset)} prompts are longer and left out"
        )
        dataset = dataset.select(kept)
    return dataset


def _without_trained(problems: "Dataset", train: "Dataset", notes: list[str]) -> "Dataset":
    trained = set(_question_texts(train, problems))
    kept = [index for index, text in enumerate(_question_texts(problems, train)) if text not in trained]
    if not kept:
        raise RecipeError("heldout", f"all {len(problems)} problems are trained on; choose another split or task")
    if len(kept) < len(problems):
        notes.append(f"heldout: {len(problems) - len(kept)} of {len(problems)} problems are trained on and left out")
    return problems.select(kept)


def _question_texts(dataset: "Dataset", other: "Dataset") -> list[str]:
    """What each problem asks, without differences of blanks and case; from the column that both data sets have."""
    names = [name for name in ("question", "prompt", "messages") if name in dataset.column_names]
    shared = [name for name in names if name in other.column_names]
    return [_question_text(value) for value in dataset[(shared or names)[0]]]


def _question_text(value: Any) -> str:
    if isinstance(value, list):
        value = next((turn["content"] for turn in value if turn["role"] == "user"), "")
    return " ".join(str(value).split()).lower()
