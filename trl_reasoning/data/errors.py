"""The error of this package's data side, and the hint it likes to give."""

import difflib
from collections.abc import Iterable


class DataError(ValueError):
    """A data set, a source of one or a row cannot be used as asked. The message names the key, column or row."""


def nearest_hint(name: str, choices: Iterable[str]) -> str:
    """
    A half sentence that offers the nearest valid spelling, or nothing when none is near.

    Args:
        name (`str`):
            What was written.
        choices (`Iterable[str]`):
            The valid names.

    Returns:
        `str`: for instance `"; did you mean 'split'?"`, or `""`.

    Example:

    ```python
    >>> nearest_hint("splt", ["path", "split"])
    "; did you mean 'split'?"
    >>> nearest_hint("zzz", ["path", "split"])
    ''

    ```
    """
    matches = difflib.get_close_matches(str(name), list(choices), n=1, cutoff=0.6)
    return f"; did you mean {matches[0]!r}?" if matches else ""
