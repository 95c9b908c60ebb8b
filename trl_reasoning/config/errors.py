"""The error of a recipe."""

from pathlib import Path

from ..errors import UserError, did_you_mean, nearest_spelling


__all__ = ["RecipeError", "did_you_mean", "nearest_spelling"]


class RecipeError(UserError):
    """A recipe that cannot run, found before a model is loaded.

    Args:
        key (`str` or `None`):
            The key of the recipe to change, for instance `"heldout.every"`; None where the file as a whole is meant.
        message (`str`):
            What is wrong, what was expected and the nearest setting that works.
        path (`Path`, *optional*):
            The recipe file; set by [`load_recipe`] where the check itself does not know it.

    Example:

    ```python
    >>> str(RecipeError("max_steps", "expected a whole number, got 2.5"))
    'max_steps: expected a whole number, got 2.5'

    ```
    """

    def __init__(self, key: str | None, message: str, *, path: Path | None = None):
        super().__init__(key, message)
        self.key = key
        self.message = message
        self.path = path

    def __str__(self) -> str:
        return ": ".join(str(part) for part in (self.path, self.key, self.message) if part)
