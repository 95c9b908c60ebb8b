"""Rankings of several replies to one prompt, and the labels that preference pairs may carry."""

import math
from typing import TYPE_CHECKING, Any

from .errors import DataError


if TYPE_CHECKING:
    from datasets import Dataset

RANKING_COLUMNS = ("prompt", "replies", "scores")


def check_rankings(dataset: "Dataset") -> None:
    """
    Check the columns and forms of rankings.

    Args:
        dataset ([`~datasets.Dataset`]):
            Rows with `prompt` (messages or plain text), `replies` (at least two, each plain text, or messages that end
            with an assistant's turn) and `scores` (a number for each reply, higher is better; equal scores are a tie).

    Raises:
        `DataError`: naming the column and the row: a missing column, forms that differ, a number of scores that is not
            that of the replies, fewer than two replies, a score that is not finite, or rows that are tied throughout.
    """
    found = dataset.column_names
    for column in RANKING_COLUMNS:
        if column not in found:
            raise DataError(
                f"no column `{column}`; rankings need {', '.join(f'`{name}`' for name in RANKING_COLUMNS)}, found: "
                f"{', '.join(found)}. Rename with `columns: {{{column}: <their name>}}` in the source"
            )
    for column in ("margin", "preference"):
        if column in found:
            raise DataError(f"column `{column}` labels a pair; rankings are ordered by `scores`, so leave it out")
    decided = 0
    is_text = isinstance(dataset[0]["prompt"], str)
    for row, ranking in enumerate(dataset):
        _check_prompt(ranking["prompt"], is_text, row)  # type: ignore[index, call-overload]
        replies, scores = ranking["replies"], ranking["scores"]  # type: ignore[index, call-overload]
        _check_replies(replies, is_text, row)
        _check_scores(scores, len(replies), row)
        decided += len(set(scores)) > 1
    if not decided:
        raise DataError(
            f"column `scores`: all replies are tied in each of the {len(dataset)} rows (the first: "
            f"{dataset[0]['scores']}), so that nothing is preferred"
        )


def check_pair_labels(dataset: "Dataset") -> None:
    """
    Check the columns `margin` and `preference` of preference pairs, where they are there.

    Args:
        dataset ([`~datasets.Dataset`]):
            Pairs.

    Raises:
        `DataError`: naming the column and the row: both columns, a margin that is not finite, or a preference outside
            [0, 1].
    """
    has_margin, has_preference = (column in dataset.column_names for column in ("margin", "preference"))
    if has_margin and has_preference:
        raise DataError(
            "columns `margin` and `preference`: a pair has a margin or a soft label; leave out one of them"
        )
    if has_margin:
        for row, value in enumerate(dataset["margin"]):
            if not _is_finite(value):
                raise DataError(f"column `margin`, row {row}: expected a finite number, got {value!r}")
    if has_preference:
        for row, value in enumerate(dataset["preference"]):
            if not _is_finite(value) or not 0.0 <= value <= 1.0:
                raise DataError(
                    f"column `preference`, row {row}: expected the probability that the chosen reply is the better "
                    f"one, in [0, 1], got {value!r}"
                )


def _check_prompt(prompt: Any, is_text: bool, row: int) -> None:
    if isinstance(prompt, str) != is_text:
        raise DataError(f"column `prompt`, row {row}: expected {_form(is_text)} as in row 0, got {_shown(prompt)}")
    if not prompt:
        raise DataError(f"column `prompt`, row {row}: the prompt is empty")
    if not is_text:
        _check_messages(prompt, f"column `prompt`, row {row}")


def _check_replies(replies: Any, is_text: bool, row: int) -> None:
    if not isinstance(replies, list):
        raise DataError(f"column `replies`, row {row}: expected a list of replies, got {_shown(replies)}")
    if len(replies) < 2:
        raise DataError(f"column `replies`, row {row}: a ranking needs at least 2 replies, got {len(replies)}")
    for number, reply in enumerate(replies):
        where = f"column `replies`, row {row}, reply {number}"
        if isinstance(reply, str) != is_text:
            raise DataError(f"{where}: expected {_form(is_text)} like the prompt, got {_shown(reply)}")
        if not is_text:
            _check_messages(reply, where)
            if reply[-1]["role"] != "assistant":
                raise DataError(f"{where}: a reply ends with an assistant's turn, got role {reply[-1]['role']!r}")


def _check_scores(scores: Any, replies: int, row: int) -> None:
    where = f"column `scores`, row {row}"
    if not isinstance(scores, list) or len(scores) != replies:
        number = len(scores) if isinstance(scores, list) else _shown(scores)
        raise DataError(f"{where}: expected one score for each of the {replies} replies, got {number}")
    for score in scores:
        if not _is_finite(score):
            raise DataError(f"{where}: expected finite numbers, got {scores!r}")


def _check_messages(messages: Any, where: str) -> None:
    if not isinstance(messages, list) or not messages:
        raise DataError(f"{where}: expected a list of messages {{role, content}}, got {_shown(messages)}")
    for message in messages:
        if not isinstance(message, dict) or not {"role", "content"} <= message.keys():
            raise DataError(f"{where}: a message needs the keys role and content, got {_shown(message)}")


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _form(is_text: bool) -> str:
    return "plain text" if is_text else "messages"


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"
