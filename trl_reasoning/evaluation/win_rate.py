"""Win rate of one model's samples against another's on the same problems, by a judge that is named."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, Protocol

from ..errors import UserError
from ..generation.scorers import RewardModelScorer, Sees
from ..metrics import accuracy_interval
from .summary import questions


Record = dict[str, Any]


class Judge(Protocol):
    """Which of two samples for one prompt is better."""

    def __call__(self, prompt: Any, first: Record, second: Record) -> float:
        """1 where the first one is better, 0 where the second one is, 0.5 for a tie; the two are records."""
        ...


def make_verifier_judge() -> Judge:
    """
    A judge that prefers the right answer: right beats not right, anything else is a tie.

    Returns:
        `Judge`: reads the records' `status`.

    Example:

    ```python
    >>> make_verifier_judge()("7+5=?", {"status": "right"}, {"status": "wrong"})
    1.0

    ```
    """
    return _by_verifier


def make_shorter_right_judge() -> Judge:
    """
    A judge that prefers the right answer, and of two right ones the one with fewer tokens.

    Returns:
        `Judge`: reads the records' `status` and `tokens`; two answers that are not right tie.

    Example:

    ```python
    >>> short, long = {"status": "right", "tokens": 9}, {"status": "right", "tokens": 30}
    >>> make_shorter_right_judge()("7+5=?", long, short)
    0.0

    ```
    """
    return _by_shorter_right


class RewardModelJudge:
    """
    A judge that prefers the completion to which a reward model gives the higher score; equal scores tie.

    Args:
        model (`str`):
            Folder or hub id of the reward model.
        sees (`"answer"` or `"everything"`, *optional*, defaults to `"everything"`):
            What the model is shown of a completion, as [`~trl_reasoning.generation.RewardModelScorer`].
        empty_score (`float`, *optional*):
            Score of an empty answer where `sees` is `"answer"`.
        dtype (`str`, *optional*, defaults to `"auto"`):
            Format of its weights.
        device (`str`, *optional*):
            `cpu`, `cuda`, ...; the first accelerator where there is one.
        batch_size (`int`, *optional*, defaults to `16`):
            Most completions in one forward pass.
        max_length (`int`, *optional*):
            Most tokens of prompt and completion together.

    Raises:
        ValueError: as [`~trl_reasoning.generation.RewardModelScorer`].
    """

    def __init__(
        self,
        model: str,
        sees: Sees = "everything",
        empty_score: float | None = None,
        dtype: str = "auto",
        device: str | None = None,
        batch_size: int = 16,
        max_length: int | None = None,
    ) -> None:
        self.scorer = RewardModelScorer(
            model,
            sees=sees,
            empty_score=empty_score,
            dtype=dtype,
            device=device,
            batch_size=batch_size,
            max_length=max_length,
        )
        self._scores: dict[tuple[str, str, bool], float | None] = {}

    def read(self, records: Sequence[Record]) -> None:
        """Score these records, those of a model in one call; the judgements that follow look the scores up."""
        fresh = {key: record for record in records if (key := _key(record)) not in self._scores}
        if not fresh:
            return
        scores = self.scorer(
            [record["prompt"] for record in fresh.values()],
            [record["completion"] for record in fresh.values()],
            [[]] * len(fresh),
            thought_opened=[record.get("thought_opened") for record in fresh.values()],
        )
        self._scores.update(zip(fresh, scores, strict=True))

    def __call__(self, prompt: Any, first: Record, second: Record) -> float:
        self.read([first, second])
        ours, theirs = (self._scores[_key(record)] for record in (first, second))
        if ours is None or theirs is None:
            return 0.5
        return _compare(ours, theirs)


JUDGES: dict[str, Callable[..., Judge]] = {
    "verifier": make_verifier_judge,
    "shorter_right": make_shorter_right_judge,
    "reward_model": RewardModelJudge,
}
"""Judges by the names that recipes use."""


def win_rate(records: Sequence[Record], against: Sequence[Record], judge: Judge) -> dict[str, Any]:
    r"""
    Mean judgement of one model's samples against another's.

    $$ w = \frac1P \sum_p \frac1{n_p m_p} \sum_{i,j} \tfrac12\big[J(a_{pi}, b_{pj}) + 1 - J(b_{pj}, a_{pi})\big] $$

    Every sample of a problem meets every sample that the other model has for it, and each pair is judged in both
    orders, so that a judge that favours the first one of two favours nobody. Ties count half.

    Args:
        records (`Sequence[dict]`):
            Records of the model, see [`~trl_reasoning.generation.sample_problems`].
        against (`Sequence[dict]`):
            Records of the other model, on the same problems.
        judge (`Judge`):
            Gives 1 (first), 0 (second) or 0.5, or any number between.

    Returns:
        `dict` with `rate` (in [0, 1]), its 95 % `interval` (problems are the clusters), `won`, `tied` and `lost`
        (shares of the pairs of samples, averaged over problems) and `problems`. Problems whose gold answer cannot be
        read are left out; `None` stands for the rate where no problem is left.

    Raises:
        [`~trl_reasoning.errors.UserError`]: when the problems differ, or a judgement is not in [0, 1].
    """
    if questions(records) != questions(against):
        raise UserError(
            "against: the other records are of other problems; evaluate both models on the same task, with the same "
            "seed, size and limit"
        )
    if isinstance(judge, RewardModelJudge):
        judge.read([*records, *against])
    ours, theirs = _by_problem(records), _by_problem(against)
    verdicts = {
        problem: [_both_orders(judge, first, second) for first in ours[problem] for second in theirs[problem]]
        for problem in sorted(ours)
        if problem in theirs
    }
    if not verdicts:
        return {"rate": None, "interval": None, "won": None, "tied": None, "lost": None, "problems": 0}
    rates = [fmean(values) for values in verdicts.values()]
    return {
        "rate": fmean(rates),
        # A tie is neither 0 nor 1, so that even one pair a problem makes no binomial count.
        "interval": list(accuracy_interval(rates, samples_per_problem=2)),
        "won": _share(verdicts, lambda value: value > 0.5),
        "tied": _share(verdicts, lambda value: value == 0.5),
        "lost": _share(verdicts, lambda value: value < 0.5),
        "problems": len(rates),
    }


def _both_orders(judge: Judge, first: Record, second: Record) -> float:
    there, back = judge(first["prompt"], first, second), judge(first["prompt"], second, first)
    for value in (there, back):
        if not 0 <= value <= 1:
            raise UserError(f"judge: expected 1 (the first is better), 0 or 0.5, got {value!r}")
    return (there + 1 - back) / 2


def _by_problem(records: Sequence[Record]) -> dict[int, list[Record]]:
    problems: dict[int, list[Record]] = defaultdict(list)
    for record in records:
        if record["status"] != "unreadable_gold":
            problems[record["id"]].append(record)
    return problems


def _share(verdicts: Mapping[int, Sequence[float]], is_counted: Callable[[float], bool]) -> float:
    return fmean(fmean(is_counted(value) for value in values) for values in verdicts.values())


def _by_verifier(prompt: Any, first: Record, second: Record) -> float:
    return _compare(first["status"] == "right", second["status"] == "right")


def _by_shorter_right(prompt: Any, first: Record, second: Record) -> float:
    if first["status"] == "right" and second["status"] == "right":
        return _compare(second["tokens"], first["tokens"])
    return _by_verifier(prompt, first, second)


def _compare(ours: float, theirs: float) -> float:
    return 0.5 if ours == theirs else float(ours > theirs)


def _key(record: Record) -> tuple[str, str, bool]:
    """Where the prompt opened the thought, the same completion is read in another way."""
    return str(record["prompt"]), record["completion"], bool(record.get("thought_opened"))
