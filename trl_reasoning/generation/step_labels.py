"""Step labels without annotators: continuations from each prefix of a solution, and how many of them end right."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..answers import verify_batch
from ..errors import UserError
from ..rewards.steps import SPLITS, split_steps
from ..text import prompt_opens_thought
from .backends import Backend, length_batches
from .params import SamplingParams
from .records import RecordsFile, read_records
from .room import without_room
from .tokens import render_prompt


def label_steps(
    backend: Backend,
    records: Sequence[dict[str, Any]],
    params: SamplingParams,
    *,
    rollouts: int,
    by: str = "line",
    path: str | Path | None = None,
    kind: str = "auto",
    resume: bool = True,
    chat_template_kwargs: dict[str, Any] | None = None,
    progress: bool = False,
) -> list[dict[str, Any]]:
    r"""
    Label each step of sampled solutions by what the policy makes of it.

    $$ y_k = \frac{1}{K} \sum_{j=1}^{K} \mathbb{1}[a_j = a^*], \qquad a_1, \dots, a_K \sim \pi(\cdot \mid x, s_{1..k})
    $$

    the share of K continuations of the first k steps that end in the right answer: Math-Shepherd's soft estimation.
    Its hard one, whether any of them does, is `label_threshold: 0` of `method: prm`. The label says whether the
    solution can still end right from there, not whether the step itself is right: a policy that corrects itself gives
    a wrong step a label above 0, and one that slips often gives a right step a label below 1.

    The last step of a solution that ended by itself has nothing left to continue; its label is the solution's verdict.
    The unfinished last step of a solution that was cut by the token limit is left out. So is a whole solution with a
    prefix after which the model has no room for `max_new_tokens`; a warning says how many.

    Solutions are worked on in groups, and a group's lines are written when all its continuations are drawn: an
    interruption loses at most one group. Batches and seeds depend on the solutions, `rollouts` and the batch size
    alone: a continued run gives what an uninterrupted one gives.

    Args:
        backend ([`Backend`]):
            The policy that continues; usually the one that drew the solutions.
        records (`Sequence[dict]`):
            Records of [`sample_problems`]: `id`, `sample`, `prompt`, `completion`, `finish_reason`, `status` and
            `solution`.
        params ([`SamplingParams`]):
            How to continue. Each continuation has room for `max_new_tokens` of its own.
        rollouts (`int`):
            K, at least 1.
        by (`"line"` or `"paragraph"`, *optional*, defaults to `"line"`):
            What a step is, see [`~trl_reasoning.rewards.steps.split_steps`].
        path (`str` or `Path`, *optional*):
            JSONL file to write, with `<path>.meta.json` beside it. Without one the rows stay in memory.
        kind (`str`, *optional*, defaults to `"auto"`):
            Kind of answer, see [`~trl_reasoning.answers.verify`].
        resume (`bool`, *optional*, defaults to `True`):
            Keep the rows that the file already holds.
        chat_template_kwargs (`dict`, *optional*):
            As the solutions were drawn with.
        progress (`bool`, *optional*, defaults to `False`):
            Show a progress bar.

    Returns:
        `list[dict]`: one row a solution with at least one step and a readable `solution`: `id`, `sample`, `prompt`,
        `steps` (`list[str]`), `labels` (`list[float]`), `rollouts`, `rollout_tokens` (drawn for it), `status` and
        `solution`.

    Raises:
        [`~trl_reasoning.errors.UserError`]: a setting is outside its range, a problem has no solution to check by, or
            no solution leaves room for its continuations.
        [`RecordsError`]: the file holds rows of another model, other solutions or settings.

    Reference: Math-Shepherd (https://huggingface.co/papers/2312.08935), Section 3, automatic process annotation.

    Example:

    ```python
    records = sample_problems(backend, dataset, params, samples=4)
    rows = label_steps(backend, records, params, rollouts=8, path="outputs/samples/step_labels.jsonl")
    ```
    """
    if by not in SPLITS:
        raise UserError(f"step_split: expected one of {list(SPLITS)}, got {by!r}")
    if rollouts < 1:
        raise UserError(f"step_rollouts: expected at least 1, got {rollouts}")
    if params.temperature == 0 and rollouts > 1:
        raise UserError("step_rollouts: with temperature 0 all continuations are the same; set `temperature`, or 1")
    solutions = _split(backend, records, by, chat_template_kwargs or {})
    settings = {
        "model": backend.name,
        "weights": backend.fingerprint(),
        "solutions": _hash(solutions),
        "rollouts": rollouts,
        "step_split": by,
        "answer_kind": kind,
        **asdict(params),
    }
    file = None if path is None else RecordsFile(path, settings, resume=resume)
    done = set() if file is None else file.done()
    lengths = {item.key: max((len(ids) for _, ids in item.prefixes), default=0) for item in solutions}
    full = without_room(backend, lengths, params.max_new_tokens)
    solutions = [item for item in solutions if item.key not in full]
    rows: list[dict[str, Any]] = []
    for group in _groups(backend, solutions, params, rollouts, kind, done, progress):
        if file is None:
            rows += group
        else:
            file.append(group)
    return rows if path is None else read_records(path)


@dataclass(frozen=True)
class _Solution:
    record: dict[str, Any]
    steps: list[str]
    prefixes: list[tuple[str, list[int]]]  # of the steps that are continued: text of the completion, all tokens
    opened: bool

    @property
    def key(self) -> tuple[int, int]:
        return self.record["id"], self.record["sample"]


def _split(backend: Backend, records: Sequence[dict[str, Any]], by: str, kwargs: dict[str, Any]) -> list[_Solution]:
    tokenizer = backend.tokenizer
    solutions = []
    for record in records:
        if record["solution"] is None:
            raise UserError(f"step labels: problem {record['id']} has no `solution`, so no continuation can be judged")
        if record["status"] == "unreadable_gold":
            continue
        prompt = render_prompt(tokenizer, record["prompt"], **kwargs)
        opened = prompt_opens_thought(tokenizer.decode(prompt))  # type: ignore[arg-type]
        text, is_cut = record["completion"], record["finish_reason"] == "length"
        spans = split_steps(text, opened=opened, by=by)
        spans = spans[:-1] if is_cut else spans
        continued = spans if is_cut else spans[:-1]
        prefixes = [text[:end] + _line_break(text[end:]) for _, end in continued]
        if spans:
            solutions.append(
                _Solution(
                    record=record,
                    steps=[text[start:end] for start, end in spans],
                    prefixes=[
                        (prefix, prompt + tokenizer(text=prefix, add_special_tokens=False)["input_ids"])  # type: ignore[operator]
                        for prefix in prefixes
                    ],
                    opened=opened,
                )
            )
    return solutions


def _line_break(rest: str) -> str:
    """The blanks up to the last line break before the next step, so that the continuation cannot extend this one."""
    gap = rest[: len(rest) - len(rest.lstrip())]
    return gap[: gap.rfind("\n") + 1]


def _hash(solutions: Sequence[_Solution]) -> str:
    parts = [[item.key, [ids for _, ids in item.prefixes], item.steps, item.record["solution"]] for item in solutions]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _groups(
    backend: Backend,
    solutions: Sequence[_Solution],
    params: SamplingParams,
    rollouts: int,
    kind: str,
    done: set[tuple[int, int]],
    progress: bool,
) -> Iterator[list[dict[str, Any]]]:
    """Rows of one group of solutions after the other, without those that are done."""
    from rich.progress import track

    # A group's continuations fill a few batches.
    size = max(1, 4 * backend.batch_size // rollouts)
    groups, first = [], 0
    for start in range(0, len(solutions), size):
        group = solutions[start : start + size]
        if not all(item.key in done for item in group):
            groups.append((first, group))
        first += rollouts * sum(len(item.prefixes) for item in group)
    for first, group in track(groups, "labelling steps", disable=not progress):
        # A group that was half written is drawn again whole: with the same rows and seeds its labels are the same.
        rows = _label_group(backend, group, replace(params, seed=params.seed + first), rollouts, kind)
        yield [row for row in rows if (row["id"], row["sample"]) not in done]


def _label_group(
    backend: Backend, group: Sequence[_Solution], params: SamplingParams, rollouts: int, kind: str
) -> list[dict[str, Any]]:
    pairs = [
        (row, step) for row, item in enumerate(group) for step in range(len(item.prefixes)) for _ in range(rollouts)
    ]
    lengths = [len(group[row].prefixes[step][1]) for row, step in pairs]
    right = [[0] * len(item.prefixes) for item in group]
    tokens = [0] * len(group)
    drawn = 0
    for batch in length_batches(lengths, backend.batch_size):
        prompts = [group[pairs[index][0]].prefixes[pairs[index][1]][1] for index in batch]
        # The seed is the place of the batch's first continuation, so that no two batches share one.
        generations = backend.generate(prompts, replace(params, seed=params.seed + drawn))
        drawn += len(batch)
        places = [pairs[index] for index in batch]
        verdicts = verify_batch(
            [group[row].prefixes[step][0] + drew.text for (row, step), drew in zip(places, generations, strict=True)],
            [group[row].record["solution"] for row, _ in places],
            kind=kind,
            opened=[group[row].opened for row, _ in places],
        )
        for (row, step), generation, verdict in zip(places, generations, verdicts, strict=True):
            right[row][step] += verdict.is_right
            tokens[row] += len(generation.token_ids)
    rows = []
    for item, counts, spent in zip(group, right, tokens, strict=True):
        labels = [count / rollouts for count in counts]
        if len(labels) < len(item.steps):
            labels.append(float(item.record["status"] == "right"))
        shared = {key: item.record[key] for key in ("id", "sample", "prompt", "status", "solution")}
        rows.append({**shared, "steps": item.steps, "labels": labels, "rollouts": rollouts, "rollout_tokens": spent})
    return rows
