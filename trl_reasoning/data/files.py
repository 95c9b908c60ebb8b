"""Local files and folders of rows, read through `datasets` so that they stay memory-mapped."""

import gzip
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import DataError, nearest_hint


if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

    from .source_spec import SourceSpec

logger = logging.getLogger(__name__)

# File name ending -> builder of `datasets`.
FORMATS = {
    ".json": "json",
    ".jsonl": "json",
    ".json.gz": "json",
    ".jsonl.gz": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
}


def find_local(path: str, base_dir: Path | None) -> Path | None:
    """The existing file or folder that `path` means: as it is (from the current directory), else from `base_dir`."""
    asked = Path(path).expanduser()
    candidates = [asked] if base_dir is None else [asked, Path(base_dir) / asked]
    return next((candidate for candidate in candidates if candidate.exists()), None)


def looks_local(path: str) -> bool:
    """Whether a path that does not exist cannot be a hub id, which is `name` or `owner/name`."""
    return path.startswith((".", "/", "~")) or path.count("/") > 1 or _format_of(Path(path)) is not None


def load_local(path: Path, source: "SourceSpec") -> "Dataset":
    """
    Read a local file or folder.

    Args:
        path (`Path`):
            Existing JSON, JSONL (also `.gz`), Parquet or Arrow file, folder of them, or `save_to_disk` folder.
        source ([`SourceSpec`]):
            Gives the split and the configuration name.

    Returns:
        [`~datasets.Dataset`]

    Raises:
        `DataError`: for an unknown format, an empty file, a split that is not there, a row that does not parse.
    """
    if source.name is not None:
        # Not an error: a recipe written for a hub data set must run with nothing but its path replaced.
        logger.warning("datasets: name %r is for hub data sets and has no effect on %s", source.name, path)
    return _load_folder(path, source) if path.is_dir() else _load_file(path, source)


def pick_split(splits: "DatasetDict", source: "SourceSpec") -> "Dataset":
    """The split that was asked for; without one, the only split or `train`."""
    names = [str(name) for name in splits]
    split = source.split
    if split is None:
        split = names[0] if len(names) == 1 else "train"
    if split not in names:
        hint = nearest_hint(split, names)
        raise DataError(f"datasets: split: {source.path!r} has no split {split!r}{hint} (found: {', '.join(names)})")
    return splits[split]


def _load_file(path: Path, source: "SourceSpec") -> "Dataset":
    builder = _format_of(path)
    if builder is None:
        raise DataError(
            f"datasets: path: cannot tell the format of {str(path)!r}; expected a name that ends in "
            f"{', '.join(FORMATS)}"
        )
    if builder == "json" and next(filled_lines(path), None) is None:
        raise DataError(f"datasets: path: {str(path)!r} is empty")
    split = source.split or "train"
    # One file has one split: whatever its name is, it is this file (and `train[:100]` takes a slice of it).
    return _load(builder, {"data_files": {split.partition("[")[0]: str(path)}, "split": split}, path, [path])


def _load_folder(path: Path, source: "SourceSpec") -> "Dataset":
    from datasets import DatasetDict, load_from_disk

    if (path / "dataset_dict.json").is_file() or (path / "state.json").is_file():
        saved = load_from_disk(str(path))
        return pick_split(saved, source) if isinstance(saved, DatasetDict) else saved
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and _format_of(file) is not None]
    formats = sorted({_format_of(file) or "" for file in files})
    if not files:
        raise DataError(f"datasets: path: the folder {str(path)!r} has no file that ends in {', '.join(FORMATS)}")
    if len(formats) > 1:
        raise DataError(
            f"datasets: path: the folder {str(path)!r} mixes the formats {', '.join(formats)}; name one file, or give "
            "each format a folder and a source of its own"
        )
    loaded = _load(str(path), {"split": source.split}, path, files)
    return pick_split(loaded, source) if isinstance(loaded, DatasetDict) else loaded


def _load(builder: str, settings: dict, path: Path, files: list[Path]):
    from datasets import load_dataset

    try:
        return load_dataset(builder, **settings)
    # `datasets` wraps errors of many readers, and the row is lost on the way: look for it again, line by line.
    except Exception as error:
        for file in files:
            if _format_of(file) == "json":
                _check_json(file)
        reason = error if error.__cause__ is None else error.__cause__
        raise DataError(f"datasets: path: could not read {str(path)!r}: {type(reason).__name__}: {reason}") from error


def _format_of(path: Path) -> str | None:
    name = path.name.lower()
    return next((builder for ending, builder in FORMATS.items() if name.endswith(ending)), None)


def filled_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, numbered from 1."""
    opener = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield number, line


def _check_json(path: Path) -> None:
    """Raise an error that names the first place where the file is not JSON rows; says nothing when all parse."""
    first = next(filled_lines(path), None)
    if first is None:
        raise DataError(f"datasets: path: {str(path)!r} is empty")
    if first[1].lstrip().startswith("["):
        _check_json_list(path)
        return
    for number, line in filled_lines(path):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{path}, line {number}: not valid JSON: {error.msg} at character {error.pos}: {line.strip()[:80]!r}"
            ) from error
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number}: expected an object {{...}}, got {line.strip()[:80]!r}")


def _check_json_list(path: Path) -> None:
    text = "".join(line for _, line in filled_lines(path)) if path.name.endswith(".gz") else path.read_text("utf-8")
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}: not valid JSON: {error.msg} at column {error.colno}") from error
    if not rows:
        raise DataError(f"datasets: path: {str(path)!r} is empty")
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            raise DataError(f"{path}, row {index}: expected an object {{...}}, got {str(row)[:80]!r}")
