"""Scores of sampled completions: rewards and reward models over a records file, in a pass of its own."""

import asyncio
import hashlib
import inspect
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from .records import drop_half_line, read_records


if TYPE_CHECKING:
    from datasets import Dataset

Record = dict[str, Any]
Key = tuple[int, int]


@dataclass(frozen=True)
class WeightedReward:
    """
    A reward and its weight.

    Args:
        name (`str`):
            Name of the reward in the records.
        function (`Callable`):
            A reward function, also an asynchronous one.
        weight (`float`, *optional*, defaults to `1.0`):
            Its weight in the sum.
    """

    name: str
    function: Callable[..., Any]
    weight: float = 1.0


def score_records(
    path: str | Path,
    problems: "Dataset",
    rewards: Sequence[WeightedReward],
    settings: Mapping[str, Any],
    *,
    batch_size: int = 64,
    progress: bool = False,
) -> list[Record]:
    r"""
    Give every record of a file a `score`.

    $$ s_i = \sum_f w_f\, r_f(x_i, y_i) $$

    over the rewards that say something of the sample; `None` where none does. With several rewards a record also gets
    `scores`, each reward's own value by its name.

    The samples are drawn before, so that the model that draws and the model that scores need not be in memory
    together. Scores are collected in `<path>.scores.jsonl` and put into the file at once when all are there; an
    interrupted pass goes on. `<path>.score.json` says what they were made with: with other `settings`, or for other
    samples, all are made again.

    A reward gets what it gets in training: prompts, completions in the form of the prompts, the columns of `problems`
    and `thought_opened`. Of `completion_ids` only the lengths are those of the samples. The samples of one problem
    come together in one batch.

    Args:
        path (`str` or `Path`):
            The JSONL file of [`sample_problems`].
        problems ([`~datasets.Dataset`]):
            The problems that were sampled; `id` of a record is its row.
        rewards (`Sequence[WeightedReward]`):
            At least one.
        settings (`Mapping[str, Any]`):
            What the scores depend on, JSON values: the rewards with their parameters, hashes of their models.
        batch_size (`int`, *optional*, defaults to `64`):
            About how many samples are scored at once, at least 1.
        progress (`bool`, *optional*, defaults to `False`):
            Show a progress bar.

    Returns:
        `list[dict]`: the records, ordered by problem and sample.

    Raises:
        [`~trl_reasoning.errors.UserError`]: when a reward gives no finite number, or not one for each sample.
    """
    from rich.progress import track

    file = Path(path)
    records = read_records(file)
    identity = json.loads(json.dumps({**settings, "samples": _digest(records)}))
    meta, partial = file.with_name(file.name + ".score.json"), file.with_name(file.name + ".scores.jsonl")
    is_known = meta.is_file() and json.loads(meta.read_text()) == identity
    if is_known and all("score" in record for record in records):
        return records
    done = _open_partial(partial, identity)
    batches = [batch for batch in _batches(records, batch_size) if not all(_key(record) in done for record in batch)]
    for batch in track(batches, "scoring", disable=not progress):
        scored = _score(batch, problems, rewards)
        with partial.open("a", encoding="utf-8") as stream:
            stream.writelines(
                json.dumps({**dict(zip(("id", "sample"), key, strict=True)), **scores}) + "\n"
                for key, scores in scored.items()
            )
        done |= scored
    records = [_with_scores(record, done[_key(record)]) for record in records]
    whole = file.with_name(file.name + ".new")
    whole.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    os.replace(whole, file)
    meta.write_text(json.dumps(identity, indent=2) + "\n")
    partial.unlink()
    return records


def _key(record: Record) -> Key:
    return record["id"], record["sample"]


def _digest(records: Sequence[Record]) -> str:
    digest = hashlib.sha256()
    for record in records:
        digest.update(json.dumps([*_key(record), record["prompt"], record["completion"]]).encode())
    return digest.hexdigest()


def _open_partial(partial: Path, identity: dict[str, Any]) -> dict[Key, Record]:
    """The scores that an interrupted pass left; its first line says what they were made with."""
    if partial.is_file():
        drop_half_line(partial)
        head, *lines = partial.read_text(encoding="utf-8").splitlines() or [""]
        if head and json.loads(head) == identity:
            rows = [json.loads(line) for line in lines]
            return {(row.pop("id"), row.pop("sample")): row for row in rows}
    partial.write_text(json.dumps(identity) + "\n", encoding="utf-8")
    return {}


def _batches(records: Sequence[Record], batch_size: int) -> Iterator[list[Record]]:
    """Records in their order; those of one problem stay together."""
    batch: list[Record] = []
    for place, record in enumerate(records):
        is_new_problem = place > 0 and record["id"] != records[place - 1]["id"]
        if is_new_problem and len(batch) >= batch_size:
            yield batch
            batch = []
        batch.append(record)
    if batch:
        yield batch


def _score(batch: list[Record], problems: "Dataset", rewards: Sequence[WeightedReward]) -> dict[Key, Record]:
    rows = problems.select([record["id"] for record in batch])
    columns = {name: list(rows[name]) for name in rows.column_names if name not in ("prompt", "completion")}
    is_text = isinstance(batch[0]["prompt"], str)
    arguments = {
        **columns,
        "prompts": [record["prompt"] for record in batch],
        "completions": [
            record["completion"] if is_text else [{"role": "assistant", "content": record["completion"]}]
            for record in batch
        ],
        "completion_ids": [[0] * record["tokens"] for record in batch],
        "thought_opened": [record.get("thought_opened", False) for record in batch],
    }
    values = {reward.name: _call(reward, arguments, batch) for reward in rewards}
    scores = {}
    for place, record in enumerate(batch):
        own = {name: column[place] for name, column in values.items()}
        given = [reward.weight * value for reward in rewards if (value := own[reward.name]) is not None]
        total: Record = {"score": sum(given) if given else None}
        scores[_key(record)] = total | ({"scores": own} if len(rewards) > 1 else {})
    return scores


def _call(reward: WeightedReward, arguments: Mapping[str, Any], batch: list[Record]) -> list[float | None]:
    result = reward.function(**arguments)
    if inspect.isawaitable(result):

        async def wait() -> Any:
            return await result

        result = asyncio.run(wait())
    values = [None if value is None else float(value) for value in result]
    if len(values) != len(batch):
        raise UserError(f"score: {reward.name} returned {len(values)} values for {len(batch)} samples")
    for value, record in zip(values, batch, strict=True):
        if value is not None and not math.isfinite(value):
            raise UserError(
                f"score: {reward.name} gave {value} for problem {record['id']}, sample {record['sample']}; expected a "
                "finite number, or None where it says nothing"
            )
    return values


def _with_scores(record: Record, scores: Record) -> Record:
    """The record without an earlier pass's scores and with these."""
    return {key: value for key, value in record.items() if key not in ("score", "scores")} | scores
