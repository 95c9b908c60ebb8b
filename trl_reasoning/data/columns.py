"""Whether a data set has what its method needs, checked before a model is loaded."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .errors import DataError
from .pairs import check_pairs
from .rankings import check_pair_labels, check_rankings
from .step_rows import check_step_rows
from .teacher_rows import check_teacher_rows


if TYPE_CHECKING:
    from datasets import Dataset

METHOD_KINDS = ("policy", "sft", "preference", "reward", "steps", "prompts", "logits", "evaluation")
# What other data sets call our columns, most telling first.
_ALIASES = {
    "prompt": ("question", "problem", "instruction", "query", "input", "text"),
    "question": ("problem", "prompt", "instruction", "query", "input", "text"),
    "solution": ("answer", "final_answer", "gold", "ground_truth", "target", "label", "result"),
    "completion": ("response", "output", "answer", "solution"),
}
_SHAREGPT_RECIPE = (
    'dataset.map(lambda row: {"messages": [{"role": {"human": "user", "gpt": "assistant"}.get(turn["from"], '
    'turn["from"]), "content": turn["value"]} for turn in row["conversations"]]}, remove_columns="conversations")'
)


def check_columns(dataset: "Dataset", method_kind: str, needed: Iterable[str] | Mapping[str, str] = ()) -> None:
    """
    Check that a data set is not empty and has the columns, in the forms, that its method and its rewards read.

    Args:
        dataset ([`~datasets.Dataset`]):
            The prepared rows (prompts already built).
        method_kind (`str`):
            `"policy"`, `"prompts"` and `"evaluation"` (`prompt`), `"sft"` (`prompt` and `completion`, or `messages`),
            `"preference"` (`prompt`, `chosen`, `rejected`), `"reward"` (the same, or `prompt`, `replies`, `scores`),
            `"steps"` (`prompt`, `steps`, `labels`) or `"logits"` (a teacher's stored log-probs, or rows as of `sft`).
        needed (`Iterable[str]` or `Mapping[str, str]`, *optional*):
            Further columns, or columns and who needs each (`{"solution": "reward accuracy"}`).

    Raises:
        `DataError`: naming the column or row, the columns found, and the option that helps.
    """
    if method_kind not in METHOD_KINDS:
        raise ValueError(f"method_kind: expected one of {METHOD_KINDS}, got {method_kind!r}")
    if len(dataset) == 0:
        raise DataError("the data set is empty: no rows are left after loading, filters, size and fraction")
    if method_kind == "logits" and "top_ids" in dataset.column_names:
        check_teacher_rows(dataset)
    elif method_kind in ("sft", "logits"):
        _check_sft(dataset)
    elif method_kind == "reward" and "replies" in dataset.column_names:
        check_rankings(dataset)
    elif method_kind in ("preference", "reward"):
        check_pairs(dataset)
        if method_kind == "reward":
            check_pair_labels(dataset)
    elif method_kind == "steps":
        check_step_rows(dataset)
    else:
        check_has(dataset, "prompt", "every run on prompts")
        _check_form(dataset, "prompt")
    for column in needed:
        check_has(dataset, column, needed[column] if isinstance(needed, Mapping) else "a reward")


def _check_sft(dataset: "Dataset") -> None:
    found = dataset.column_names
    if "messages" in found:
        _check_dialogues(dataset, "messages")
    elif "prompt" in found and "completion" in found:
        forms = {column: _check_form(dataset, column) for column in ("prompt", "completion")}
        if len(set(forms.values())) > 1:
            raise DataError(
                f"`prompt` is {forms['prompt']} and `completion` is {forms['completion']}; both should be messages "
                "(conversational) or both plain text"
            )
        if forms["completion"] == "messages":
            _check_dialogues(dataset, "completion")
    elif "conversations" in found:
        raise DataError(
            "column `conversations` holds turns with `from` and `value` (ShareGPT); needed: a column `messages` with "
            f"`role` and `content`. Convert once: {_SHAREGPT_RECIPE}"
        )
    elif "text" in found and "prompt" not in found:
        raise DataError(
            "column `text` does not tell the assistant's part from the prompt, and only the assistant's text is "
            f"trained on; needed: `messages`, or `prompt` and `completion` (found: {', '.join(found)})"
        )
    else:
        missing = "completion" if "prompt" in found else "prompt"
        raise DataError(
            "sft needs the column `messages`, or `prompt` and `completion`; found: "
            f"{', '.join(found)}.{rename_hint(dataset, missing)}"
        )


def check_has(dataset: "Dataset", column: str, user: str) -> None:
    """Raise a `DataError` that names the columns found when `column`, which `user` needs, is missing."""
    found = dataset.column_names
    if column not in found:
        raise DataError(
            f"no column `{column}`, which {user} needs; found: {', '.join(found)}.{rename_hint(dataset, column)}"
        )


def rename_hint(dataset: "Dataset", column: str) -> str:
    """How a source names or makes a column that it does not have."""
    found = dataset.column_names
    theirs = next((alias for alias in _ALIASES.get(column, ()) if alias in found), None)
    hint = f" Rename with `columns: {{{column}: {theirs or '<their name>'}}}` in the source"
    if column == "prompt" and "question" in found:
        hint += ", or build prompts from `question` with `prompt_template:` (none, qwen_boxed, r1_zero, ...)"
    return hint + ", or choose an `adapter:`."


def _check_form(dataset: "Dataset", column: str) -> str:
    """`messages` or `plain text`; checks that each row has it and is not empty."""
    form = "plain text" if isinstance(dataset[0][column], str) else "messages"
    for row, value in enumerate(dataset[column]):
        if form == "plain text" and not isinstance(value, str):
            raise DataError(f"column `{column}`, row {row}: expected a string as in row 0, got {_shown(value)}")
        if form == "messages":
            _check_messages(value, column, row)
        if not value and column == "prompt":
            raise DataError(f"column `{column}`, row {row}: the prompt is empty")
    return form


def _check_dialogues(dataset: "Dataset", column: str) -> None:
    for row, messages in enumerate(dataset[column]):
        _check_messages(messages, column, row)
        if not any(message["role"] == "assistant" for message in messages):
            roles = ", ".join(message["role"] for message in messages) or "none"
            raise DataError(
                f"column `{column}`, row {row}: no assistant turn (roles: {roles}), so none of it would be trained on"
            )


def _check_messages(messages: Any, column: str, row: int) -> None:
    if not isinstance(messages, list):
        raise DataError(
            f"column `{column}`, row {row}: expected a list of messages {{role, content}}, got {_shown(messages)}"
        )
    for message in messages:
        if not isinstance(message, dict) or not {"role", "content"} <= message.keys():
            raise DataError(
                f"column `{column}`, row {row}: a message needs the keys role and content, got {_shown(message)}"
            )


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"
