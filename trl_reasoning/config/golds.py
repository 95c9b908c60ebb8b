"""The check of the golds that a run's rewards and its held-out accuracy read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..answers import KINDS
from ..rewards.routing import unrouted
from .recipe import Recipe
from .rewards import RewardFunction
from .routes import rows_of


if TYPE_CHECKING:
    from datasets import Dataset

GOLD = "solution"
_LIMIT = 0.02


def gold_limit(recipe: Recipe) -> float:
    """The largest share of golds that may fail: `max_failing_golds`, or 2 %."""
    given = recipe.get("max_failing_golds")
    return _LIMIT if given is None else given


def check_graded(
    dataset: "Dataset", rewards: Sequence[RewardFunction], recipe: Recipe, notes: list[str] | None
) -> None:
    """
    Check the golds of the rows that each kind of answer check reads.

    Args:
        dataset ([`~datasets.Dataset`]):
            Rows with the column `solution`.
        rewards (`Sequence[RewardFunction]`):
            The rewards of the recipe.
        recipe ([`Recipe`]):
            For `max_failing_golds`.
        notes (`list[str]`, *optional*):
            Gets a line with the share and examples of golds that fail.

    Raises:
        DataError: More golds than that do not verify against themselves.
    """
    from ..data import check_golds

    kinds: dict[str, list[RewardFunction]] = {}
    for reward in filter(_verifies_gold, rewards):
        kind = getattr(unrouted(reward.function), "kind", "auto")
        kinds.setdefault(kind if kind in KINDS else "auto", []).append(reward)
    for kind, readers in kinds.items():
        graded = rows_of(dataset, readers)
        rows = dataset if len(graded) == len(dataset) else dataset.select(graded)
        line = check_golds(rows, GOLD, gold_limit(recipe), kind=kind).summary()
        if line and notes is not None:
            notes.append(line)


def _verifies_gold(reward: RewardFunction) -> bool:
    """Whether a reward reads golds as answers; a judge is shown them, so that any text will do."""
    return GOLD in reward.columns and not getattr(unrouted(reward.function), "gold_is_text", False)
