"""Worked problems as rows of a cold start: prompt and completion with the thought in it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trl_reasoning.text import THINK_CLOSE, THINK_OPEN

from .errors import DataError, nearest_hint
from .prompts import build_prompt, find_prompt_template
from .rows import Row, map_rows


if TYPE_CHECKING:
    from datasets import Dataset

# How the visible answer is written, by name.
ANSWER_FORMS = {"boxed": "\\boxed{{{}}}", "plain": "{}", "answer_tags": "<answer>{}</answer>"}


def to_sft(
    dataset: "Dataset",
    *,
    answer_form: str = "boxed",
    template: str = "none",
    system_prompt: str | None = None,
    as_text: bool | None = None,
) -> "Dataset":
    r"""
    Turn `question`, `rationale` and `solution` into `prompt` and `completion`.

    The completion is the thought, then the answer: `<think>\nrationale\n</think>\n\nanswer`. Where the prompt itself
    ends with the opening tag, the completion starts inside the thought.

    Args:
        dataset ([`~datasets.Dataset`]):
            Rows with the columns `question`, `rationale` and `solution`, as most entries of `ADAPTERS` give them.
        answer_form (`str`, *optional*, defaults to `"boxed"`):
            `"boxed"` (`\boxed{5}`), `"plain"` (`5`) or `"answer_tags"` (`<answer>5</answer>`).
        template, system_prompt, as_text:
            As in [`build_prompt`].

    Returns:
        [`~datasets.Dataset`]: `prompt` and `completion`, both messages or both plain text, beside the input's columns.

    Raises:
        `DataError`: for an unknown answer form, a missing column, a row whose rationale or solution is empty.

    Example:

    ```python
    >>> from datasets import Dataset
    >>> rows = Dataset.from_list([{"question": "1+1?", "rationale": "1+1=2", "solution": "2"}])
    >>> to_sft(rows, answer_form="plain")[0]["completion"]
    [{'role': 'assistant', 'content': '<think>\n1+1=2\n</think>\n\n2'}]

    ```
    """
    if answer_form not in ANSWER_FORMS:
        hint = nearest_hint(answer_form, ANSWER_FORMS)
        raise DataError(f"answer_form: unknown form {answer_form!r}{hint} (known: {', '.join(ANSWER_FORMS)})")
    for column in ("question", "rationale", "solution"):
        if column not in dataset.column_names:
            raise DataError(
                f"a cold start needs the columns question, rationale and solution, and `{column}` is missing (found: "
                f"{', '.join(dataset.column_names)}); choose an adapter that gives it or rename with "
                f"`columns: {{{column}: <their name>}}`"
            )
    form = find_prompt_template(template, as_text=as_text)
    kind = "string" if form.is_text else "messages"
    return map_rows(
        dataset,
        _ColdStart(answer_form=answer_form, template=form.name, system_prompt=system_prompt),
        outputs={"prompt": kind, "completion": kind},
        keeps=dataset.column_names,
        label="cold start",
    )


@dataclass(frozen=True)
class _ColdStart:
    answer_form: str
    template: str
    system_prompt: str | None

    def __call__(self, row: Row) -> Row:
        for column in ("question", "rationale", "solution"):
            if not isinstance(row[column], str) or not row[column].strip():
                raise DataError(f"`{column}` should be a non-empty string, got {row[column]!r}")
        prompt = build_prompt(row["question"], template=self.template, system_prompt=self.system_prompt)
        answer = ANSWER_FORMS[self.answer_form].format(row["solution"].strip())
        completion = f"{THINK_OPEN}\n{row['rationale'].strip()}\n{THINK_CLOSE}\n\n{answer}"
        if isinstance(prompt, str):
            if prompt.endswith(THINK_OPEN):
                completion = completion.removeprefix(THINK_OPEN)
            return {"prompt": prompt, "completion": completion}
        return {"prompt": prompt, "completion": [{"role": "assistant", "content": completion}]}
