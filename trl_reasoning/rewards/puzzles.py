"""Reward for the tasks of reasoning-gym, scored by each task's own rules."""

from collections.abc import Sequence
from typing import Any

from ..answers.verdict import Status, Verdict
from ..workers import run_limited
from ._free_answer import find_free_answer
from ._puzzle_entries import decode_entry, score_answer, scorer_of
from ._reward import Completion, LogExtra, LogMetric, Reward, read_rows
from ._verdicts import log_verdicts


PUZZLE = "puzzle"
"""Column with the entry of a task of reasoning-gym, as JSON text."""
# Time for one answer. The slowest scorer needs a third of a second for the longest text that it is given.
_SECONDS = 5.0
# A scorer's 1 may be a sum of shares.
_FULL = 1 - 1e-9


def make_reasoning_gym_reward(threshold: float | None = None) -> Reward:
    """
    Make the reward of the tasks of reasoning-gym: the score of the task's own scorer, in [0, 1].

    The answer is the content of `<answer>` tags or of a box, else the whole visible answer, so that it may have
    several lines; the thought does not count. Some tasks give partial credit (a sudoku with most cells right). The
    library's scorer is used only where it was read and found safe; others have a scorer of this package or are
    refused. All run in worker processes with limits. A row that is no entry of a task gets `None`.

    Per sample it logs 0 or 1 to `answers/right` (full score), `answers/wrong`, `answers/unparsed` and the others of
    [`make_accuracy_reward`], and the score to `answers/score`.

    Args:
        threshold (`float`, *optional*):
            Give 1 for a score of at least this much and 0 for less, in (0, 1]; without one the score itself.

    Returns:
        [`Reward`]: needs the column `puzzle` of a source `reasoning_gym:<task>`.

    Raises:
        ValueError: when `threshold` is out of its range.

    Reference: Reasoning Gym (https://huggingface.co/papers/2505.24760).

    Example:

    ```python
    >>> from trl_reasoning.rewards._puzzle_entries import encode_entry
    >>> puzzle = encode_entry("game_of_life_halting", {}, "True", {})
    >>> reward = make_reasoning_gym_reward()
    >>> reward(["?"] * 2, ["<answer>True</answer>", "<answer>Maybe</answer>"], [[1], [1]], puzzle=[puzzle] * 2)
    [1.0, 0.0]

    ```
    """
    if threshold is not None and not 0 < threshold <= 1:
        raise ValueError(f"threshold: expected a score above 0 and at most 1, got {threshold}")
    return _ReasoningGymReward(threshold)


def judge_puzzles(
    texts: Sequence[str], puzzles: Sequence[str | None], opened: Sequence[bool]
) -> tuple[list[Verdict], list[float | None]]:
    """
    Judge completions by the rules of their tasks.

    Args:
        texts (`Sequence[str]`):
            Completions with think tags.
        puzzles (`Sequence[str]`):
            Entry of each, see the column `puzzle`.
        opened (`Sequence[bool]`):
            Whether each prompt ended inside the thought.

    Returns:
        `tuple[list[Verdict], list[float | None]]`: verdicts (right for the full score) and scores in [0, 1]; `None`
        where the entry cannot be read.
    """
    answers = [find_free_answer(text, opened=is_open) for text, is_open in zip(texts, opened, strict=True)]
    entries = [_read_entry(puzzle) for puzzle in puzzles]
    asked = [row for row, entry in enumerate(entries) if entry is not None and answers[row] is not None]
    needs_library = any(entry is not None and scorer_of(entry["task"]) == "library" for entry in entries)
    outcomes = run_limited(
        score_answer,
        [(puzzles[row], answers[row]) for row in asked],
        seconds=_SECONDS,
        preload=("reasoning_gym",) if needs_library else (),
    )
    found = dict(zip(asked, outcomes, strict=True))
    verdicts: list[Verdict] = []
    scores: list[float | None] = []
    for row, (answer, entry) in enumerate(zip(answers, entries, strict=True)):
        score: float | None = 0.0
        status: Status
        if entry is None:
            status, score = "unreadable_gold", None
        elif answer is None:
            status = "unparsed"
        elif found[row].status == "failed":  # the scorers catch what a text can raise: this is no fault of the answer
            raise RuntimeError(f"the scorer of {puzzles[row]!r} failed: {found[row].error}")
        elif found[row].status == "done":
            score = float(found[row].value)
            status = "right" if score >= _FULL else "wrong"
        else:
            status = "timed_out"
        verdicts.append(Verdict(status, answer, None if entry is None else entry["answer"], "puzzle"))
        scores.append(score)
    return verdicts, scores


def _read_entry(puzzle: str | None) -> dict[str, Any] | None:
    try:
        return decode_entry(str(puzzle))
    except ValueError:
        return None


class _ReasoningGymReward:
    __name__ = "reasoning_gym_reward"
    columns: tuple[str, ...] = (PUZZLE,)

    def __init__(self, threshold: float | None):
        self.threshold = threshold

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        *,
        puzzle: Sequence[str | None],
        thought_opened: Sequence[bool | None] | None = None,
        log_metric: LogMetric | None = None,
        log_extra: LogExtra | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        texts, opened = read_rows(completions, thought_opened)
        verdicts, scores = judge_puzzles(texts, puzzle, opened)
        log_verdicts(verdicts, completion_ids, log_metric, log_extra)
        if log_metric is not None:
            for score in scores:
                if score is not None:
                    log_metric("answers/score", score)
        threshold = self.threshold
        if threshold is None:
            return scores
        return [None if score is None else float(score >= threshold - 1e-9) for score in scores]
