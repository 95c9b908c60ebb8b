"""Step-labelled solutions: the rows that process reward models are trained on."""

import math
from typing import TYPE_CHECKING, Any

from .errors import DataError
from .rows import Row


if TYPE_CHECKING:
    from datasets import Dataset

STEP_COLUMNS = ("prompt", "steps", "labels")
# What TRL's step-labelled data sets (trl-lib/math_shepherd, trl-lib/prm800k) call the steps.
_TRL_STEPS = "completions"


def as_step_rows(dataset: "Dataset") -> "Dataset":
    """
    Rename the column `completions` of TRL's step-labelled data sets to `steps`, where there is no `steps`.

    Args:
        dataset ([`~datasets.Dataset`]):
            Rows with `prompt`, `labels`, and `steps` or `completions`.

    Returns:
        [`~datasets.Dataset`]

    Example:

    ```python
    >>> from datasets import Dataset
    >>> rows = Dataset.from_list([{"prompt": "1+1?", "completions": ["It is 2."], "labels": [True]}])
    >>> as_step_rows(rows).column_names
    ['prompt', 'steps', 'labels']

    ```
    """
    names = dataset.column_names
    if "steps" not in names and {_TRL_STEPS, "labels"} <= set(names):
        return dataset.rename_column(_TRL_STEPS, "steps")
    return dataset


def check_step_rows(dataset: "Dataset") -> None:
    """
    Check the columns and forms of step-labelled solutions.

    Args:
        dataset ([`~datasets.Dataset`]):
            Rows with `prompt` (messages or text), `steps` (texts, at least one) and `labels` (one number in [0, 1] or
            bool a step; how likely the step is right, or whether it is). A label may be missing (`None`), not all of a
            data set's.

    Raises:
        `DataError`: naming the column and the row.
    """
    found = dataset.column_names
    missing = [column for column in STEP_COLUMNS if column not in found]
    if missing:
        raise DataError(
            f"no column `{missing[0]}`, which a process reward model needs beside "
            f"{' and '.join(column for column in STEP_COLUMNS if column != missing[0])}; found: {', '.join(found)}. "
            f"Rename with `columns: {{{missing[0]}: <their name>}}` in the source"
        )
    is_text = len(dataset) > 0 and isinstance(dataset[0]["prompt"], str)
    labels = 0
    for row, values in enumerate(dataset.select_columns(list(STEP_COLUMNS))):
        if isinstance(values["prompt"], str) != is_text:  # type: ignore[call-overload, index]
            form = "a text" if is_text else "messages"
            raise DataError(f"column `prompt`, row {row}: expected {form} as in row 0, got {values['prompt']!r}")  # type: ignore[call-overload, index]
        labels += check_step_row(values, row)  # type: ignore[arg-type]
    if not labels:
        raise DataError("column `labels`: no step has a label")


def check_step_row(values: Row, row: int) -> int:
    """
    Check one row, see [`check_step_rows`].

    Args:
        values (`dict`):
            `prompt`, `steps` and `labels`.
        row (`int`):
            Its number, for the message.

    Returns:
        `int`: number of its steps that have a label.

    Raises:
        `DataError`: naming the column and the row.
    """
    prompt, steps, labels = (values[column] for column in STEP_COLUMNS)
    if not prompt or not isinstance(prompt, str | list):
        raise DataError(f"column `prompt`, row {row}: expected a text or a list of messages, got {prompt!r}")
    for turn in [] if isinstance(prompt, str) else prompt:
        if not isinstance(turn, dict) or not {"role", "content"} <= turn.keys():
            raise DataError(f"column `prompt`, row {row}: a message needs the keys role and content, got {turn!r}")
    if not isinstance(steps, list) or not steps:
        raise DataError(f"column `steps`, row {row}: expected a list of texts, at least one, got {steps!r}")
    for place, step in enumerate(steps):
        if not isinstance(step, str) or not step.strip():
            raise DataError(
                f"column `steps`, row {row}: step {place} should be a text that is not empty, got {step!r}"
            )
    if not isinstance(labels, list) or len(labels) != len(steps):
        count = len(labels) if isinstance(labels, list) else repr(labels)
        raise DataError(
            f"column `labels`, row {row}: expected one label for each of the {len(steps)} steps, got {count}"
        )
    for place, label in enumerate(labels):
        if not (label is None or _is_label(label)):
            raise DataError(
                f"column `labels`, row {row}: the label of step {place} should be true, false or a number in [0, 1], "
                f"got {label!r}"
            )
    return sum(label is not None for label in labels)


def _is_label(label: Any) -> bool:
    return isinstance(label, bool | int | float) and not math.isnan(label) and 0 <= label <= 1
