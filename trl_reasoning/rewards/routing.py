"""Rewards for some rows only: each prompt goes to the rewards that its value in a column names."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ._reward import Completion, Reward


def make_routed_reward(
    reward: Callable[..., Any], column: str, values: Iterable[Any], columns: Iterable[str] = ()
) -> Reward:
    r"""
    Make a reward that scores the rows whose `column` is one of `values`, and gives `None` for all others.

    TRL leaves a `None` out of the row's sum, so that with rewards $r_f$ of weight $w_f$, each for the values $V_f$,

    $$ r_i = \sum_{f:\, v_i \in V_f} w_f\, r_f(x_i, y_i) $$

    With one column this is the reward of DeepSeek-R1's last stage: accuracy and form for reasoning prompts, a reward
    model and form for general ones. The wrapped reward sees its own rows alone, as if the batch held no others: every
    list with one entry a row is cut, and values that it logs with `log_extra` are put back at their rows.

    Args:
        reward (`Callable`):
            A reward function or object, also an asynchronous one.
        column (`str`):
            Dataset column that says what kind of prompt a row has.
        values (`Iterable`):
            The values whose rows are scored, at least one.
        columns (`Iterable[str]`, *optional*):
            Dataset columns that `reward` needs; those that it states itself when empty.

    Returns:
        [`Reward`]: keeps the name of `reward`; needs its columns and `column`. Asynchronous where `reward` is.

    Raises:
        ValueError: when there are no values.

    Reference: DeepSeek-R1 (https://huggingface.co/papers/2501.12948), section 2.3.4.

    Example:
    ```python
    >>> from trl_reasoning.rewards import REWARDS
    >>> reward = make_routed_reward(REWARDS["format"](), "scenario", ["math"])
    >>> completions = ["<think>9-5</think>4", "Hello!", "4"]
    >>> reward(["?"] * 3, completions, [[1]] * 3, scenario=["math", "general", "math"])
    [1.0, None, 0.0]

    ```
    """
    stated = tuple(columns) or tuple(getattr(reward, "columns", ()))
    is_async = any(map(inspect.iscoroutinefunction, (reward, type(reward).__call__)))
    return (_AsyncRoutedReward if is_async else _RoutedReward)(reward, column, tuple(values), stated)


def unrouted(reward: Any) -> Any:
    """The reward inside one of [`make_routed_reward`]; any other reward itself."""
    return reward.reward if isinstance(reward, _RoutedReward) else reward


class _RoutedReward:
    def __init__(self, reward: Callable[..., Any], column: str, values: tuple[Any, ...], columns: tuple[str, ...]):
        if not values:
            raise ValueError(f"routed reward: expected at least one value of {column}, got none")
        self.reward = reward
        self.column = column
        self.values = values
        self.columns = (*columns, *(name for name in (column,) if name not in columns))
        self.__name__ = getattr(reward, "__name__", type(reward).__name__)
        self._extra: set[str] = set()  # columns that the reward has put into the completions table

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        **kwargs: Any,
    ) -> list[float | None]:
        batch = {"prompts": prompts, "completions": completions, "completion_ids": completion_ids, **kwargs}
        rows, own = self._own_rows(batch)
        return _spread(self.reward(**own) if rows else [], rows, len(prompts))

    def _own_rows(self, batch: dict[str, Any]) -> tuple[list[int], dict[str, Any]]:
        """The rows that the reward is for, and its arguments for these rows alone."""
        total = len(batch["prompts"])
        rows = [row for row, value in enumerate(batch[self.column]) if value in self.values]
        own = {
            name: [value[row] for row in rows] if isinstance(value, list | tuple) and len(value) == total else value
            for name, value in batch.items()
        }
        log_extra = batch.get("log_extra")
        if log_extra is not None:

            def log_spread(column: str, values: Sequence[Any]) -> None:
                self._extra.add(column)
                log_extra(column, _spread(values, rows, total))

            own["log_extra"] = log_spread
            if not rows:  # the table has a value a row: without this it would show those of an earlier batch
                for column in sorted(self._extra):
                    log_extra(column, [None] * total)
        return rows, own


class _AsyncRoutedReward(_RoutedReward):
    async def __call__(  # type: ignore[override]
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        **kwargs: Any,
    ) -> list[float | None]:
        batch = {"prompts": prompts, "completions": completions, "completion_ids": completion_ids, **kwargs}
        rows, own = self._own_rows(batch)
        return _spread(await self.reward(**own) if rows else [], rows, len(prompts))


def _spread(values: Sequence[Any], rows: Sequence[int], total: int) -> list[Any]:
    """`values` at their rows, `None` at all others."""
    if len(values) != len(rows):
        raise ValueError(f"a reward returned {len(values)} values for {len(rows)} completions; expected one for each")
    spread: list[Any] = [None] * total
    for row, value in zip(rows, values, strict=True):
        spread[row] = value
    return spread
