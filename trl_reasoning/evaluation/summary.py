"""Numbers of one evaluation from its records. Pure: no model, no files."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Any

from ..metrics import accuracy_interval, mean_interval


Record = dict[str, Any]


def per_problem_accuracy(records: Iterable[Record]) -> dict[int, float]:
    """
    Share of right samples of each problem whose gold answer can be read.

    Args:
        records (`Iterable[dict]`):
            Records with `id` and `status`, see [`~trl_reasoning.generation.sample_problems`].

    Returns:
        `dict[int, float]`: problem id to a share in [0, 1], divided by the samples that the problem has.

    Example:

    ```python
    >>> per_problem_accuracy([{"id": 0, "status": "right"}, {"id": 0, "status": "wrong"}])
    {0: 0.5}

    ```
    """
    verdicts: dict[int, list[bool]] = defaultdict(list)
    for record in records:
        if record["status"] != "unreadable_gold":
            verdicts[record["id"]].append(record["status"] == "right")
    return {problem: fmean(verdicts[problem]) for problem in sorted(verdicts)}


def summarize(records: Sequence[Record]) -> dict[str, Any]:
    """
    Accuracy, lengths and shares of an evaluation.

    Accuracy is the mean over problems of the share of right samples (pass@1). Samples whose gold answer cannot be read
    leave every number except `unreadable_gold_share`. `None` stands where there is nothing to average.

    Args:
        records (`Sequence[dict]`):
            Records of [`~trl_reasoning.generation.sample_problems`].

    Returns:
        `dict` with the keys

        - `problems`, `samples` (in all), `unreadable_gold_problems`: counts
        - `accuracy` and `interval` (95 %, `[low, high]`)
        - `mean_tokens`, `median_tokens`, `mean_thought_tokens`, `mean_right_tokens`, `mean_wrong_tokens`: tokens of a
          completion; the wrong ones include unparsed and timed-out ones
        - `cut_share` (stopped by the token limit), `format_share` (a valid thought and answer), `wrong_share`,
          `unparsed_share`, `timed_out_share`: shares of the samples
        - `unreadable_gold_share`: share of all samples
        - `by_difficulty`: for each value of `difficulty`, its `accuracy`, `interval`, `mean_tokens`, `problems` and
          `samples`
    """
    counted = [record for record in records if record["status"] != "unreadable_gold"]
    by_difficulty: dict[float, list[Record]] = defaultdict(list)
    for record in counted:
        if record["difficulty"] is not None:
            by_difficulty[record["difficulty"]].append(record)
    unreadable = [record for record in records if record["status"] == "unreadable_gold"]
    return {
        **_accuracy(counted),
        "median_tokens": median(record["tokens"] for record in counted) if counted else None,
        "mean_thought_tokens": _mean(record["thought_tokens"] for record in counted),
        "mean_right_tokens": _mean(record["tokens"] for record in counted if record["status"] == "right"),
        "mean_wrong_tokens": _mean(record["tokens"] for record in counted if record["status"] != "right"),
        "cut_share": _mean(record["finish_reason"] == "length" for record in counted),
        "format_share": _mean(record["valid_format"] for record in counted),
        "wrong_share": _mean(record["status"] == "wrong" for record in counted),
        "unparsed_share": _mean(record["status"] == "unparsed" for record in counted),
        "timed_out_share": _mean(record["status"] == "timed_out" for record in counted),
        "unreadable_gold_share": len(unreadable) / len(records) if records else None,
        "unreadable_gold_problems": len({record["id"] for record in unreadable}),
        "by_difficulty": {f"{level:g}": _accuracy(by_difficulty[level]) for level in sorted(by_difficulty)},
    }


def heldout_metrics(records: Sequence[Record]) -> dict[str, float]:
    """
    The numbers that a training run logs about its held-out problems.

    Args:
        records (`Sequence[dict]`):
            Records of [`~trl_reasoning.generation.sample_problems`].

    Returns:
        `dict[str, float]`: `accuracy`, `accuracy_low`, `accuracy_high`, `mean_tokens`, `mean_thought_tokens`,
        `mean_right_tokens`, `mean_wrong_tokens`, `cut_share`, `format_share`, `unparsed_share`; what has nothing to
        average (no wrong sample, say) is left out.
    """
    summary = summarize(records)
    summary["accuracy_low"], summary["accuracy_high"] = summary["interval"] or (None, None)
    keys = (
        "accuracy",
        "accuracy_low",
        "accuracy_high",
        "mean_tokens",
        "mean_thought_tokens",
        "mean_right_tokens",
        "mean_wrong_tokens",
        "cut_share",
        "format_share",
        "unparsed_share",
    )
    return {key: float(summary[key]) for key in keys if summary[key] is not None}


def paired_change(before: Sequence[Record], after: Sequence[Record]) -> dict[str, Any] | None:
    """
    Difference of two evaluations on the same problems, with its 95 % interval.

    The interval is Student's over the problems' differences: what makes a problem hard is in both evaluations and
    cancels, so that it is narrower than two separate intervals suggest.

    Args:
        before (`Sequence[dict]`):
            Records of one model.
        after (`Sequence[dict]`):
            Records of the other.

    Returns:
        `dict` with `change` (accuracy after minus before), `interval` (`[low, high]`) and `problems`, or `None` when
        the problems differ or there are fewer than two.
    """
    first, second = per_problem_accuracy(before), per_problem_accuracy(after)
    if questions(before) != questions(after) or first.keys() != second.keys() or len(first) < 2:
        return None
    differences = [second[problem] - first[problem] for problem in first]
    interval = list(mean_interval(differences))
    return {"change": fmean(differences), "interval": interval, "problems": len(differences)}


def questions(records: Iterable[Record]) -> dict[int, tuple[str, str | None]]:
    """Prompt and gold answer of each problem: what two evaluations have in common when they are of the same task."""
    return {record["id"]: (str(record["prompt"]), record["solution"]) for record in records}


def _accuracy(counted: Sequence[Record]) -> dict[str, Any]:
    shares = per_problem_accuracy(counted)
    if not shares:
        return {"problems": 0, "samples": 0, "accuracy": None, "interval": None, "mean_tokens": None}
    most_samples = max(Counter(record["id"] for record in counted).values())
    low, high = accuracy_interval(list(shares.values()), most_samples)
    return {
        "problems": len(shares),
        "samples": len(counted),
        "accuracy": fmean(shares.values()),
        "interval": [low, high],
        "mean_tokens": fmean(record["tokens"] for record in counted),
    }


def _mean(values: Iterable[float]) -> float | None:
    values = list(values)
    return fmean(values) if values else None
