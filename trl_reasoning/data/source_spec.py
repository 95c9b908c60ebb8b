"""What a recipe may say about one source of rows, checked before anything is read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from .adapters import ADAPTERS
from .errors import DataError, nearest_hint
from .sample_options import PairOptions, SampleOptions, parse_pair_options, parse_sample_options


BUILTIN_PREFIX = "builtin:"
REASONING_GYM_PREFIX = "reasoning_gym:"
FROM_STEP = "from_step"
"""Column of the training rows with the optimizer step from which on each may be drawn; absent where all may."""


@dataclass(frozen=True)
class SourceSpec:
    """
    One entry of a recipe's `datasets:` list.

    Args:
        path (`str`):
            `builtin:<task>`, `reasoning_gym:<task>`, a local JSON, JSONL (also `.gz`), Parquet or Arrow file, a folder
            of them, a folder written by `save_to_disk`, or a hub id.
        name (`str`, *optional*):
            Configuration of a hub data set, for instance `main`.
        split (`str`, *optional*):
            Split to read. Without it the only split is taken, or `train` where there are several. A single local file
            has no splits: there it is a label.
        adapter (`str`, *optional*):
            Name of an entry of `ADAPTERS` that maps the rows to the standard columns.
        columns (`dict[str, str]`, *optional*):
            Renames, ours to theirs (`{solution: answer}`), made before the adapter.
        size (`int`, *optional*):
            Take the first `size` rows (after the shuffle); for a task the number of rows to make.
        shuffle_seed (`int`, *optional*):
            Shuffle the rows with this seed before `size` or `fraction` is taken.
        weight (`float`, *optional*, defaults to `1.0`):
            Weight of this source in a mixture, greater than 0.
        fraction (`float`, *optional*):
            Take this share of the rows (after the shuffle), in (0, 1].
        constants (`dict[str, str | int | float]`, *optional*):
            Columns to add, each with one value for all rows of this source, for instance `{scenario: math}`.
        from_step (`int`, *optional*, defaults to `0`):
            Optimizer step from which on rows of this source are drawn, at least 0 (the first step is step 0).
        params (`dict[str, Any]`, *optional*):
            Settings of a task, for instance `{operands: [2, 7]}` or `{seed: 1, level: 2}`.
        from_samples ([`SampleOptions`], *optional*):
            The path is a file of `trl-reasoning sample`; train on those samples that are chosen:
            `{keep: right, take: shortest, per_prompt: 1}`.
        pairs ([`PairOptions`], *optional*):
            The path is a file of `trl-reasoning sample`; make preference pairs of them: `{rule: long2short}`.
    """

    path: str
    name: str | None = None
    split: str | None = None
    adapter: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    size: int | None = None
    shuffle_seed: int | None = None
    weight: float = 1.0
    fraction: float | None = None
    constants: dict[str, Any] = field(default_factory=dict)
    from_step: int = 0
    params: dict[str, Any] = field(default_factory=dict)
    from_samples: SampleOptions | None = None
    pairs: PairOptions | None = None

    @property
    def has_samples(self) -> bool:
        """Whether the path names samples of this package, of which rows are chosen or made."""
        return self.from_samples is not None or self.pairs is not None

    @property
    def is_builtin(self) -> bool:
        """Whether the path names a task of this package, not a file or the hub."""
        return self.path.startswith(BUILTIN_PREFIX)

    @property
    def is_task(self) -> bool:
        """Whether the rows are made from settings, by this package or by reasoning-gym."""
        return self.path.startswith((BUILTIN_PREFIX, REASONING_GYM_PREFIX))


SOURCE_KEYS = tuple(item.name for item in fields(SourceSpec))


def parse_source(spec: Mapping[str, Any]) -> SourceSpec:
    """
    Check the mapping of one source and give it types. Reads no data.

    Args:
        spec (`Mapping[str, Any]`):
            The keys of [`SourceSpec`]; `path` is required and a key with the value `None` counts as absent.

    Returns:
        [`SourceSpec`]

    Raises:
        `DataError`: for an unknown key or adapter (with the nearest valid spelling), a missing path, a value of a
            wrong type or out of its range, and settings that cannot go together.

    Example:

    ```python
    >>> parse_source({"path": "builtin:chain", "size": "100"}).size
    100

    ```
    """
    if not isinstance(spec, Mapping):
        raise DataError(f"datasets: each source is a mapping with the key 'path', got {spec!r}")
    for key in spec:
        if key not in SOURCE_KEYS:
            hint = nearest_hint(key, SOURCE_KEYS)
            raise DataError(f"datasets: unknown key {key!r}{hint} (valid keys: {', '.join(SOURCE_KEYS)})")
    given = {key: value for key, value in spec.items() if value is not None}
    if "path" not in given:
        raise DataError(f"datasets: a source needs the key 'path', got {dict(spec)!r}")
    for key in ("path", "name", "split", "adapter"):
        if key in given and (not isinstance(given[key], str) or not given[key].strip()):
            raise DataError(f"datasets: {key}: expected a non-empty string, got {given[key]!r}")
    for key in ("size", "shuffle_seed", "from_step"):
        if key in given:
            given[key] = _number(key, given[key], int)
    for key in ("weight", "fraction"):
        if key in given:
            given[key] = _number(key, given[key], float)
    for key in ("columns", "constants", "params"):
        if key in given:
            if not isinstance(given[key], Mapping):
                raise DataError(f"datasets: {key}: expected a mapping, got {given[key]!r}")
            given[key] = dict(given[key])
    for key, parse in (("from_samples", parse_sample_options), ("pairs", parse_pair_options)):
        if key in given:
            given[key] = parse(given[key])
    source = SourceSpec(**given)
    _check_values(source)
    return source


def _number(key: str, value: Any, kind: type) -> Any:
    """`value` as a number of this kind; text is converted, because YAML reads `1e-1` as text."""
    try:
        number = float(value) if not isinstance(value, bool) else float("nan")
    except (TypeError, ValueError):
        number = float("nan")
    if not math.isfinite(number) or (kind is int and number != int(number)):
        raise DataError(f"datasets: {key}: expected {'an integer' if kind is int else 'a number'}, got {value!r}")
    return kind(number)


def _check_values(source: SourceSpec) -> None:
    if source.adapter is not None and source.adapter not in ADAPTERS:
        hint = nearest_hint(source.adapter, ADAPTERS)
        raise DataError(
            f"datasets: adapter: unknown adapter {source.adapter!r}{hint} (known: {', '.join(sorted(ADAPTERS))})"
        )
    for ours, theirs in source.columns.items():
        if not isinstance(ours, str) or not isinstance(theirs, str):
            raise DataError(f"datasets: columns: expected {{our name: their name}}, got {{{ours!r}: {theirs!r}}}")
    for name, value in source.constants.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float):
            raise DataError(f"datasets: constants: expected {{column: text or number}}, got {{{name!r}: {value!r}}}")
    if source.from_step < 0:
        raise DataError(f"datasets: from_step: expected 0 or more, got {source.from_step}")
    if source.size is not None and source.size < 1:
        raise DataError(f"datasets: size: expected at least 1 row, got {source.size}")
    if source.fraction is not None and not 0 < source.fraction <= 1:
        raise DataError(f"datasets: fraction: expected a share in (0, 1], got {source.fraction}")
    if source.shuffle_seed is not None and source.shuffle_seed < 0:
        raise DataError(f"datasets: shuffle_seed: expected 0 or more, got {source.shuffle_seed}")
    if source.weight <= 0:
        raise DataError(f"datasets: weight: expected a number greater than 0, got {source.weight}")
    if source.size is not None and source.fraction is not None:
        raise DataError("datasets: size and fraction both say how many rows to take; set one of them")
    if source.params and not source.is_task:
        raise DataError(
            f"datasets: params are for tasks (builtin: and reasoning_gym:) only, and {source.path!r} is not one"
        )
    if source.is_task and source.name is not None:
        raise DataError("datasets: name is for hub data sets only; settings of a task go into 'params'")
    if source.has_samples:
        _check_samples(source)


def _check_samples(source: SourceSpec) -> None:
    if source.from_samples is not None and source.pairs is not None:
        raise DataError("datasets: from_samples and pairs both say what becomes of the samples; set one of them")
    key = "pairs" if source.from_samples is None else "from_samples"
    if source.is_task:
        raise DataError(f"datasets: {key}: needs a file of `trl-reasoning sample`, and {source.path!r} is a task")
    for other in ("name", "split", "adapter", "columns"):
        if getattr(source, other):
            raise DataError(f"datasets: {other}: samples have keys of their own; remove {other}, or {key}")
