"""Checks of rewards before a model is loaded: what they need beside data, and tests that can be run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import UserError
from ..rewards.code import CodeTestsReward
from ..rewards.routing import unrouted
from .errors import RecipeError
from .rewards import RewardFunction
from .routes import rows_of


if TYPE_CHECKING:
    from datasets import Dataset

_OPTIONAL = ("test_setup", "code_prompt", "entry_point")
# As for golds: a few unreadable rows cost their samples, many mean that the wrong column was taken.
_LIMIT = 0.02


def check_ready(rewards: Sequence[RewardFunction], *, key: str = "reward_funcs") -> None:
    """
    Ask each reward that has a `check_ready` whether what it needs beside data is there: a sandbox, an extra.

    Raises:
        RecipeError: Something is missing; names the way out.
    """
    for index, reward in enumerate(rewards):
        check = getattr(unrouted(reward.function), "check_ready", None)
        if check is not None:
            try:
                check()
            except UserError as error:
                raise RecipeError(f"{key}[{index}]", str(error)) from error


def check_tests(dataset: "Dataset", rewards: Sequence[RewardFunction]) -> None:
    """
    Check that the tests of the rows can be run, as far as their text shows it.

    Raises:
        DataError: naming the first row and the reason, where more than 2 % of the rows cannot.
    """
    from ..data import DataError

    for reward in rewards:
        function = unrouted(reward.function)
        if not isinstance(function, CodeTestsReward):
            continue
        rows = rows_of(dataset, [reward])
        columns = [name for name in ("tests", *_OPTIONAL) if name in dataset.column_names]
        part = dataset.select(rows).select_columns(columns)
        unreadable = function.unreadable_rows({name: list(part[name]) for name in columns})
        if len(unreadable) > _LIMIT * len(rows):
            place, reason = unreadable[0]
            raise DataError(
                f"column `tests`: the tests of {len(unreadable)} of {len(rows)} rows cannot be run; the first is row "
                f"{rows[place]}: {reason}"
            )
