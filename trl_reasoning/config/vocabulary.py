"""The teacher of a distillation, checked against its student before either is loaded."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import RecipeError
from .recipe import Recipe


if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def check_teacher(recipe: Recipe, args: Any, tokenizer: "PreTrainedTokenizerBase", *, offline: bool = False) -> None:
    """
    Check that the teacher is there and speaks of the same tokens as the student.

    Args:
        recipe ([`Recipe`]):
            Of a method with a teacher; a recipe without one that does not need it passes.
        args (`Any`):
            The method's configuration, made from the recipe.
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The student's, as the recipe changes it.
        offline (`bool`, *optional*, defaults to `False`):
            Leave out a teacher that is not here: on the hub, or what another run makes.

    Raises:
        RecipeError: There is no such teacher, or the tokenizers differ (names both and the first difference).
    """
    from ..errors import UserError
    from ..trainers._teacher import check_teacher_tokenizer

    key = "teacher_model_name_or_path"
    name = recipe.get(key)
    if name is None:
        if recipe.spec.kind == "prompts":
            raise RecipeError(key, f"missing; `method: {recipe.method}` learns from a teacher, name it")
        if recipe.get("teacher_adapter_name_or_path") is not None:
            raise RecipeError("teacher_adapter_name_or_path", f"has no effect without `{key}`")
        return
    # Away from the machine it runs on: a hub id, or the folder of a run that is still to come.
    if offline and not name.startswith("builtin:") and not Path(name).is_dir():
        return
    student = str(recipe.values["model_name_or_path"])
    try:
        check_teacher_tokenizer(args, tokenizer, student, recipe.setting("model_revision"))
    except UserError as error:
        hinted = "eos_token" if "`eos_token:" in str(error) else key
        raise RecipeError(hinted, str(error)) from error
    except (OSError, ValueError) as error:
        raise RecipeError(key, f"no model with a tokenizer in {name!r}: {error}") from error
