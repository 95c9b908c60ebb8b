"""From one entry of a recipe's `datasets:` list to rows in the standard columns."""

import inspect
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .adapters import ADAPTERS
from .errors import DataError, nearest_hint
from .files import find_local, load_local, looks_local, pick_split
from .reasoning_gym import load_reasoning_gym
from .renames import rename_columns
from .sample_rows import pair_rows, read_samples, sampled_rows
from .source_spec import BUILTIN_PREFIX, SourceSpec, parse_source


if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger(__name__)


def load_source(spec: Mapping[str, Any], *, base_dir: Path | None = None, notes: list[str] | None = None) -> "Dataset":
    """
    Load one source: read, rename columns, adapt, shuffle, take `size` rows or a `fraction`, and add the columns of
    `constants`, in this order.

    Rows stay memory-mapped wherever they come from a file or from the hub. Samples (`from_samples`, `pairs`) are read
    into memory, since the samples of one prompt are compared.

    Args:
        spec (`Mapping[str, Any]`):
            The source; its keys are those of [`SourceSpec`].
        base_dir (`Path`, *optional*):
            Folder of the recipe. Relative local paths are looked up in the current directory first, then here.
        notes (`list[str]`, *optional*):
            Gets a line with what was chosen of samples.

    Returns:
        [`~datasets.Dataset`]

    Raises:
        `DataError`: for a wrong spec, a source that is not there or cannot be read (with what was tried), a row that
            does not parse (file and line), a column that is missing, and a row that an adapter cannot map.

    Example:

    ```python
    load_source({"path": "openai/gsm8k", "name": "main", "split": "train", "adapter": "gsm8k"})
    load_source({"path": "problems.jsonl", "columns": {"question": "text", "solution": "answer"}, "size": 100})
    ```
    """
    source = parse_source(spec)
    if source.is_builtin:
        dataset = _make_builtin(source)
    elif source.is_task:
        dataset = load_reasoning_gym(source.path, split=source.split, size=source.size, params=source.params)
    else:
        local = find_local(source.path, base_dir)
        if local is not None and source.has_samples:
            dataset = _load_samples(local, source, notes)
        elif local is not None:
            dataset = load_local(local, source)
        elif looks_local(source.path) or source.has_samples:
            raise DataError(_no_such_file(source.path, base_dir))
        else:
            dataset = _load_hub(source, base_dir)
    if source.columns:
        dataset = rename_columns(dataset, source.columns)
    if source.adapter is not None:
        dataset = ADAPTERS[source.adapter](dataset)
    return _add_constants(_take(dataset, source), source)


def _make_builtin(source: SourceSpec) -> "Dataset":
    from trl_reasoning.builtin import BUILTIN_TASKS

    task = source.path.removeprefix(BUILTIN_PREFIX)
    if task not in BUILTIN_TASKS:
        hint = nearest_hint(task, BUILTIN_TASKS)
        raise DataError(f"datasets: path: no builtin task {task!r}{hint} (known: {', '.join(sorted(BUILTIN_TASKS))})")
    make = BUILTIN_TASKS[task]
    # `split` and `size` are keys of every source and are set there.
    valid = [name for name in inspect.signature(make).parameters if name not in ("split", "size")]
    for key in source.params:
        if key not in valid:
            hint = nearest_hint(key, valid)
            raise DataError(f"datasets: params: {source.path} has no {key!r}{hint} (valid: {', '.join(valid)})")
    settings = dict(source.params)
    if source.split is not None:
        settings["split"] = source.split
    if source.size is not None:
        settings["size"] = source.size
    try:
        return make(**settings)
    except (TypeError, ValueError) as error:
        raise DataError(f"datasets: {source.path}: {error}") from error


def _load_samples(path: Path, source: SourceSpec, notes: list[str] | None) -> "Dataset":
    records = read_samples(path)
    if source.pairs is not None:
        dataset, report = pair_rows(records, source.pairs)
    else:
        assert source.from_samples is not None
        dataset, report = sampled_rows(records, source.from_samples)
    logger.info("datasets: %s: %s", source.path, report)
    if notes is not None:
        notes.append(f"{source.path}: {report}")
    return dataset


def _load_hub(source: SourceSpec, base_dir: Path | None) -> "Dataset":
    from datasets import DatasetDict, load_dataset

    try:
        loaded = load_dataset(source.path, name=source.name, split=source.split)
    # `datasets` and the hub client raise dozens of types here; all of them mean that this source has no rows for us.
    except Exception as error:
        asked = f"name={source.name!r}, split={source.split!r}"
        raise DataError(
            f"datasets: path: could not load {source.path!r}. Tried: a local file or folder (none at "
            f"{_looked_at(source.path, base_dir)}), then the hub data set {source.path!r} with {asked}: "
            f"{type(error).__name__}: {error}"
        ) from error
    if isinstance(loaded, dict):
        loaded = pick_split(DatasetDict(loaded), source)
    return loaded


def _take(dataset: "Dataset", source: SourceSpec) -> "Dataset":
    if source.shuffle_seed is not None:
        dataset = dataset.shuffle(seed=source.shuffle_seed)
    if source.fraction is not None:
        # At least one row, so that a small share of a small set is not an empty set.
        dataset = dataset.select(range(max(1, round(source.fraction * len(dataset)))) if len(dataset) else [])
    elif source.size is not None and not source.is_task:
        if source.size > len(dataset):
            logger.warning("datasets: %s has %d rows, fewer than size %d", source.path, len(dataset), source.size)
        dataset = dataset.select(range(min(source.size, len(dataset))))
    return dataset


def _add_constants(dataset: "Dataset", source: SourceSpec) -> "Dataset":
    for name, value in source.constants.items():
        if name in dataset.column_names:
            raise DataError(f"datasets: constants: {source.path} has a column {name!r} already; choose another name")
        dataset = dataset.add_column(name, [value] * len(dataset))  # type: ignore[call-arg]
    return dataset


def _looked_at(path: str, base_dir: Path | None) -> str:
    places = [Path.cwd()] if base_dir is None else [Path.cwd(), Path(base_dir)]
    return " and ".join(dict.fromkeys(str(place / Path(path).expanduser()) for place in places))


def _no_such_file(path: str, base_dir: Path | None) -> str:
    message = f"datasets: path: no file or folder {path!r}; looked at {_looked_at(path, base_dir)}"
    places = [Path.cwd()] if base_dir is None else [Path.cwd(), Path(base_dir)]
    neighbours = {
        entry.name
        for place in places
        if (folder := (place / Path(path).expanduser()).parent).is_dir()
        for entry in folder.iterdir()
    }
    return message + nearest_hint(Path(path).name, neighbours)
