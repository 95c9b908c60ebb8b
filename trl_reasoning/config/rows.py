"""The rows of a run: sources, prompts, checks, mixture and held-out problems."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .checks import check_heldout
from .errors import RecipeError
from .recipe import Recipe
from .rewards import RewardFunction
from .routes import check_routes, needed_columns, reward_columns, rows_of
from .sampling import check_difficulties


if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase

GOLD = "solution"


def load_training_rows(recipe: Recipe, rewards: Sequence[RewardFunction]) -> "Dataset":
    """
    Load every source of the recipe, build its prompts, check its rows and mix the sources.

    Args:
        recipe ([`Recipe`]):
            The recipe.
        rewards (`Sequence[RewardFunction]`):
            Their columns must be there.

    Returns:
        [`~datasets.Dataset`]: in the columns that all sources share.

    Raises:
        RecipeError: Names the source, the row or the column.
    """
    specs = recipe.values["datasets"]
    parts = [load_rows(recipe, spec, rewards, f"datasets[{index}]") for index, spec in enumerate(specs)]
    routed = [reward for reward in rewards if reward.route is not None]
    parts = _with_start(_with_nones(parts, reward_columns(routed)), specs)
    needed = ("completion", "messages", GOLD) if recipe.spec.kind == "sft" else reward_columns(rewards)
    rows = _mix(parts, specs, ("prompt", *needed), seed=recipe.setting("seed"))
    check_routes(rows, rewards)
    check_difficulties(rows, recipe)
    return rows


def load_rows(recipe: Recipe, spec: dict[str, Any], rewards: Sequence[RewardFunction], key: str) -> "Dataset":
    """One source with its prompts, checked; arguments as in [`load_training_rows`]."""
    from ..data import DataError, add_prompts, check_columns, check_golds, load_source, to_sft

    if recipe.get("columns"):
        spec = {**spec, "columns": {**recipe.values["columns"], **(spec.get("columns") or {})}}
    template, system = recipe.get("prompt_template"), recipe.get("system_prompt")
    try:
        dataset = load_source(spec, base_dir=recipe.base_dir)
        found = set(dataset.column_names)
        if recipe.spec.kind == "sft" and "rationale" in found and not found & {"completion", "messages"}:
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
        needed = needed_columns(dataset, rewards)
        check_columns(dataset, recipe.spec.kind, needed)
        if GOLD in needed:
            graded = rows_of(dataset, [reward for reward in rewards if GOLD in reward.columns])
            check_golds(dataset if len(graded) == len(dataset) else dataset.select(graded), GOLD)
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
        problems = _mix(parts, sources, ("prompt", GOLD), seed=recipe.setting("seed"))
        check_columns(problems, "evaluation", {GOLD: "the held-out accuracy"})
        check_golds(problems, GOLD)
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


def _with_nones(parts: list["Dataset"], columns: Iterable[str]) -> list["Dataset"]:
    """Columns that only some sources have and need, with `None` in the others, where no reward will read it."""
    parts = list(parts)
    for column in columns:
        feature = next((part.features[column] for part in parts if column in part.features), None)
        for index, part in enumerate(parts):
            if feature is not None and column not in part.features:
                parts[index] = part.add_column(column, [None] * len(part), feature=feature)  # type: ignore[call-arg]
    return parts


def _with_start(parts: list["Dataset"], specs: Sequence[dict[str, Any]]) -> list["Dataset"]:
    """The column that says from which step on a row is drawn, where a source has a `from_step`."""
    from ..data import parse_source
    from ..data.source_spec import FROM_STEP

    starts = [parse_source(spec).from_step for spec in specs]
    if not any(starts):
        return parts
    for index, part in enumerate(parts):
        if FROM_STEP in part.column_names:
            raise RecipeError(
                f"datasets[{index}]", f"has a column `{FROM_STEP}`, which the key `from_step` would replace"
            )
    return [
        part.add_column(FROM_STEP, [start] * len(part))  # type: ignore[call-arg]
        for part, start in zip(parts, starts, strict=True)
    ]


def _mix(parts: list["Dataset"], specs: Sequence[dict[str, Any]], needed: Iterable[str], *, seed: int) -> "Dataset":
    """
    Sources one after the other, or where a `weight` is given drawn with these weights until one is used up.

    Columns that not all sources have in the same form are left out, and an error where they are needed.
    """
    from datasets import concatenate_datasets, interleave_datasets

    if len(parts) == 1:
        return parts[0]
    shared = [
        name
        for name, feature in parts[0].features.items()
        if all(part.features.get(name) == feature for part in parts)
    ]
    for name in needed:
        if name not in shared and any(name in part.features for part in parts):
            forms = [str(part.features.get(name, "missing")) for part in parts]
            raise RecipeError("datasets", f"the sources do not agree on the column `{name}`: {' | '.join(forms)}")
    parts = [part.select_columns(shared) for part in parts]
    if all(spec.get("weight") is None for spec in specs):
        return concatenate_datasets(parts)
    weights = [float(spec.get("weight") or 1.0) for spec in specs]
    probabilities = [weight / sum(weights) for weight in weights]
    return interleave_datasets(parts, probabilities=probabilities, seed=seed, stopping_strategy="first_exhausted")


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
