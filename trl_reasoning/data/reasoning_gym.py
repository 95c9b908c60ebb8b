"""`reasoning_gym:<task>`: problems of the reasoning-gym library from a seed, in two splits that cannot overlap."""

import inspect
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ..rewards._puzzle_entries import EXTRA, scorer_of, why_refused
from .errors import DataError, nearest_hint
from .puzzle_rows import make_rows


if TYPE_CHECKING:
    from datasets import Dataset

PREFIX = "reasoning_gym:"
SPLITS = ("train", "test")
# Settings of this package beside the fields of the task's own configuration.
_OWN_PARAMS = ("seed", "level")


def load_reasoning_gym(path: str, *, split: str | None, size: int | None, params: dict[str, Any]) -> "Dataset":
    """
    Make problems of one task.

    Which split a problem belongs to is decided by a hash of its question (for `countdown` and `puzzle24`: of its
    numbers and target, since one problem has several wordings): training and test sets cannot overlap, whatever their
    seeds, sizes and levels. No problem comes twice in one source.

    Args:
        path (`str`):
            `reasoning_gym:<task>`.
        split (`str`, *optional*):
            `"train"` (four problems of five, the default) or `"test"`.
        size (`int`, *optional*):
            Number of problems, 1,000 by default.
        params (`dict[str, Any]`):
            `seed` (0 by default), `level` (of the task's curriculum, from 0), and the fields of the task's own
            configuration, for instance `{max_numbers: 4}`; a field overrides the level.

    Returns:
        [`~datasets.Dataset`]: `question`, `solution` (the library's answer, empty where it gives none), `task`,
        `puzzle` (JSON text that the reward `reasoning_gym` reads), `difficulty` where a level was given, and for
        `countdown` and `puzzle24` also `target` and `nums`.

    Raises:
        `DataError`: the library is missing, an unknown or refused task, an unknown or impossible setting, or a task
            with fewer different problems than asked for.
    """
    from datasets import Dataset

    task = find_task(path)
    split = split or "train"
    if split not in SPLITS:
        raise DataError(f"datasets: split: {path} has the splits train and test, got {split!r}")
    settings = dict(params)
    seed = settings.pop("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise DataError(f"datasets: params: seed: expected a whole number from 0 on, got {seed!r}")
    level = settings.pop("level", None)
    settings = {**_level_settings(path, task, level), **_checked_settings(path, task, settings)}
    rows = make_rows(path, task, settings, seed, level, split, 1000 if size is None else size)
    return Dataset.from_list(rows)


def find_task(path: str) -> str:
    """
    The task of a path, checked.

    Raises:
        `DataError`: the library is missing, or it has no such task, or the task is refused (with the reason).
    """
    known = _library_tasks()
    task = path.removeprefix(PREFIX)
    offered = [name for name in known if scorer_of(name) is not None]
    if task not in known:
        raise DataError(
            f"datasets: path: reasoning-gym has no task {task!r}{nearest_hint(task, offered)} "
            f"(known: {', '.join(offered)})"
        )
    if task not in offered:
        raise DataError(f"datasets: path: the task {task!r} is not offered: {why_refused(task)}")
    return task


def _library_tasks() -> list[str]:
    try:
        from reasoning_gym.factory import DATASETS
    except ImportError as error:
        raise DataError(f"datasets: path: {EXTRA}") from error
    return sorted(DATASETS)


def _checked_settings(path: str, task: str, settings: dict[str, Any]) -> dict[str, Any]:
    from reasoning_gym.factory import DATASETS

    config = DATASETS[task][1]
    defaults = {item.name: item.default for item in fields(config) if item.name not in ("seed", "size")}
    valid = [*_OWN_PARAMS, *defaults]
    for key in settings:
        if key not in defaults:
            hint = nearest_hint(str(key), valid)
            raise DataError(f"datasets: params: {path} has no {key!r}{hint} (valid: {', '.join(valid)})")
    # YAML has lists; the library's configurations have tuples where they are compared or hashed.
    return {
        key: tuple(value) if isinstance(value, list) and isinstance(defaults[key], tuple) else value
        for key, value in settings.items()
    }


def _level_settings(path: str, task: str, level: Any) -> dict[str, Any]:
    if level is None:
        return {}
    from reasoning_gym.factory import CURRICULA, create_curriculum

    if task not in CURRICULA:
        raise DataError(f"datasets: params: level: {path} has no levels; set the fields of its configuration")
    curriculum = create_curriculum(task)
    highest = max(len(attribute.levels) for attribute in curriculum.attributes.values()) - 1
    if not isinstance(level, int) or isinstance(level, bool) or not 0 <= level <= highest:
        raise DataError(f"datasets: params: level: {path} has the levels 0 to {highest}, got {level!r}")
    curriculum.set_global_level(level)
    config = curriculum.generate_configuration()
    found = {item.name: getattr(config, item.name) for item in fields(config) if item.name not in ("seed", "size")}
    return {key: value for key, value in found.items() if not inspect.isroutine(value)}
