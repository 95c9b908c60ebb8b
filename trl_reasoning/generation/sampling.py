"""Draw n completions for each problem, judge them, and write one line a sample; an interrupted run continues."""

import hashlib
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..answers import Verdict
from ..errors import UserError
from ..rewards.puzzles import PUZZLE
from ..text import THINK_CLOSE, THINK_OPEN, prompt_opens_thought, split_thought
from .backends import Backend, Generation, SamplingParams, length_batches
from .records import RecordsFile, read_records
from .tokens import render_prompt
from .verdicts import judge_texts


if TYPE_CHECKING:
    from datasets import Dataset

# How the generation prompt of a chat template may begin the reply: with an opened or with an empty thought.
_REPLY_START = re.compile(rf"{THINK_OPEN}\s*(?:{THINK_CLOSE}\s*)?\Z")


def sample_problems(
    backend: Backend,
    dataset: "Dataset",
    params: SamplingParams,
    *,
    samples: int,
    path: str | Path | None = None,
    kind: str = "auto",
    resume: bool = True,
    chat_template_kwargs: dict[str, Any] | None = None,
    keep_token_ids: bool = False,
    progress: bool = False,
) -> list[dict[str, Any]]:
    """
    Sample and verify completions. A row of a task of reasoning-gym (column `puzzle`) is judged by its task's rules.

    Each batch is written as soon as it is judged, so an interruption loses at most one batch. Batches and their seeds
    depend only on the problems, `samples` and the batch size: a continued run gives what an uninterrupted one gives.

    Args:
        backend ([`Backend`]):
            Generation backend.
        dataset ([`~datasets.Dataset`]):
            Problems with the column `prompt` (string or messages) and optionally `solution` and `difficulty`.
        params ([`SamplingParams`]):
            How to draw.
        samples (`int`):
            Completions for each problem, at least 1.
        path (`str` or `Path`, *optional*):
            JSONL file to write, with `<path>.meta.json` beside it. Without one the records stay in memory.
        kind (`str`, *optional*, defaults to `"auto"`):
            Kind of answer, see [`~trl_reasoning.answers.verify`].
        resume (`bool`, *optional*, defaults to `True`):
            Keep the samples that the file already holds.
        chat_template_kwargs (`dict`, *optional*):
            Passed to the chat template.
        keep_token_ids (`bool`, *optional*, defaults to `False`):
            Whether new records get `token_ids`, the tokens as they were drawn: the text alone does not give them back
            where a tokenizer has several ways to write it.
        progress (`bool`, *optional*, defaults to `False`):
            Show a progress bar.

    Returns:
        `list[dict]`: one record a sample, ordered by problem and sample, with the keys `id` (row of the problem),
        `sample`, `prompt`, `completion`, `tokens`, `thought_tokens`, `finish_reason`, `status` (of the verdict;
        `None` without a column `solution`), `extracted`, `solution`, `difficulty`, `thought`, `valid_format`,
        `thought_opened` (whether the prompt ended inside the thought), `reply_start` (an opened or an empty thought
        with which the chat template began the reply) and `seconds` (this sample's part of its batch's time).

    Raises:
        [`RecordsError`]: when the file holds samples of another model, dataset or other settings.
    """
    if samples < 1:
        raise UserError(f"samples: expected at least 1, got {samples}")
    problems = _render(backend, dataset, chat_template_kwargs or {})
    draw = partial(_draw, backend, problems, params, samples, kind, has_ids=keep_token_ids, progress=progress)
    if path is None:
        batches = draw(done=set())
        records = [record for batch in batches for record in batch]
        return sorted(records, key=lambda record: (record["id"], record["sample"]))
    settings = {
        "model": backend.name,
        "weights": backend.fingerprint(),
        "dataset": _dataset_hash(problems),
        "samples": samples,
        "answer_kind": kind,
        **asdict(params),
    }
    file = RecordsFile(path, settings, resume=resume)
    for batch in draw(done=file.done()):
        file.append(batch)
    return read_records(path)


@dataclass(frozen=True)
class _Problem:
    prompt: str | list[dict[str, Any]]
    ids: list[int]
    opened: bool
    reply_start: str
    solution: str | None
    puzzle: str | None
    difficulty: float | None
    has_gold: bool


