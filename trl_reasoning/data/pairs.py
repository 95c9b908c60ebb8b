"""Preference pairs: the prompt that both dialogues share, and checks of prompt, chosen and rejected."""

from typing import TYPE_CHECKING, Any

from .errors import DataError
from .rows import Row, map_rows


if TYPE_CHECKING:
    from datasets import Dataset

PAIR_COLUMNS = ("prompt", "chosen", "rejected")
# Pairs of two equal replies that a data set may hold: slips of its makers, which say nothing and are left out.
_IDENTICAL_LIMIT = 0.02


def split_pairs(dataset: "Dataset") -> "Dataset":
    """
    Give pairs of whole dialogues a column `prompt`: the turns that both begin with, up to where the replies begin.

    Args:
        dataset ([`~datasets.Dataset`]):
            Rows with `chosen` and `rejected`. Rows that have a `prompt`, and rows of plain text, are left as they are.

    Returns:
        [`~datasets.Dataset`]: `prompt`, `chosen` and `rejected` as messages, beside the other columns.

    Raises:
        `DataError`: a dialogue that is no list of messages, two that share no turn, or two that differ before the
        assistant's reply.

    Example:

    ```python
    >>> from datasets import Dataset
    >>> turns = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]
    >>> wrong = [turns[0], {"role": "assistant", "content": "3"}]
    >>> split_pairs(Dataset.from_list([{"chosen": turns, "rejected": wrong}]))[0]["prompt"]
    [{'role': 'user', 'content': '1+1?'}]

    ```
    """
    names = set(dataset.column_names)
    if "prompt" in names or not {"chosen", "rejected"} <= names or not len(dataset):
        return dataset
    if isinstance(dataset[0]["chosen"], str):
        return dataset
    return map_rows(
        dataset,
        _split_row,
        outputs=dict.fromkeys(PAIR_COLUMNS, "messages"),
        keeps=dataset.column_names,
        label="preference pairs",
    )


def check_pairs(dataset: "Dataset") -> None:
    """
    Check the columns and forms of preference pairs.

    Args:
        dataset ([`~datasets.Dataset`]):
            Rows with `prompt`, `chosen` and `rejected`: all messages (replies end with an assistant's turn) or all
            plain text.

    Raises:
        `DataError`: naming the column and the row: a missing column, forms that differ, a reply without an assistant's
        turn, or more than 2 % pairs whose two replies are identical. Fewer such pairs are left out of a training run.
    """
    found = dataset.column_names
    for column in ("chosen", "rejected"):
        if column not in found:
            raise DataError(
                f"no column `{column}`, which preference pairs need beside `prompt`; found: {', '.join(found)}. "
                f"Rename with `columns: {{{column}: <their name>}}` in the source, or choose an `adapter:` "
                "(ultrafeedback, hh_rlhf)"
            )
    if "prompt" not in found:
        raise DataError(
            f"no column `prompt`; found: {', '.join(found)}. In plain text the prompt cannot be told from the reply: "
            "give a column `prompt`, whole dialogues of messages, or an `adapter:` (hh_rlhf for its transcripts)"
        )
    if not len(dataset):
        raise DataError("the data set is empty: no pairs are left")
    forms = {column: _form(dataset[0][column]) for column in PAIR_COLUMNS}
    if len(set(forms.values())) > 1:
        shown = ", ".join(f"`{column}` is {form}" for column, form in forms.items())
        raise DataError(f"row 0: {shown}; all three should be conversational (messages) or all plain text")
    for row in range(len(dataset)):
        pair = dataset[row]
        for column in PAIR_COLUMNS:
            _check_value(pair[column], forms[column], column, row)
    same = identical_pairs(dataset)
    if len(same) > _IDENTICAL_LIMIT * len(dataset):
        raise DataError(
            f"`chosen` and `rejected` are identical in {len(same)} of {len(dataset)} rows, the first is row "
            f"{same[0]}; such a pair prefers nothing"
        )


def identical_pairs(dataset: "Dataset") -> list[int]:
    """Rows whose `chosen` and `rejected` are the same."""
    pairs = zip(dataset["chosen"], dataset["rejected"], strict=True)
    return [row for row, (chosen, rejected) in enumerate(pairs) if chosen == rejected]


def _split_row(row: Row) -> Row:
    chosen, rejected = row["chosen"], row["rejected"]
    for column, turns in (("chosen", chosen), ("rejected", rejected)):
        if not isinstance(turns, list):
            raise DataError(f"`{column}` should be a list of messages, got {turns!r}")
    shared = 0
    # A reply is never part of the prompt, also where both dialogues are the same.
    while shared < min(len(chosen), len(rejected)) - 1 and chosen[shared] == rejected[shared]:
        shared += 1
    if not shared:
        raise DataError("`chosen` and `rejected` should begin with the same turns, the prompt; they share none")
    for column, turns in (("chosen", chosen), ("rejected", rejected)):
        role = turns[shared].get("role") if isinstance(turns[shared], dict) else None
        if role in ("system", "user"):  # a question is never part of the reply
            raise DataError(
                f"`{column}`: turn {shared} (the first is 0) is the first one that differs, and its role is {role!r}; "
                "both dialogues should have the same turns up to an assistant's reply"
            )
    return {"prompt": chosen[:shared], "chosen": chosen[shared:], "rejected": rejected[shared:]}


def _form(value: Any) -> str:
    return "plain text" if isinstance(value, str) else "conversational"


def _check_value(value: Any, form: str, column: str, row: int) -> None:
    where = f"column `{column}`, row {row}"
    if form == "plain text":
        if not isinstance(value, str):
            raise DataError(f"{where}: expected a string as in row 0, got {value!r}")
        if column == "prompt" and not value:
            raise DataError(f"{where}: the prompt is empty")
        return
    if not isinstance(value, list) or not value:
        raise DataError(f"{where}: expected a list of messages {{role, content}}, got {value!r}")
    for turn in value:
        if not isinstance(turn, dict) or not {"role", "content"} <= turn.keys():
            raise DataError(f"{where}: a message needs the keys role and content, got {turn!r}")
    if column != "prompt" and value[-1]["role"] != "assistant":
        raise DataError(f"{where}: a reply ends with an assistant's turn, got role {value[-1]['role']!r}")
