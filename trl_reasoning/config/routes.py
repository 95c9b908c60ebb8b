"""Which rows of the data a recipe's rewards are for, and from which step on rows are drawn."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .errors import RecipeError, did_you_mean
from .recipe import Recipe
from .rewards import RewardFunction


if TYPE_CHECKING:
    from datasets import Dataset


def needed_columns(dataset: "Dataset", rewards: Sequence[RewardFunction]) -> dict[str, str]:
    """
    The columns that the rewards need of these rows, and who needs each.

    Args:
        dataset ([`~datasets.Dataset`]):
            Rows of one source.
        rewards (`Sequence[RewardFunction]`):
            A reward that is for none of the rows needs nothing but the column that says so.

    Returns:
        `dict[str, str]`: column and a word for its user, as [`~trl_reasoning.data.check_columns`] takes it.
    """
    needed = {}
    for reward in rewards:
        if reward.route is not None:
            needed[reward.route.column] = f"`for` of reward {reward.name}"
        if rows_of(dataset, [reward]):
            needed |= dict.fromkeys(reward.columns, f"reward {reward.name}")
    return needed


def reward_columns(rewards: Sequence[RewardFunction]) -> list[str]:
    """All columns that the rewards read, the one of each `for` included, in a fixed order."""
    columns = [column for reward in rewards for column in reward.columns]
    return list(dict.fromkeys(columns + [reward.route.column for reward in rewards if reward.route is not None]))


def rows_of(dataset: "Dataset", rewards: Sequence[RewardFunction]) -> Sequence[int]:
    """Indices of the rows that at least one of the rewards is for."""
    if any(reward.route is None for reward in rewards):
        return range(len(dataset))
    rows: set[int] = set()
    for route in (reward.route for reward in rewards):
        if route is not None and route.column in dataset.column_names:
            rows.update(row for row, value in enumerate(dataset[route.column]) if value in route.values)
    return sorted(rows)


def check_routes(dataset: "Dataset", rewards: Sequence[RewardFunction]) -> None:
    """
    Check that every row has a reward, and that each value in a `for` has rows.

    Args:
        dataset ([`~datasets.Dataset`]):
            All training rows.
        rewards (`Sequence[RewardFunction]`):
            The rewards of the recipe.

    Raises:
        RecipeError: Names the rows, their values and the values that the rewards are for.
    """
    counts: dict[str, Counter[Any]] = {}
    for index, reward in enumerate(rewards):
        if reward.route is None:
            continue
        column = reward.route.column
        if column not in counts:
            counts[column] = Counter(dataset[column])
        for value in reward.route.values:
            if value not in counts[column]:
                found = ", ".join(f"{name!r} ({rows})" for name, rows in counts[column].most_common(10))
                raise RecipeError(
                    f"reward_funcs[{index}].for",
                    f"no row has {value!r} in the column `{column}`; values found (rows): {found}."
                    f"{did_you_mean(str(value), [str(name) for name in counts[column]])}",
                )
    if any(reward.route is None for reward in rewards) or not counts:
        return
    covered = set(rows_of(dataset, rewards))
    missed = [row for row in range(len(dataset)) if row not in covered]
    if missed:
        columns = list(counts)
        values = Counter(tuple(dataset[row][column] for column in columns) for row in missed)
        shown = "; ".join(
            f"{', '.join(f'{column} {value!r}' for column, value in zip(columns, found, strict=True))} ({rows} rows)"
            for found, rows in values.most_common(5)
        )
        raise RecipeError(
            "reward_funcs",
            f"no reward is for {len(missed)} of {len(dataset)} rows, the first is row {missed[0]}: {shown}. Name "
            "these values in a `for`, or add a reward without one",
        )


def check_from_step(recipe: Recipe) -> None:
    """
    Check the `from_step` of the training sources.

    Raises:
        RecipeError: No rows at step 0, rows that would never be drawn, or a method or sampling without `from_step`.
    """
    from ..data import parse_source

    starts = [parse_source(source).from_step for source in recipe.values["datasets"]]
    latest = starts.index(max(starts))
    key, start, last = f"datasets[{latest}].from_step", starts[latest], recipe.get("max_steps", -1)
    if start == 0:
        return
    if recipe.spec.kind != "policy":
        raise RecipeError(
            key, f"`method: {recipe.method}` goes through all rows in every epoch; the key is for methods that sample"
        )
    if min(starts) > 0:
        raise RecipeError(key, "no source is there at step 0; remove the key from one of them")
    if recipe.get("sampling", "uniform") != "uniform":
        raise RecipeError(
            "sampling", f"`{recipe.get('sampling')}` does not know `from_step`; write `sampling: uniform`"
        )
    if 0 < last <= start:
        raise RecipeError(
            key, f"{start} is not before the end of the run (`max_steps` {last}); nothing would be drawn"
        )