def _render(backend: Backend, dataset: "Dataset", chat_template_kwargs: dict[str, Any]) -> list[_Problem]:
    problems = []
    has_gold = "solution" in dataset.column_names
    for row in dataset:
        ids = render_prompt(backend.tokenizer, row["prompt"], **chat_template_kwargs)  # type: ignore[call-overload, index]
        rendered = str(backend.tokenizer.decode(ids))
        start = None if isinstance(row["prompt"], str) else _REPLY_START.search(rendered)  # type: ignore[call-overload, index]
        problems.append(
            _Problem(
                prompt=row["prompt"],  # type: ignore[call-overload, index]
                ids=ids,
                opened=prompt_opens_thought(rendered),
                reply_start=start[0] if start else "",
                solution=row.get("solution"),  # type: ignore[union-attr]
                puzzle=row.get(PUZZLE),  # type: ignore[union-attr]
                difficulty=row.get("difficulty"),  # type: ignore[union-attr]
                has_gold=has_gold,
            )
        )
    return problems


def _dataset_hash(problems: list[_Problem]) -> str:
    digest = hashlib.sha256()
    for problem in problems:
        parts = [problem.ids, problem.solution, problem.difficulty, *([problem.puzzle] if problem.puzzle else [])]
        digest.update(json.dumps(parts, default=str).encode())
    return digest.hexdigest()


def _draw(
    backend: Backend,
    problems: list[_Problem],
    params: SamplingParams,
    samples: int,
    kind: str,
    *,
    done: set[tuple[int, int]],
    has_ids: bool,
    progress: bool,
) -> Iterator[list[dict[str, Any]]]:
    """Records of one batch after the other, without those that are done."""
    from rich.progress import track

    pairs = [(index, sample) for index in range(len(problems)) for sample in range(samples)]
    batches, first = [], 0
    for rows in length_batches([len(problems[index].ids) for index, _ in pairs], backend.batch_size):
        if not all(pairs[row] in done for row in rows):
            batches.append((first, [pairs[row] for row in rows]))
        first += len(rows)
    for first, batch in track(batches, "sampling", disable=not progress):
        started = time.perf_counter()
        # A batch that was half written is drawn again whole: with the same rows and seed its samples are the same.
        # The seed is the place of the batch's first sample, so that no two batches share one.
        prompts = [problems[index].ids for index, _ in batch]
        drawn = backend.generate(prompts, replace(params, seed=params.seed + first))
        seconds = (time.perf_counter() - started) / len(batch)
        verdicts = _judge([problems[index] for index, _ in batch], drawn, kind)
        yield [
            {
                "id": index,
                "sample": sample,
                **_record(problems[index], generation, backend, verdict),
                "seconds": seconds,
                **({"token_ids": generation.token_ids} if has_ids else {}),
            }
            for (index, sample), generation, verdict in zip(batch, drawn, verdicts, strict=True)
            if (index, sample) not in done
        ]


def _judge(problems: list[_Problem], drawn: Sequence[Generation], kind: str) -> Sequence[Verdict | None]:
    if not problems[0].has_gold:  # a column: all rows have it or none
        return [None] * len(problems)
    return judge_texts(
        [generation.text for generation in drawn],
        [problem.solution for problem in problems],
        [problem.puzzle for problem in problems],
        [problem.opened for problem in problems],
        kind=kind,
    )


def _record(problem: _Problem, generation: Generation, backend: Backend, verdict: Verdict | None) -> dict[str, Any]:
    thought = split_thought(generation.text, opened=problem.opened)
    thought_ids = backend.tokenizer(text=thought.thought, add_special_tokens=False)["input_ids"]
    return {
        "prompt": problem.prompt,
        "completion": generation.text,
        "tokens": len(generation.token_ids),
        "thought_tokens": len(thought_ids),  # type: ignore[arg-type]
        "finish_reason": generation.finish_reason,
        "status": verdict.status if verdict else None,
        "extracted": verdict.extracted if verdict else None,
        "solution": problem.solution,
        "difficulty": problem.difficulty,
        "thought": thought.thought,
        "valid_format": thought.valid,
        "thought_opened": problem.opened,
        "reply_start": problem.reply_start,
    }
