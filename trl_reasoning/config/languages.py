"""Check of the languages that rows of the data name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..rewards.language import LANGUAGES, LanguageConsistencyReward
from ..rewards.routing import unrouted
from .rewards import RewardFunction
from .routes import rows_of


if TYPE_CHECKING:
    from datasets import Dataset


def check_languages(dataset: "Dataset", rewards: Sequence[RewardFunction]) -> None:
    """
    Check that the column of a language reward holds languages that it knows, or nothing.

    Raises:
        DataError: naming the column and the first row that does not.
    """
    from ..data import DataError

    for reward in rewards:
        function = unrouted(reward.function)
        if not isinstance(function, LanguageConsistencyReward) or function.column is None:
            continue
        values = dataset[function.column]
        for row in rows_of(dataset, [reward]):
            if values[row] and values[row] not in LANGUAGES:
                raise DataError(
                    f"column `{function.column}`: row {row} has {values[row]!r}; language_consistency expects one of "
                    f"{', '.join(LANGUAGES)}, or nothing for {function.language!r}"
                )
