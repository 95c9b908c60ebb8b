"""From a question to the prompt of a method: prompt templates by name."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trl_reasoning.text import THINK_CLOSE, THINK_OPEN

from .errors import DataError, nearest_hint
from .rows import Message, Row, map_rows


if TYPE_CHECKING:
    from datasets import Dataset

Prompt = str | list[Message]

# Says what the format is and nothing about how to think, which is left to reinforcement learning.
_R1_ZERO = (
    "Below is a dialogue in which a User puts a question and an Assistant works it out. The Assistant reasons in "
    "private before it replies, and only then tells the User its answer. The reasoning stands between "
    f"{THINK_OPEN} and {THINK_CLOSE} and the answer between <answer> and </answer>, in this shape: "
    f"{THINK_OPEN} reasoning goes here {THINK_CLOSE} <answer> answer goes here </answer>. "
)
_BOXED = "Work through the problem one step at a time, and give the final answer inside \\boxed{}."


@dataclass(frozen=True)
class PromptTemplate:
    """
    How a question becomes a prompt.

    Args:
        name (`str`):
            Name in recipes.
        summary (`str`):
            One line for people.
        is_text (`bool`):
            Whether the prompt is plain text, for base models, instead of messages for a chat template.
        before (`str`, *optional*, defaults to `""`):
            Plain text in front of the question.
        after (`str`, *optional*, defaults to `""`):
            Plain text behind the question.
        system (`str`, *optional*):
            System message of the template itself.
        stop_strings (`tuple[str, ...]`, *optional*, defaults to `()`):
            Strings that end a completion of this prompt.
    """

    name: str
    summary: str
    is_text: bool
    before: str = ""
    after: str = ""
    system: str | None = None
    stop_strings: tuple[str, ...] = ()


_ALL = (
    PromptTemplate("none", "the bare question, as a user message", is_text=False),
    PromptTemplate("none_text", "the bare question, as plain text for a base model", is_text=True),
    PromptTemplate(
        "r1_zero",
        "the R1-Zero instruction with the think and answer skeleton, then User and Assistant, as plain text",
        is_text=True,
        before=f"{_R1_ZERO}User: ",
        after=" Assistant:",
        stop_strings=("</answer>",),
    ),
    PromptTemplate(
        "r1_zero_primed",
        "r1_zero with the thought already opened, as Dr. GRPO uses it",
        is_text=True,
        before=f"{_R1_ZERO}User: ",
        after=f" Assistant: {THINK_OPEN}",
        stop_strings=("</answer>",),
    ),
    PromptTemplate(
        "qwen_boxed", "a system line that asks for steps and a boxed answer, as messages", is_text=False, system=_BOXED
    ),
    PromptTemplate("qwen3", "a plain user message; the chat template switches thinking", is_text=False),
)

PROMPTS: dict[str, PromptTemplate] = {template.name: template for template in _ALL}


def find_prompt_template(name: str, *, as_text: bool | None = None) -> PromptTemplate:
    """
    The prompt template of this name.

    Args:
        name (`str`):
            A key of `PROMPTS`.
        as_text (`bool`, *optional*):
            Ask for plain text (`True`) or messages (`False`). `None` takes the template's own form. Only `none` has
            both forms.

    Returns:
        [`PromptTemplate`]

    Raises:
        `DataError`: for an unknown name, or a form that the template does not have.
    """
    if name not in PROMPTS:
        raise DataError(
            f"prompt_template: unknown template {name!r}{nearest_hint(name, PROMPTS)} (known: {', '.join(PROMPTS)})"
        )
    if as_text is not None and name in ("none", "none_text"):
        name = "none_text" if as_text else "none"
    template = PROMPTS[name]
    if as_text is not None and template.is_text != as_text:
        form = "plain text" if template.is_text else "messages"
        raise DataError(f"prompt_template: {name!r} gives {form} only")
    return template


def build_prompt(
    question: str, *, template: str = "none", system_prompt: str | None = None, as_text: bool | None = None
) -> Prompt:
    """
    Build the prompt of one question.

    Args:
        question (`str`):
            The problem's text.
        template (`str`, *optional*, defaults to `"none"`):
            A key of `PROMPTS`.
        system_prompt (`str`, *optional*):
            Goes in front as a system message; before the template's own system line where it has one.
        as_text (`bool`, *optional*):
            As in [`find_prompt_template`].

    Returns:
        `str` for plain text templates, else `list[dict]` with `role` and `content`.

    Raises:
        `DataError`: for an unknown template, or a system prompt with a plain text template.

    Example:

    ```python
    >>> build_prompt("1+1?", template="none", system_prompt="Be brief.")
    [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': '1+1?'}]
    >>> build_prompt("1+1?", template="r1_zero")[-22:]
    ' User: 1+1? Assistant:'

    ```
    """
    found = find_prompt_template(template, as_text=as_text)
    if found.is_text:
        if system_prompt:
            raise DataError(
                f"system_prompt: the prompt template {found.name!r} is plain text and has no system message; remove "
                "system_prompt or choose a template with messages"
            )
        return f"{found.before}{question}{found.after}"
    system = "\n\n".join(part for part in (system_prompt, found.system) if part)
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    return [*messages, {"role": "user", "content": question}]


def add_prompts(
    dataset: "Dataset", *, template: str = "none", system_prompt: str | None = None, as_text: bool | None = None
) -> "Dataset":
    """
    Give every row a column `prompt`, built from `question`; other columns stay.

    Without a column `question`, a `prompt` that is plain text, or a single user message, is taken as the question.

    Args:
        dataset ([`~datasets.Dataset`]):
            Rows with `question`, or with such a `prompt`.
        template, system_prompt, as_text:
            As in [`build_prompt`].

    Returns:
        [`~datasets.Dataset`]

    Raises:
        `DataError`: without such a column, for a row without a question, and as in [`build_prompt`].
    """
    form = find_prompt_template(template, as_text=as_text)
    build_prompt("", template=form.name, system_prompt=system_prompt)
    column = next((name for name in ("question", "prompt") if name in dataset.column_names), None)
    if column is None:
        raise DataError(
            "prompt_template: needs a column `question` (or a `prompt` of plain text) to build prompts from; found: "
            f"{', '.join(dataset.column_names)}. Name yours with `columns: {{question: <their name>}}`"
        )
    builder = _PromptBuilder(column=column, template=form.name, system_prompt=system_prompt)
    return map_rows(
        dataset,
        builder,
        outputs={"prompt": "string" if form.is_text else "messages"},
        keeps=dataset.column_names,
        label=f"prompt_template {template!r}",
    )


@dataclass(frozen=True)
class _PromptBuilder:
    column: str
    template: str
    system_prompt: str | None

    def __call__(self, row: Row) -> Row:
        question = row[self.column]
        if isinstance(question, list) and len(question) == 1 and question[0]["role"] == "user":
            question = question[0]["content"]
        if not isinstance(question, str) or not question.strip():
            raise DataError(f"`{self.column}` should be the text of a question, got {question!r}")
        return {"prompt": build_prompt(question, template=self.template, system_prompt=self.system_prompt)}
