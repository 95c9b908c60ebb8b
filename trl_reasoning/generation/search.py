"""Choosing among solutions with a model that scores them: best of n, and a beam search over steps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import UserError
from ..rewards.steps import SPLITS, StepReward, aggregate_steps
from ..text import prompt_opens_thought
from .backends import Backend
from .params import SamplingParams
from .process_scorer import ProcessScorer
from .room import longest_prompt
from .scorers import RewardModelScorer
from .tokens import completion_to_text, render_prompt


SolutionScorer = ProcessScorer | RewardModelScorer | StepReward

_STOPS = {"line": "\n", "paragraph": "\n\n"}


def score_solutions(
    records: Sequence[dict[str, Any]],
    scorer: SolutionScorer,
    aggregate: str = "min",
    **columns: Sequence[Any],
) -> list[float | None]:
    """
    One score for each solution.

    Args:
        records (`Sequence[dict]`):
            Records of [`sample_problems`]: `prompt`, `completion` and `thought_opened`.
        scorer ([`ProcessScorer`], [`RewardModelScorer`] or [`StepReward`]):
            A process reward model (or another step reward), whose scores are put together, or a reward model.
        aggregate (`str`, *optional*, defaults to `"min"`):
            How step scores are put together, see [`~trl_reasoning.rewards.steps.aggregate_steps`].
        **columns (`Sequence`):
            What else a step reward reads, one value a record.

    Returns:
        `list[float | None]`: `None` for a solution without a step that could be scored.
    """
    prompts = [record["prompt"] for record in records]
    texts = [record["completion"] for record in records]
    columns = {"thought_opened": [record["thought_opened"] for record in records], **columns}
    if isinstance(scorer, RewardModelScorer):
        return scorer(prompts, texts, [[]] * len(texts), **columns)
    rows = scorer(prompts, texts, **columns)
    return [aggregate_steps([step.score for step in row], aggregate) for row in rows]


def best_of_n(
    records: Sequence[dict[str, Any]],
    scorer: SolutionScorer,
    aggregate: str = "min",
    **columns: Sequence[Any],
) -> list[dict[str, Any]]:
    r"""
    The best of each problem's samples by a scoring model.

    $$ y^* = \arg\max_{i \le n} r(x, y_i) $$

    Args:
        records (`Sequence[dict]`):
            Records of [`sample_problems`].
        scorer ([`ProcessScorer`], [`RewardModelScorer`] or [`StepReward`]):
            As for [`score_solutions`].
        aggregate (`str`, *optional*, defaults to `"min"`):
            How step scores are put together.
        **columns (`Sequence`):
            As for [`score_solutions`].

    Returns:
        `list[dict]`: one record a problem, by rising `id`, with its `score`. Of equal scores the first sample counts;
        one without a score is taken only where a problem has no other.

    Reference: Math-Shepherd (https://huggingface.co/papers/2312.08935), its verification experiments.

    Example:

    ```python
    records = sample_problems(backend, dataset, params, samples=16)
    best = best_of_n(records, ProcessScorer("outputs/reward/prm"), aggregate="min")
    accuracy = sum(record["status"] == "right" for record in best) / len(best)
    ```
    """
    scores = score_solutions(records, scorer, aggregate, **columns)
    best: dict[int, dict[str, Any]] = {}
    for record, score in zip(records, scores, strict=True):
        held = best.get(record["id"])
        if held is None or _rank(score) > _rank(held["score"]):
            best[record["id"]] = {**record, "score": score}
    return [best[problem] for problem in sorted(best)]


@dataclass(frozen=True)
class Beam:
    """
    A solution that a beam search found.

    Args:
        token_ids (`list[int]`):
            Its tokens, with the EOS that ended it.
        text (`str`):
            Its text.
        score (`float` or `None`):
            Its steps' scores, put together; `None` where none could be scored.
        finish_reason (`str`):
            `"stop"` (it ended by itself), `"length"` (the token limit or the model's positions cut a step) or
            `"steps"` (it was still going after `max_steps`).
    """

    token_ids: list[int]
    text: str
    score: float | None = None
    finish_reason: str = "steps"


def step_beam_search(
    backend: Backend,
    prompts: Sequence[Any],
    scorer: StepReward,
    params: SamplingParams,
    *,
    width: int,
    expansions: int,
    by: str = "line",
    aggregate: str = "min",
    max_steps: int = 32,
    chat_template_kwargs: dict[str, Any] | None = None,
    **columns: Sequence[Any],
) -> list[list[Beam]]:
    """
    Beam search over steps: the scorer judges partial solutions, and the best ones go on.

    At each depth every beam that is not finished is continued `expansions` times (the first one `width * expansions`
    times) up to the end of its next step; of all these and the finished beams the `width` with the highest scores are
    kept. Equal texts count once. It ends when all kept beams are finished, or after `max_steps`.

    Args:
        backend ([`Backend`]):
            The policy.
        prompts (`Sequence`):
            Messages or plain texts.
        scorer ([`ProcessScorer`] or [`StepReward`]):
            Scores the steps of texts, partial ones included.
        params ([`SamplingParams`]):
            How to draw; `max_new_tokens` is the limit of one step. Its own stop strings end a solution.
        width (`int`):
            Beams kept for each prompt, at least 1.
        expansions (`int`):
            Continuations of each beam, at least 1. `width * expansions` solutions are drawn at a time, as by best of n
            with that n.
        by (`"line"` or `"paragraph"`, *optional*, defaults to `"line"`):
            What ends a step.
        aggregate (`str`, *optional*, defaults to `"min"`):
            How step scores are put together, see [`~trl_reasoning.rewards.steps.aggregate_steps`].
        max_steps (`int`, *optional*, defaults to `32`):
            Greatest depth, at least 1.
        chat_template_kwargs (`dict`, *optional*):
            Passed to the chat template.
        **columns (`Sequence`):
            What else the scorer reads, one value a prompt.

    Returns:
        `list[list[Beam]]`: for each prompt its beams, the best first.

    Raises:
        [`~trl_reasoning.errors.UserError`]: a setting is outside its range.

    Example:

    ```python
    scorer = ProcessScorer("outputs/reward/prm")
    params = SamplingParams(max_new_tokens=64, temperature=1.0)
    beams = step_beam_search(backend, ["7+5-3=?"], scorer, params, width=2, expansions=4)
    beams[0][0].text, beams[0][0].score
    ```
    """
    if by not in SPLITS:
        raise UserError(f"by: expected one of {list(SPLITS)}, got {by!r}")
    for name, value in (("width", width), ("expansions", expansions), ("max_steps", max_steps)):
        if value < 1:
            raise UserError(f"{name}: expected at least 1, got {value}")
    tokenizer = backend.tokenizer
    prompt_ids = [render_prompt(tokenizer, prompt, **(chat_template_kwargs or {})) for prompt in prompts]
    opened = [prompt_opens_thought(tokenizer.decode(ids)) for ids in prompt_ids]  # type: ignore[arg-type]
    step_params = replace(params, stop_strings=(*params.stop_strings, _STOPS[by]))
    beams = [[Beam([], "")] for _ in prompts]
    limit = longest_prompt(backend, params.max_new_tokens)
    drawn = 0
    for depth in range(max_steps):
        times = expansions if depth else width * expansions
        live = [(row, beam) for row, kept in enumerate(beams) for beam in kept if beam.finish_reason == "steps"]
        if not live:
            break
        grown = [pair for pair in live for _ in range(times)]
        # The seed is the place of the first continuation, so that no two depths share one.
        generations = backend.generate(
            [prompt_ids[row] + beam.token_ids for row, beam in grown], replace(step_params, seed=params.seed + drawn)
        )
        drawn += len(grown)
        candidates: list[dict[str, Beam]] = [
            {beam.text: beam for beam in kept if beam.finish_reason != "steps"} for kept in beams
        ]
        fresh = []
        for (row, beam), generation in zip(grown, generations, strict=True):
            ids = beam.token_ids + generation.token_ids
            text = completion_to_text(tokenizer, ids)
            reason: str = generation.finish_reason
            if reason == "stop_string":
                reason = "stop" if any(stop in generation.text for stop in params.stop_strings) else "steps"
            if reason == "steps" and len(prompt_ids[row]) + len(ids) > limit:
                reason = "length"
            if text not in candidates[row]:
                candidates[row][text] = Beam(ids, text, None, reason)
                fresh.append((row, text))
        scores = _score_texts(scorer, prompts, opened, columns, fresh, aggregate)
        for (row, text), score in zip(fresh, scores, strict=True):
            candidates[row][text] = replace(candidates[row][text], score=score)
        beams = [
            sorted(found.values(), key=lambda beam: _rank(beam.score), reverse=True)[:width] if found else kept
            for found, kept in zip(candidates, beams, strict=True)
        ]
    return beams


def _score_texts(
    scorer: StepReward,
    prompts: Sequence[Any],
    opened: Sequence[bool],
    columns: dict[str, Sequence[Any]],
    texts: Sequence[tuple[int, str]],
    aggregate: str,
) -> list[float | None]:
    """Scores of texts, each with the row of its prompt."""
    rows = scorer(
        [prompts[row] for row, _ in texts],
        [text for _, text in texts],
        thought_opened=[opened[row] for row, _ in texts],
        **{name: [values[row] for row, _ in texts] for name, values in columns.items()},
    )
    return [aggregate_steps([step.score for step in row], aggregate) for row in rows]


def _rank(score: float | None) -> float:
    return -math.inf if score is None else score
