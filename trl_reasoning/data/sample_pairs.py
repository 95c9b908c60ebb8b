"""Preference pairs from several samples of one prompt: best and worst, and Kimi's pairs for shorter thoughts."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping

from .errors import DataError
from .selection import (
    Record,
    SelectionReport,
    check_choice,
    check_judged,
    distinct_samples,
    group_by_prompt,
    is_cut,
    score_of,
    take_samples,
)


Pair = tuple[Record, Record]

JUDGES = ("verifier", "score")
MATCHES = ("none", "length")
# What the verifier calls wrong. A comparison that timed out or a gold that cannot be read says nothing of the answer.
_WRONG = ("wrong", "unparsed")


def best_worst_pairs(
    records: Iterable[Record],
    by: str = "verifier",
    *,
    match: str = "none",
    per_prompt: int = 1,
    use_cut: bool = False,
    seed: int = 0,
) -> tuple[list[Pair], SelectionReport]:
    """
    On-policy preference pairs: of each prompt's samples a good one and a bad one.

    By `score` the best that may be chosen is paired with the worst, then the second best with the second worst, and so
    on, as long as the first one's score is higher. By the `verifier` a right one is paired with a wrong one: at
    random, or those that are nearest in length, so that length is not what tells the chosen from the rejected. No
    sample is in two pairs. Prompts whose samples are all right, all wrong or score alike give none.

    Args:
        records (`Iterable[Mapping]`):
            Records of `trl-reasoning sample`; those with the same prompt belong together.
        by (`"verifier"` or `"score"`, *optional*, defaults to `"verifier"`):
            What good means.
        match (`"none"` or `"length"`, *optional*, defaults to `"none"`):
            By the verifier: which right one goes with which wrong one.
        per_prompt (`int`, *optional*, defaults to `1`):
            Most pairs of a prompt, at least 1.
        use_cut (`bool`, *optional*, defaults to `False`):
            Whether a sample that the token limit cut may be the rejected one. It is never the chosen one.
        seed (`int`, *optional*, defaults to `0`):
            Seed of the draw; the draw of one prompt does not depend on the others.

    Returns:
        `tuple[list[tuple], SelectionReport]`: chosen and rejected record of each pair, and what was left out.

    Raises:
        `DataError`: for an unknown choice, samples without a verdict, or without the scores that are asked for.

    Reference: SimPO (https://huggingface.co/papers/2405.14734), section 3 (five samples at temperature 0.8, best and
    worst by a reward model).
    """
    check_choice("by", by, JUDGES)
    check_choice("match", match, MATCHES)
    if match == "length" and by == "score":
        raise DataError("match: `length` is for `by: verifier`; by score the best goes with the worst")
    groups = group_by_prompt(records)
    if by == "verifier":
        check_judged(groups)
    reasons: Counter[str] = Counter()
    pairs: list[Pair] = []
    used = 0
    for prompt, group in groups.items():
        usable = distinct_samples(_uncut(group, use_cut, reasons), reasons)
        rng = random.Random(f"{seed} {prompt}")
        found = _by_score(usable, reasons) if by == "score" else _by_verdict(usable, match, rng, reasons)
        pairs += found[:per_prompt]
        used += bool(found)
    return pairs, _pair_report(groups, used, pairs, reasons)


def long2short_pairs(
    records: Iterable[Record],
    ratio: float = 1.5,
    *,
    per_prompt: int | None = None,
    use_cut: bool = False,
    seed: int = 0,
) -> tuple[list[Pair], SelectionReport]:
    """
    Kimi's preference pairs for shorter thoughts: the shortest right sample against longer ones.

    Chosen is the shortest right sample. Rejected is each sample that is wrong and longer, or right and at least
    `ratio` times as long. Wrong ones that are not longer are not used; a prompt without a right sample gives no pair.

    Args:
        records (`Iterable[Mapping]`):
            Records of `trl-reasoning sample`; those with the same prompt belong together.
        ratio (`float`, *optional*, defaults to `1.5`):
            How many times as long a right sample has to be, above 1. The paper's 1.5 is read as being for the right
            ones.
        per_prompt (`int`, *optional*):
            Most pairs of a prompt, drawn at random; all without it.
        use_cut (`bool`, *optional*, defaults to `False`):
            Whether a sample that the token limit cut may be the rejected one. It is never the chosen one.
        seed (`int`, *optional*, defaults to `0`):
            Seed of the draw; the draw of one prompt does not depend on the others.

    Returns:
        `tuple[list[tuple], SelectionReport]`: chosen and rejected record of each pair, and what was left out.

    Raises:
        `DataError`: for samples without a verdict.

    Reference: Kimi k1.5 (https://huggingface.co/papers/2501.12599), section 2.4.

    Example:

    ```python
    >>> samples = [(200, "right"), (280, "right"), (310, "right"), (250, "wrong"), (150, "wrong")]
    >>> rows = [
    ...     {"prompt": "q", "completion": str(place), "tokens": tokens, "status": status, "finish_reason": "stop"}
    ...     for place, (tokens, status) in enumerate(samples)
    ... ]
    >>> [(chosen["tokens"], rejected["tokens"]) for chosen, rejected in long2short_pairs(rows)[0]]
    [(200, 310), (200, 250)]

    ```
    """
    if not ratio > 1:
        raise DataError(f"ratio: expected a number above 1, got {ratio}")
    groups = group_by_prompt(records)
    check_judged(groups)
    reasons: Counter[str] = Counter()
    pairs: list[Pair] = []
    used = 0
    for prompt, group in groups.items():
        usable = distinct_samples(_uncut(group, use_cut, reasons), reasons)
        right = [record for record in usable if record["status"] == "right" and not is_cut(record)]
        if not right:
            reasons["prompts with no right sample"] += 1
            continue
        chosen = min(right, key=lambda record: record["tokens"])
        longer = [record for record in usable if _is_longer(record, chosen, ratio)]
        if not longer:
            reasons["prompts with no longer sample"] += 1
        rejected = take_samples(longer, "all", per_prompt, random.Random(f"{seed} {prompt}"))
        pairs += [(chosen, record) for record in rejected]
        used += bool(rejected)
    return pairs, _pair_report(groups, used, pairs, reasons)


def _uncut(group: list[Record], use_cut: bool, reasons: Counter[str]) -> list[Record]:
    kept = [record for record in group if use_cut or not is_cut(record)]
    reasons["cut"] += len(group) - len(kept)
    return kept


def _by_score(usable: list[Record], reasons: Counter[str]) -> list[Pair]:
    scored = [record for record in usable if score_of(record) is not None]
    reasons["no score"] += len(usable) - len(scored)
    ranked = sorted(scored, key=lambda record: record["score"], reverse=True)
    # A cut sample is never the chosen one, however well it scores. From pair to pair the two scores come nearer, so
    # that no sample is in two.
    best = [record for record in ranked if not is_cut(record)]
    pairs = [pair for pair in zip(best, reversed(ranked), strict=False) if pair[0]["score"] > pair[1]["score"]]
    has_one_score = len({record["score"] for record in ranked}) < 2
    reasons["prompts with one score"] += has_one_score
    reasons["prompts whose uncut samples score lowest"] += not pairs and not has_one_score
    return pairs


def _by_verdict(usable: list[Record], match: str, rng: random.Random, reasons: Counter[str]) -> list[Pair]:
    right = [record for record in usable if record["status"] == "right" and not is_cut(record)]
    wrong = [record for record in usable if record["status"] in _WRONG]
    reasons["prompts with no right sample"] += not right
    reasons["prompts with no wrong sample"] += bool(right) and not wrong
    rng.shuffle(right)
    rng.shuffle(wrong)
    if match == "none":
        return list(zip(right, wrong, strict=False))
    every = [(abs(good["tokens"] - bad["tokens"]), good, bad) for good in right for bad in wrong]
    pairs: list[Pair] = []
    taken: set[int] = set()
    for _, good, bad in sorted(every, key=lambda entry: entry[0]):
        if not taken & {id(good), id(bad)}:
            pairs.append((good, bad))
            taken |= {id(good), id(bad)}
    return pairs


def _is_longer(record: Record, chosen: Record, ratio: float) -> bool:
    if record["status"] == "right":
        return record["tokens"] >= ratio * chosen["tokens"]
    return record["status"] in _WRONG and record["tokens"] > chosen["tokens"]


def _pair_report(
    groups: Mapping[str, list[Record]], used: int, pairs: list[Pair], reasons: Counter[str]
) -> SelectionReport:
    samples = sum(map(len, groups.values()))
    return SelectionReport(len(groups), used, samples, len(pairs), "pairs", dict(reasons))
