"""Accuracy of what is chosen among the samples of a problem: by a scoring model, and by majority."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..generation.search import SolutionScorer, best_of_n
from ..metrics import accuracy_interval


Record = dict[str, Any]


def best_of_accuracy(records: Sequence[Record], scorer: SolutionScorer, aggregate: str = "min") -> dict[str, Any]:
    """
    Accuracy of the best sample of each problem by a scoring model, beside the majority's and the mean.

    Args:
        records (`Sequence[dict]`):
            Records of [`~trl_reasoning.generation.sample_problems`], the same number for each problem.
        scorer ([`ProcessScorer`] or [`RewardModelScorer`]):
            A process reward model, whose step scores are put together, or a reward model.
        aggregate (`str`, *optional*, defaults to `"min"`):
            How, see [`~trl_reasoning.rewards.steps.aggregate_steps`].

    Returns:
        `dict`: `samples` (n), `accuracy` and `interval` of the best, the same of the majority as `majority` and
        `majority_interval`, `mean` (accuracy of all samples) and `any_right` (share of problems with a right sample),
        over the problems with a readable gold; all but `samples` are `None` where there is none.
    """
    judged = [record for record in records if record["status"] not in (None, "unreadable_gold")]
    problems = {record["id"] for record in judged}
    found: dict[str, Any] = dict.fromkeys(
        ("accuracy", "interval", "majority", "majority_interval", "mean", "any_right")
    )
    if not judged:
        return {"samples": 0, **found}
    for key, chosen in (("accuracy", best_of_n(judged, scorer, aggregate)), ("majority", majority_of_n(judged))):
        right = [float(record["status"] == "right") for record in chosen]
        found[key] = sum(right) / len(right)
        found["interval" if key == "accuracy" else "majority_interval"] = accuracy_interval(right, 1)
    right_ids = [record["id"] for record in judged if record["status"] == "right"]
    found["mean"] = len(right_ids) / len(judged)
    found["any_right"] = len(set(right_ids)) / len(problems)
    return {"samples": len(judged) // len(problems), **found}


def majority_of_n(records: Sequence[Record]) -> list[Record]:
    """
    A sample with the most frequent answer of each problem.

    Args:
        records (`Sequence[dict]`):
            Records with `id` and `extracted`, the answer as it was read.

    Returns:
        `list[dict]`: one record a problem, by rising `id`. Of answers that are equally frequent the first one
        counts; samples without an answer do not vote.

    Example:

    ```python
    >>> samples = [{"id": 0, "extracted": answer} for answer in ("26", "18", None, "18")]
    >>> majority_of_n(samples)
    [{'id': 0, 'extracted': '18'}]

    ```
    """
    groups: dict[int, list[Record]] = {}
    for record in records:
        groups.setdefault(record["id"], []).append(record)
    return [_majority(groups[problem]) for problem in sorted(groups)]


def _majority(group: list[Record]) -> Record:
    counts = Counter(record["extracted"] for record in group if record["extracted"] is not None)
    if not counts:
        return group[0]
    answer = counts.most_common(1)[0][0]
    return next(record for record in group if record["extracted"] == answer)
