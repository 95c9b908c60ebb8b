"""`builtin:chain_steps`: worked chains with a label for each step."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import UserError
from .chain import make_chain_dataset


if TYPE_CHECKING:
    from datasets import Dataset

LABELS = ("so_far", "step")
_LINE = re.compile(r"(-?\d+)([+-])(\d+)=(-?\d+)")


def make_chain_steps_dataset(
    split: str = "train",
    *,
    size: int = 1000,
    operands: int | Sequence[int] = (2, 7),
    seed: int = 0,
    slip_share: float = 0.6,
    labels: str = "so_far",
) -> "Dataset":
    """
    Step-labelled solutions of chain arithmetic, for process reward models.

    A solution has one line a step and the answer as its last step. Some have a slip: one wrong result, which the later
    lines take over. Splits are those of [`make_chain_dataset`]: held-out questions never occur among the training
    ones.

    Args:
        split (`str`, *optional*, defaults to `"train"`):
            `"train"` or `"heldout"`.
        size (`int`, *optional*, defaults to `1000`):
            Number of rows.
        operands (`int` or `Sequence[int]`, *optional*, defaults to `(2, 7)`):
            One number of operands, or the least and the most (both included), at least 2.
        seed (`int`, *optional*, defaults to `0`):
            Seed of questions and slips.
        slip_share (`float`, *optional*, defaults to `0.6`):
            Share of solutions with a slip, in [0, 1].
        labels (`"so_far"` or `"step"`, *optional*, defaults to `"so_far"`):
            What a label says: that the step and all before it are right, which is what labels by rollouts estimate, or
            that the step is right by itself, given the result that it goes on from.

    Returns:
        [`~datasets.Dataset`] with the columns `question`, `prompt` (messages), `steps` (`list[str]`), `labels`
        (`list[float]`, 0 or 1), `solution` (`str`) and `difficulty` (number of operands).

    Raises:
        [`~trl_reasoning.errors.UserError`]: for an unknown split or label, or an impossible range or share.

    Example:

    ```python
    >>> row = make_chain_steps_dataset(size=1, operands=3, slip_share=1.0)[0]
    >>> len(row["steps"]), row["labels"][-1]
    (3, 0.0)

    ```
    """
    from datasets import Dataset

    if labels not in LABELS:
        raise UserError(f"labels: expected one of {list(LABELS)}, got {labels!r}")
    if not 0 <= slip_share <= 1:
        raise UserError(f"slip_share: expected a share in [0, 1], got {slip_share}")
    styles = {"careful": 1 - slip_share, "wrong": slip_share}
    rows = []
    for row in make_chain_dataset(split, size=size, operands=operands, seed=seed, styles=styles):
        thought, answer = row["completion"][0]["content"].removeprefix("<think>").split("</think>")  # type: ignore[index, call-overload]
        steps = [*thought.split("\n"), answer]
        rights = [_is_right(line) for line in steps[:-1]]
        rights.append(answer == row["solution"])  # type: ignore[index, call-overload]
        if labels == "so_far":
            rights = [all(rights[: index + 1]) for index in range(len(rights))]
        kept = {key: row[key] for key in ("question", "prompt", "solution", "difficulty")}  # type: ignore[index, call-overload]
        rows.append({**kept, "steps": steps, "labels": [float(right) for right in rights]})
    return Dataset.from_list(rows)


def _is_right(line: str) -> bool:
    found = _LINE.fullmatch(line)
    assert found is not None
    return int(found[1]) + int(found[2] + found[3]) == int(found[4])
