"""Rows with a teacher's stored log-probs, checked before a model is loaded."""

from typing import TYPE_CHECKING, Any

from .errors import DataError


if TYPE_CHECKING:
    from datasets import Dataset

TEACHER_COLUMNS = ("input_ids", "labels", "top_ids", "top_logps")
IGNORED = -100
# Log-probs in half precision add up to 1 with an error of one in 2,000 of each term's logarithm.
_MOST_MASS = 1.01
_MOST_LOG = 1e-3


def check_teacher_rows(dataset: "Dataset") -> None:
    """
    Check the columns, the lengths and the numbers of stored log-probs.

    Args:
        dataset ([`~datasets.Dataset`]):
            `input_ids` and `labels` (L tokens; -100 where a token is not in the loss, as the first one is), `top_ids`
            and `top_logps` (for each of the C tokens in the loss the teacher's k most likely tokens at its place).
            Optional `rest_logps` (the log of what all other tokens have together there), which a temperature needs.

    Raises:
        `DataError`: naming the column and the row.
    """
    found = dataset.column_names
    missing = [column for column in TEACHER_COLUMNS if column not in found]
    if missing:
        raise DataError(
            f"no column `{missing[0]}`; stored log-probs of a teacher have {', '.join(TEACHER_COLUMNS)} (found: "
            f"{', '.join(found)}). With `teacher_model_name_or_path` rows of prompt and completion will do"
        )
    width: int | None = None
    row = 0
    columns = [*TEACHER_COLUMNS, *(name for name in ("rest_logps",) if name in found)]
    batches: Any = dataset.select_columns(columns).with_format("numpy").iter(batch_size=64)
    for batch in batches:
        for values in zip(*(batch[column] for column in columns), strict=True):
            width = _check_row(row, dict(zip(columns, values, strict=True)), width)
            row += 1


def _check_row(row: int, values: dict[str, Any], width: int | None) -> int:
    """The number of stored tokens a place, which is that of the rows before."""
    import numpy

    tokens, labels = values["input_ids"], values["labels"]
    if len(labels) != len(tokens):
        raise DataError(f"column `labels`, row {row}: {len(labels)} labels for {len(tokens)} tokens")
    if not len(tokens) or labels[0] != IGNORED:
        raise DataError(f"column `labels`, row {row}: the first token follows no other, its label should be {IGNORED}")
    count = int((labels != IGNORED).sum())
    if count == 0:
        raise DataError(f"column `labels`, row {row}: no token is in the loss")
    for column in ("top_ids", "top_logps"):
        table = values[column]
        if table.ndim != 2:  # rows of different lengths
            raise DataError(f"column `{column}`, row {row}: the places have different numbers of tokens")
        if len(table) != count:
            raise DataError(f"column `{column}`, row {row}: {len(table)} places for {count} tokens in the loss")
        wanted = width or values["top_ids"].shape[1]
        if table.shape[1] != wanted:
            raise DataError(f"column `{column}`, row {row}: {table.shape[1]} tokens a place, and {wanted} before it")
    logps = values["top_logps"].astype(numpy.float32)
    mass = numpy.exp(logps).sum(axis=1)
    if not (numpy.isfinite(logps).all() and mass.max() <= _MOST_MASS):
        raise DataError(
            f"column `top_logps`, row {row}: expected log-probabilities, whose exponentials add up to at most 1, got "
            f"{mass.max():.3g}"
        )
    rest = values.get("rest_logps")
    if rest is not None and (rest.shape != (count,) or not (rest <= _MOST_LOG).all()):  # NaN is not at most that
        raise DataError(
            f"column `rest_logps`, row {row}: expected one log-probability for each of the {count} tokens in the "
            f"loss, got {rest.tolist()[:3]}"
        )
    return values["top_ids"].shape[1]
