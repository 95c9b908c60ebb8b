"""The `columns:` option of a source: our names for their columns."""

from typing import TYPE_CHECKING

from .errors import DataError, nearest_hint
from .golds import number_text
from .rows import Row, map_rows


if TYPE_CHECKING:
    from datasets import Dataset


def rename_columns(dataset: "Dataset", columns: dict[str, str]) -> "Dataset":
    """
    Give columns our names.

    A column of theirs that already has one of our names and is not itself renamed is replaced. Numbers under our name
    `solution` become text ("8" for 8.0), since the recipe says that this column is the gold answer.

    Args:
        dataset ([`~datasets.Dataset`]):
            The rows as they came.
        columns (`dict[str, str]`):
            Ours to theirs, for instance `{"solution": "answer"}`.

    Returns:
        [`~datasets.Dataset`]

    Raises:
        `DataError`: for a column that is not there (with the nearest one), or one that is given two names.
    """
    found = dataset.column_names
    for theirs in columns.values():
        if theirs not in found:
            hint = nearest_hint(theirs, found)
            raise DataError(f"datasets: columns: no column {theirs!r}{hint} (found: {', '.join(found)})")
    if len(set(columns.values())) < len(columns):
        raise DataError(f"datasets: columns: one column cannot have two names: {columns}")
    replaced = [ours for ours in columns if ours in found and ours not in columns.values()]
    moved = {theirs: ours for ours, theirs in columns.items() if ours != theirs}
    renamed = dataset.remove_columns(replaced).rename_columns(moved)
    return _with_text_golds(renamed) if "solution" in columns else renamed


def _with_text_golds(dataset: "Dataset") -> "Dataset":
    from datasets import Value

    if dataset.features["solution"] == Value("string"):
        return dataset
    return map_rows(
        dataset,
        _text_gold,
        outputs={"solution": "string"},
        keeps=dataset.column_names,
        label="datasets: columns: solution",
    )


def _text_gold(row: Row) -> Row:
    gold = row["solution"]
    if isinstance(gold, int | float) and not isinstance(gold, bool):
        gold = number_text(gold)
    if gold is not None and not isinstance(gold, str):
        raise DataError(f"expected a string or a number, got {gold!r}")
    return {"solution": gold}
