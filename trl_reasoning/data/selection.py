"""Choosing among several samples of one prompt: rejection sampling, and what pairs of samples need, too."""

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import DataError, nearest_hint


Record = Mapping[str, Any]

KEEPS = ("right", "all")
TAKES = ("all", "shortest", "longest", "best")


@dataclass
class SelectionReport:
    """
    What became of the samples.

    Args:
        prompts (`int`):
            Prompts that came in.
        used (`int`):
            Prompts of which something was kept.
        samples (`int`):
            Samples that came in.
        kept (`int`):
            Samples, or pairs, that were kept.
        what (`str`, *optional*, defaults to `"samples"`):
            What was kept: `samples` or `pairs`.
        reasons (`dict[str, int]`, *optional*):
            Why the others were left out, and how many.
    """

    prompts: int
    used: int
    samples: int
    kept: int
    what: str = "samples"
    reasons: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in self.reasons.items() if count)
        return (
            f"{self.kept} {self.what} of {self.used} of {self.prompts} prompts ({self.samples} samples)"
            f"{'; left out: ' + reasons if reasons else ''}"
        )


def select_samples(
    records: Iterable[Record],
    keep: str = "right",
    take: str = "all",
    *,
    per_prompt: int | None = None,
    valid_format: bool = False,
    seed: int = 0,
) -> tuple[list[Record], SelectionReport]:
    """
    Rejection sampling: the samples that a model is to be trained on.

    Samples that were cut by the token limit are always left out, since they teach not to end. Of samples of one prompt
    that are equal up to blanks the first one counts.

    Args:
        records (`Iterable[Mapping]`):
            Records of `trl-reasoning sample`; those with the same prompt belong together.
        keep (`"right"` or `"all"`, *optional*, defaults to `"right"`):
            Samples whose verdict is right, or all.
        take (`str`, *optional*, defaults to `"all"`):
            Of each prompt `"all"`, the `"shortest"` or `"longest"` in tokens, or the `"best"` by `score`.
        per_prompt (`int`, *optional*):
            Most samples of a prompt, at least 1. Without it `"all"` takes all of them and the others one. Of `"all"`
            they are drawn at random.
        valid_format (`bool`, *optional*, defaults to `False`):
            Whether to leave out samples that are not one thought with an answer behind it.
        seed (`int`, *optional*, defaults to `0`):
            Seed of the draw; the draw of one prompt does not depend on the others.

    Returns:
        `tuple[list[Mapping], SelectionReport]`: the records in their order, and what became of the others.

    Raises:
        `DataError`: for an unknown choice, samples without a verdict, or `"best"` without scores.

    References: DeepSeek-R1 (https://huggingface.co/papers/2501.12948), section 2.3.3 (right ones); Kimi k1.5
    (https://huggingface.co/papers/2501.12599), section 2.4 (the shortest right one of 8).

    Example:

    ```python
    >>> rows = [
    ...     {"prompt": "1+1?", "completion": text, "tokens": tokens, "status": status, "finish_reason": "stop"}
    ...     for text, tokens, status in [("2", 9, "right"), ("It is 2", 5, "right"), ("3", 2, "wrong")]
    ... ]
    >>> [record["tokens"] for record in select_samples(rows, take="shortest")[0]]
    [5]

    ```
    """
    check_choice("keep", keep, KEEPS)
    check_choice("take", take, TAKES)
    groups = group_by_prompt(records)
    reasons: Counter[str] = Counter()
    kept: list[Record] = []
    used = 0
    if keep == "right":
        check_judged(groups)
    for prompt, group in groups.items():
        refusals = [_refusal(record, keep, take, valid_format) for record in group]
        reasons.update(refusals)
        usable = distinct_samples(
            [record for record, refusal in zip(group, refusals, strict=True) if not refusal], reasons
        )
        taken = take_samples(usable, take, per_prompt, random.Random(f"{seed} {prompt}"))
        reasons["over per_prompt" if take == "all" else f"not the {take}"] += len(usable) - len(taken)
        kept += taken
        used += bool(taken)
    del reasons[""]
    return kept, SelectionReport(len(groups), used, sum(map(len, groups.values())), len(kept), reasons=dict(reasons))


def group_by_prompt(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records by their prompt, which is compared up to blanks, in the order of their first."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        prompt = record["prompt"]
        text = prompt if isinstance(prompt, str) else json.dumps(prompt, sort_keys=True)
        groups.setdefault(" ".join(text.split()), []).append(record)
    return groups


def is_cut(record: Record) -> bool:
    """Whether the token limit cut the sample before it ended."""
    return record["finish_reason"] == "length"


def check_choice(key: str, value: Any, choices: Sequence[str]) -> None:
    """Raise a `DataError` that names the key and the nearest choice, unless `value` is one."""
    if value not in choices:
        raise DataError(f"{key}: expected one of {', '.join(choices)}, got {value!r}{nearest_hint(value, choices)}")


def distinct_samples(group: Sequence[Record], reasons: Counter[str]) -> list[Record]:
    """The samples without those that repeat an earlier one up to blanks."""
    first: dict[str, Record] = {}
    for record in group:
        first.setdefault(" ".join(record["completion"].split()), record)
    reasons["repeated"] += len(group) - len(first)
    return list(first.values())


def take_samples(records: list[Record], take: str, per_prompt: int | None, rng: random.Random) -> list[Record]:
    """The samples of one prompt that [`select_samples`] takes; without a cap all, or one."""
    if take == "all":
        if per_prompt is None or per_prompt >= len(records):
            return records
        return [records[place] for place in sorted(rng.sample(range(len(records)), per_prompt))]
    key = "score" if take == "best" else "tokens"
    # Sorting is stable, also when reversed: of two alike the first one counts.
    return sorted(records, key=lambda record: record[key], reverse=take != "shortest")[: per_prompt or 1]


def score_of(record: Record) -> float | None:
    """The sample's score, `None` where no reward says anything of it."""
    if "score" not in record:
        raise DataError(
            f"problem {record.get('id')}, sample {record.get('sample')}: no `score`; sample with the key `score` of "
            "`trl-reasoning sample`, or choose by verdict"
        )
    return record["score"]


def check_judged(groups: Mapping[str, list[Record]]) -> None:
    """Raise a `DataError` where no sample has a verdict."""
    if groups and all(record["status"] is None for group in groups.values() for record in group):
        raise DataError("none of the samples has a verdict: their task had no column `solution`; choose by score")


def _refusal(record: Record, keep: str, take: str, valid_format: bool) -> str:
    """Why a sample is not used; empty where it is."""
    if is_cut(record):
        return "cut"
    if keep == "right" and record["status"] != "right":
        return str(record["status"] or "not judged")
    if valid_format and not record["valid_format"]:
        return "not one thought with an answer"
    if take == "best" and score_of(record) is None:
        return "no score"
    return ""
