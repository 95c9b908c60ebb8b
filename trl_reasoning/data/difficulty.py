"""The difficulty column of a data set."""

import math
from typing import TYPE_CHECKING

from .errors import DataError, nearest_hint


if TYPE_CHECKING:
    from datasets import Dataset


def read_difficulties(dataset: "Dataset", column: str) -> list[float]:
    """
    Read one finite number a row.

    Args:
        dataset ([`~datasets.Dataset`]):
            The rows.
        column (`str`):
            Name of the column.

    Returns:
        `list[float]`: in the order of the rows.

    Raises:
        `DataError`: there is no such column, or the first row that has no finite number there.
    """
    if column not in dataset.column_names:
        raise DataError(
            f"difficulty_column: the data has no column `{column}`{nearest_hint(column, dataset.column_names)}; "
            f"found: {', '.join(dataset.column_names)} (of several sources, the columns that all of them have)"
        )
    difficulties = []
    for row, value in enumerate(dataset[column]):
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise DataError(
                f"difficulty_column: column `{column}`, row {row}: expected a finite number, got {value!r}; leave "
                "such rows out, or turn the column into numbers"
            )
        difficulties.append(float(value))
    return difficulties
