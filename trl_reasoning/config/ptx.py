"""The `ptx_dataset` of a recipe: the text that PPO-ptx keeps the policy good at."""

from typing import TYPE_CHECKING

from ..data import DataError, load_source, parse_source, to_sft
from .errors import RecipeError
from .recipe import Recipe


if TYPE_CHECKING:
    from datasets import Dataset


def check_ptx(recipe: Recipe) -> None:
    """
    Check `ptx_dataset` and that it comes with `ptx_coef`.

    Args:
        recipe ([`Recipe`]):
            `ptx_dataset: {path: ..., split: ..., adapter: ...}`, with the keys of an entry of `datasets`.

    Raises:
        RecipeError: One of the two is missing, or the source cannot be read as one.
    """
    source, coefficient = recipe.get("ptx_dataset"), recipe.get("ptx_coef")
    if source is None and not coefficient:
        return
    if source is None:
        raise RecipeError("ptx_coef", "needs the text to train on: `ptx_dataset: {path: ...}`")
    if not coefficient:
        raise RecipeError("ptx_dataset", "is not used without `ptx_coef` (27.8 in InstructGPT)")
    try:
        parse_source(source)
    except DataError as error:
        raise RecipeError("ptx_dataset", str(error).removeprefix("datasets: ")) from error


def load_ptx_rows(recipe: Recipe) -> "Dataset | None":
    """
    Load the rows of `ptx_dataset`.

    Returns:
        [`~datasets.Dataset`] or `None`: rows with `text`, with `messages`, or with `prompt` and `completion`; worked
        problems (`question`, `rationale`, `solution`) become the latter. `None` where the recipe has none.

    Raises:
        RecipeError: The source cannot be loaded, or has none of these columns.
    """
    source = recipe.get("ptx_dataset")
    if source is None:
        return None
    try:
        rows = load_source(source, base_dir=recipe.base_dir)
        if "rationale" in rows.column_names and not {"completion", "messages", "text"} & set(rows.column_names):
            template, system = recipe.get("prompt_template"), recipe.get("system_prompt")
            rows = to_sft(rows, template=template or "none", system_prompt=system)
    except DataError as error:
        raise RecipeError(f"ptx_dataset ({source['path']})", str(error).removeprefix("datasets: ")) from error
    for columns in (["text"], ["messages"], ["prompt", "completion"]):
        if set(columns) <= set(rows.column_names):
            return rows.select_columns(columns)
    raise RecipeError(
        f"ptx_dataset ({source['path']})",
        f"expected the column text, messages, or prompt and completion; found {', '.join(rows.column_names)}",
    )
