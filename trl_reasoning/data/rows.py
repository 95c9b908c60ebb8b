"""Row by row conversion of a data set, with errors that name the row."""

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import DataError


if TYPE_CHECKING:
    from datasets import Dataset, Features

Row = dict[str, Any]
Message = dict[str, str]


def map_rows(
    dataset: "Dataset",
    convert: Callable[[Row], Row],
    *,
    outputs: Mapping[str, str],
    keeps: Sequence[str],
    label: str,
) -> "Dataset":
    """
    Convert every row; the result stays memory-mapped where the input was.

    Args:
        dataset ([`~datasets.Dataset`]):
            The rows.
        convert (`Callable[[Row], Row]`):
            Gives the output columns of one row. A `DataError` that it raises is raised again with the row's index.
        outputs (`Mapping[str, str]`):
            Types of the output columns: `messages`, `list[messages]`, `list[float64]`, `list[string]` or a type name
            of `datasets.Value`. They are fixed here because a type guessed from the first rows is wrong when these are
            empty.
        keeps (`Sequence[str]`):
            Columns of the input to keep where they exist; all others are dropped.
        label (`str`):
            What the error message calls this conversion.

    Returns:
        [`~datasets.Dataset`]
    """
    kept = [name for name in keeps if name in dataset.column_names and name not in outputs]
    function = functools.partial(_convert_row, convert=convert, label=label, code=_code_digest())
    return dataset.map(
        function,
        with_indices=True,
        remove_columns=[name for name in dataset.column_names if name not in kept],
        features=_features(outputs, {name: dataset.features[name] for name in kept}),
        desc=label,
    )


def _convert_row(row: Row, index: int, *, convert: Callable[[Row], Row], label: str, code: str) -> Row:
    try:
        return convert(row)
    except DataError as error:
        raise DataError(f"{label}, row {index}: {error}") from error


def _features(outputs: Mapping[str, str], kept: Mapping[str, Any]) -> "Features":
    from datasets import Features, Value

    messages = [{"role": Value("string"), "content": Value("string")}]
    shapes = {
        "messages": messages,
        "list[messages]": [messages],
        "list[float64]": [Value("float64")],
        "list[string]": [Value("string")],
    }
    typed = {name: shapes[kind] if kind in shapes else Value(kind) for name, kind in outputs.items()}
    return Features({**kept, **typed})


@functools.cache
def _code_digest() -> str:
    """
    Digest of this package's data code.

    `datasets` caches the result of a map under a hash of the function, and hashes a function of an installed module by
    its name alone. With the digest among the arguments a new version of the code never reads an old version's cache.
    """
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
