"""The keys `from_samples` and `pairs` of a source: which samples are trained on, and which pairs are made of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from .errors import DataError, nearest_hint
from .sample_pairs import JUDGES, MATCHES
from .selection import KEEPS, TAKES


Options = TypeVar("Options")

RULES = ("best_worst", "long2short")


@dataclass(frozen=True)
class SampleOptions:
    """`from_samples: {...}` of a source; the keys are the arguments of [`select_samples`]."""

    keep: str = "right"
    take: str = "all"
    per_prompt: int | None = None
    valid_format: bool = False
    seed: int = 0


@dataclass(frozen=True)
class PairOptions:
    """
    `pairs: {...}` of a source.

    Args:
        rule (`str`):
            `best_worst`, see [`best_worst_pairs`] (reads `by`, `match`), or `long2short`, see [`long2short_pairs`]
            (reads `ratio`).
        by, match, ratio, per_prompt, use_cut, seed:
            As there.
    """

    rule: str
    by: str | None = None
    match: str | None = None
    ratio: float | None = None
    per_prompt: int | None = None
    use_cut: bool = False
    seed: int = 0


def parse_sample_options(given: Any) -> SampleOptions:
    """
    Check the value of `from_samples`.

    Args:
        given (`Any`):
            The mapping of the recipe; an empty one takes every right sample.

    Returns:
        [`SampleOptions`]

    Raises:
        `DataError`: names the key, what was expected and the nearest spelling.

    Example:

    ```python
    >>> parse_sample_options({"take": "shortest"}).keep
    'right'

    ```
    """
    return _parse(given, SampleOptions, "from_samples", {"keep": KEEPS, "take": TAKES})


def parse_pair_options(given: Any) -> PairOptions:
    """
    Check the value of `pairs`.

    Args:
        given (`Any`):
            The mapping of the recipe, with `rule`.

    Returns:
        [`PairOptions`]

    Raises:
        `DataError`: as [`parse_sample_options`], and for a key that the rule does not read.
    """
    if isinstance(given, Mapping) and given.get("rule") is None:
        raise DataError(f"datasets: pairs: needs the key 'rule' ({' or '.join(RULES)}), got {dict(given)!r}")
    options = _parse(given, PairOptions, "pairs", {"rule": RULES, "by": JUDGES, "match": MATCHES})
    others = ("ratio",) if options.rule == "best_worst" else ("by", "match")
    for key in others:
        if getattr(options, key) is not None:
            raise DataError(f"datasets: pairs.{key}: `rule: {options.rule}` does not read this key; remove it")
    if options.match == "length" and options.by == "score":
        raise DataError("datasets: pairs.match: `length` is for `by: verifier`; by score the best goes with the worst")
    if options.ratio is not None and options.ratio <= 1:
        raise DataError(f"datasets: pairs.ratio: expected a number above 1, got {options.ratio}")
    return options


def _parse(given: Any, kind: type[Options], name: str, choices: Mapping[str, tuple[str, ...]]) -> Options:
    if not isinstance(given, Mapping):
        raise DataError(f"datasets: {name}: expected a mapping such as {{per_prompt: 1}}, got {given!r}")
    known = [item.name for item in fields(kind)]  # type: ignore[arg-type]
    for key in given:
        if key not in known:
            hint = nearest_hint(key, known)
            raise DataError(f"datasets: {name}: unknown key {key!r}{hint} (valid keys: {', '.join(known)})")
    values = {
        key: _check(value, f"{name}.{key}", choices.get(key)) for key, value in given.items() if value is not None
    }
    return kind(**values)


def _check(value: Any, where: str, choices: tuple[str, ...] | None) -> Any:
    key = where.rpartition(".")[2]
    if choices is not None:
        if value not in choices:
            raise DataError(
                f"datasets: {where}: expected one of {', '.join(choices)}, got {value!r}{nearest_hint(value, choices)}"
            )
    elif key in ("valid_format", "use_cut"):
        if not isinstance(value, bool):
            raise DataError(f"datasets: {where}: expected true or false, got {value!r}")
    elif key == "ratio":
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise DataError(f"datasets: {where}: expected a number, got {value!r}")
    elif isinstance(value, bool) or not isinstance(value, int) or value < (1 if key == "per_prompt" else 0):
        least = 1 if key == "per_prompt" else 0
        raise DataError(f"datasets: {where}: expected a whole number of at least {least}, got {value!r}")
    return value
