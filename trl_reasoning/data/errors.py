"""The error of this package's data side, and the hint it likes to give."""

from collections.abc import Iterable

from ..errors import UserError, nearest_spelling


class DataError(UserError):
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
    nearest = nearest_spelling(str(name), choices)
    return f"; did you mean {nearest!r}?" if nearest else ""
