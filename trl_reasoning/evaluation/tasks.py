"""A task: where its problems come from and how they become prompts."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data import add_prompts, find_prompt_template, load_source
from ..data.source_spec import BUILTIN_PREFIX, REASONING_GYM_PREFIX


if TYPE_CHECKING:
    from datasets import Dataset


def task_source(
    task: str | Mapping[str, Any],
    *,
    split: str | None = None,
    params: Mapping[str, Any] | None = None,
    adapter: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """
    The data source behind a task.

    Args:
        task (`str` or `Mapping`):
            `builtin:<task>`, `reasoning_gym:<task>`, a local file or folder, a hub id, or a whole source as in a
            recipe's `datasets:` list.
        split (`str`, *optional*):
            Split to read; `heldout` for a builtin task and `test` for one of reasoning-gym when nothing else is said.
        params (`Mapping`, *optional*):
            Parameters of such a task; `size` is its number of problems.
        adapter (`str`, *optional*):
            Name of a ready-made column mapping.
        columns (`Mapping`, *optional*):
            Our column names to theirs.

    Returns:
        `dict`: a source for [`~trl_reasoning.data.load_source`].

    Example:

    ```python
    >>> task_source("builtin:chain", params={"size": 50, "operands": [3, 5]})
    {'path': 'builtin:chain', 'split': 'heldout', 'size': 50, 'params': {'operands': [3, 5]}}

    ```
    """
    source: dict[str, Any] = {"path": task} if isinstance(task, str) else dict(task)
    source.update({key: value for key, value in (("split", split), ("adapter", adapter)) if value is not None})
    path = str(source.get("path"))
    if path.startswith(BUILTIN_PREFIX):
        source.setdefault("split", "heldout")
    elif path.startswith(REASONING_GYM_PREFIX):
        source.setdefault("split", "test")
    if columns:
        source["columns"] = {**source.get("columns", {}), **columns}
    if params:
        merged = {**source.get("params", {}), **params}
        # `size` is a key of every source; among the parameters a user expects it, too.
        if "size" in merged:
            source["size"] = merged.pop("size")
        source["params"] = merged
    return source


def load_task(
    source: Mapping[str, Any],
    *,
    limit: int | None = None,
    prompt_template: str | None = None,
    system_prompt: str | None = None,
    base_dir: Path | None = None,
) -> "Dataset":
    """
    Load a task's problems with their prompts.

    Args:
        source (`Mapping`):
            Of [`task_source`].
        limit (`int`, *optional*):
            Take the first so many problems.
        prompt_template (`str`, *optional*):
            Name of a prompt template that is put round `question`. Without one a `prompt` column is taken as it is,
            and the bare question where there is none.
        system_prompt (`str`, *optional*):
            System message in front of the question.
        base_dir (`Path`, *optional*):
            Folder that relative paths are tried against after the current one.

    Returns:
        [`~datasets.Dataset`]: with `prompt` and the task's own columns.
    """
    dataset = load_source(source, base_dir=base_dir)
    if limit is not None:
        dataset = dataset.select(range(min(limit, len(dataset))))
    if prompt_template is None and system_prompt is None and "prompt" in dataset.column_names:
        return dataset
    return add_prompts(dataset, template=prompt_template or "none", system_prompt=system_prompt)


def template_stop_strings(prompt_template: str | None) -> tuple[str, ...]:
    """
    Stop strings that belong to a prompt template.

    Args:
        prompt_template (`str`, *optional*):
            A key of [`~trl_reasoning.data.PROMPTS`].

    Returns:
        `tuple[str, ...]`: for instance `("</answer>",)` for `r1_zero`.
    """
    return () if prompt_template is None else find_prompt_template(prompt_template).stop_strings
