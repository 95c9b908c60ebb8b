"""From a file of samples to rows: `prompt` and `completion`, or `prompt`, `chosen` and `rejected`."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import DataError
from .files import filled_lines
from .sample_options import PairOptions, SampleOptions
from .sample_pairs import Pair, best_worst_pairs, long2short_pairs
from .selection import Record, SelectionReport, select_samples


if TYPE_CHECKING:
    from datasets import Dataset

RECORDS_FILE = "records.jsonl"
# Keys of a record and the types that they have.
_NEEDED: dict[str, tuple[type, ...]] = {
    "id": (int,),
    "sample": (int,),
    "prompt": (str, list),
    "completion": (str,),
    "tokens": (int,),
    "status": (str, type(None)),
    "finish_reason": (str,),
    "valid_format": (bool,),
}
# Read where they are there; only what is used stays in memory.
_OPTIONAL = ("score", "solution", "reply_start")


def read_samples(path: Path) -> list[dict[str, Any]]:
    """
    Read the records that `trl-reasoning sample` wrote.

    Args:
        path (`Path`):
            The JSONL file (also `.gz`), or the folder with a `records.jsonl`.

    Returns:
        `list[dict[str, Any]]`: the records with the keys that are read here, in the order of the file.

    Raises:
        `DataError`: for a file that is not there or empty, and for a line that is not a record, with its number.
    """
    file = path / RECORDS_FILE if path.is_dir() else path
    if not file.is_file():
        raise DataError(f"datasets: path: the folder {str(path)!r} has no {RECORDS_FILE}")
    records = [_read_line(line, f"{file}, line {number}") for number, line in filled_lines(file)]
    if not records:
        raise DataError(f"datasets: path: {str(file)!r} is empty")
    forms = [isinstance(record["prompt"], str) for record in records]
    if len(set(forms)) > 1:
        place = forms.index(not forms[0])
        raise DataError(
            f"datasets: path: {str(file)!r} mixes prompts of plain text and of messages: record {place} is the first "
            "that differs; make one source of each"
        )
    return records


def sampled_rows(records: Sequence[Record], options: SampleOptions) -> "tuple[Dataset, SelectionReport]":
    """
    The rows of `from_samples`: `prompt` and `completion` as they were sampled, and `solution` where there is one.

    Messages whose chat template began the reply (an opened or an empty thought) get that beginning as the start of
    their completion, so that a template that writes a reply as it is gives the text that the model wrote.

    Args:
        records (`Sequence[Mapping]`):
            Of [`read_samples`].
        options ([`SampleOptions`]):
            Which samples.

    Returns:
        `tuple[Dataset, SelectionReport]`

    Raises:
        `DataError`: when no sample is left.
    """
    kept, report = select_samples(
        records,
        options.keep,
        options.take,
        per_prompt=options.per_prompt,
        valid_format=options.valid_format,
        seed=options.seed,
    )
    return _dataset([{**_shared(record), "completion": _reply(record)} for record in kept], report), report


def pair_rows(records: Sequence[Record], options: PairOptions) -> "tuple[Dataset, SelectionReport]":
    """
    The rows of `pairs`: `prompt`, `chosen`, `rejected`, and by score `score_chosen` and `score_rejected`.

    Args:
        records (`Sequence[Mapping]`):
            Of [`read_samples`].
        options ([`PairOptions`]):
            Which pairs.

    Returns:
        `tuple[Dataset, SelectionReport]`

    Raises:
        `DataError`: when there is no pair.
    """
    pairs, report = _pairs(records, options)
    rows = []
    for chosen, rejected in pairs:
        row = {**_shared(chosen), "chosen": _reply(chosen), "rejected": _reply(rejected)}
        if options.by == "score":
            row |= {"score_chosen": float(chosen["score"]), "score_rejected": float(rejected["score"])}
        rows.append(row)
    return _dataset(rows, report), report


def _pairs(records: Sequence[Record], options: PairOptions) -> tuple[list[Pair], SelectionReport]:
    given = {"use_cut": options.use_cut, "seed": options.seed}
    if options.rule == "long2short":
        return long2short_pairs(records, options.ratio or 1.5, per_prompt=options.per_prompt, **given)
    by, match = options.by or "verifier", options.match or "none"
    return best_worst_pairs(records, by, match=match, per_prompt=options.per_prompt or 1, **given)


def _read_line(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{where}: not valid JSON: {error.msg} at character {error.pos}: {line.strip()[:80]!r}"
        ) from error
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected an object {{...}}, got {line.strip()[:80]!r}")
    missing = [key for key in _NEEDED if key not in record]
    if missing:
        raise DataError(
            f"{where}: not a sample of `trl-reasoning sample`: {', '.join(missing)} missing (found: "
            f"{', '.join(record)}). Rows of other programs are read without `from_samples` and `pairs`"
        )
    for key, types in _NEEDED.items():
        if type(record[key]) not in types:
            expected = " or ".join("null" if kind is type(None) else kind.__name__ for kind in types)
            raise DataError(f"{where}: `{key}`: expected {expected}, got {record[key]!r}")
    score = record.get("score")
    if score is not None and (type(score) not in (int, float) or not math.isfinite(score)):
        raise DataError(f"{where}: `score`: expected a finite number or null, got {score!r}")
    if isinstance(record["prompt"], list) and record["prompt"] and record["prompt"][-1].get("role") == "assistant":
        raise DataError(
            f"{where}: the sample continues a reply that the prompt began, which cannot be told apart in training; "
            "sample from prompts that end with the user's turn"
        )
    return {key: record[key] for key in (*_NEEDED, *_OPTIONAL) if key in record}


def _reply(record: Record) -> str | list[dict[str, str]]:
    if isinstance(record["prompt"], str):
        return record["completion"]
    return [{"role": "assistant", "content": record.get("reply_start", "") + record["completion"]}]


def _shared(record: Record) -> dict[str, Any]:
    return {"prompt": record["prompt"], "solution": record.get("solution")}


def _dataset(rows: list[dict[str, Any]], report: SelectionReport) -> "Dataset":
    from datasets import Dataset

    if not rows:
        raise DataError(f"the data set is empty: {report}")
    dataset = Dataset.from_list(rows)
    return dataset if any(row["solution"] is not None for row in rows) else dataset.remove_columns("solution")
