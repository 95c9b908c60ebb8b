"""The file of sampled completions: one JSON line a sample, kept across interruptions, never mixed between runs."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import UserError


class RecordsError(UserError):
    """A records file cannot be continued or read."""


class RecordsFile:
    """
    A JSONL file of records with a sidecar `<path>.meta.json` that says what they were drawn with.

    Args:
        path (`str` or `Path`):
            The JSONL file.
        settings (`dict[str, Any]`):
            Everything that shapes the records: model, weights, sampling parameters, dataset. JSON values.
        resume (`bool`):
            Keep the records that are there; otherwise start an empty file.

    Raises:
        [`RecordsError`]: when the records there were drawn with other settings.
    """

    def __init__(self, path: str | Path, settings: dict[str, Any], *, resume: bool) -> None:
        self.path = Path(path)
        self.meta_path = self.path.with_name(self.path.name + ".meta.json")
        settings = json.loads(json.dumps(settings))  # as it reads back: tuples are lists
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not resume:
            self.path.unlink(missing_ok=True)
        elif self.path.exists() and self.path.stat().st_size:
            self._check_settings(settings)
            drop_half_line(self.path)
        self.meta_path.write_text(json.dumps(settings, indent=2) + "\n")

    def done(self) -> set[tuple[int, int]]:
        """The `(id, sample)` pairs that are in the file."""
        if not self.path.exists():
            return set()
        return {(record["id"], record["sample"]) for record in read_records(self.path)}

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write records and hand them to the operating system, so that a killed process loses none of them."""
        with self.path.open("a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)

    def _check_settings(self, settings: dict[str, Any]) -> None:
        way_out = "choose another output folder, or --restart to draw all samples again"
        if not self.meta_path.is_file():
            raise RecordsError(f"{self.path} has no {self.meta_path.name}, so its origin is unknown; {way_out}")
        before = json.loads(self.meta_path.read_text())
        changed = sorted(key for key in before.keys() | settings.keys() if before.get(key) != settings.get(key))
        if changed:
            details = "; ".join(f"{key}: {before.get(key)!r} there, {settings.get(key)!r} now" for key in changed)
            raise RecordsError(f"{self.path} holds samples of other settings ({details}); {way_out}")


def read_records(path: str | Path) -> list[dict[str, Any]]:
    """
    Read a records file.

    Args:
        path (`str` or `Path`):
            The JSONL file.

    Returns:
        `list[dict[str, Any]]`: records ordered by problem and sample.

    Raises:
        [`RecordsError`]: for a line that is not JSON, with its number.
    """
    records = []
    with Path(path).open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise RecordsError(f"{path}, line {number}: not JSON ({error})") from error
    return sorted(records, key=lambda record: (record["id"], record["sample"]))


def drop_half_line(path: Path) -> None:
    """Cut what follows the last line break: a process that was killed while writing left half a line."""
    with path.open("rb+") as stream:
        content = stream.read()
        stream.truncate(content.rfind(b"\n") + 1)
