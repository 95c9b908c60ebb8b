"""Several sources of rows as one: columns that not all have, the step from which on each is drawn, weights."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .errors import RecipeError


if TYPE_CHECKING:
    from datasets import Dataset


def with_nones(parts: list["Dataset"], columns: Iterable[str]) -> list["Dataset"]:
    """Columns that only some sources have and need, with `None` in the others, where no reward will read it."""
    parts = list(parts)
    for column in columns:
        feature = next((part.features[column] for part in parts if column in part.features), None)
        for index, part in enumerate(parts):
            if feature is not None and column not in part.features:
                parts[index] = part.add_column(column, [None] * len(part), feature=feature)  # type: ignore[call-arg]
    return parts


def with_start(parts: list["Dataset"], specs: Sequence[dict[str, Any]]) -> list["Dataset"]:
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


def mix(parts: list["Dataset"], specs: Sequence[dict[str, Any]], needed: Iterable[str], *, seed: int) -> "Dataset":
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
