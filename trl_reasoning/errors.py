"""The base of errors that a user can mend, and the search for the spelling that was meant."""

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """An error in what the user gave: the command line prints its message without a traceback and exits with 2."""


def nearest_spelling(word: str, candidates: Iterable[str]) -> str | None:
    """
    The candidate that `word` was probably meant to be, or None where none is near.

    A hyphen counts as an underscore, and case is ignored.

    Example:

    ```python
    >>> nearest_spelling("num-generations", ["num_generations", "num_iterations"])
    'num_generations'
    >>> nearest_spelling("zebra", ["num_generations"]) is None
    True

    ```
    """
    by_folded = {candidate.lower().replace("-", "_"): candidate for candidate in candidates}
    matches = difflib.get_close_matches(word.lower().replace("-", "_"), by_folded, n=1, cutoff=0.6)
    return by_folded[matches[0]] if matches else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """`" Did you mean `x`?"`, or an empty string where no candidate is near."""
    nearest = nearest_spelling(word, candidates)
    return f" Did you mean `{nearest}`?" if nearest else ""
