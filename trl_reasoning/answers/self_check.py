"""Whether a gold answer verifies against itself."""

from collections.abc import Sequence

from .extract import marked_answer
from .verdict import Verdict
from .verify import verify_batch


def self_check(gold: str | None, kind: str = "auto") -> Verdict:
    r"""
    Check a gold answer as if a perfect model had written it into a box.

    Args:
        gold (`str` or `None`):
            Gold answer, bare or marked (`#### 5`, `\boxed{5}`).
        kind (`str`, *optional*, defaults to `"auto"`):
            As in [`verify`].

    Returns:
        [`Verdict`]: anything but `"right"` says that the right answer could never score.

    Example:
    ```python
    >>> self_check(r"\frac{1}{2}").status, self_check("1. Both pumps fill a quarter.").status
    ('right', 'unreadable_gold')
    >>> self_check("5 = 6").status
    'wrong'

    ```
    """
    return self_check_batch([gold], kind)[0]


def self_check_batch(golds: Sequence[str | None], kind: str = "auto") -> list[Verdict]:
    """[`self_check`] of many golds at once."""
    answers = [(marked_answer(gold) or gold) if isinstance(gold, str) else "" for gold in golds]
    return verify_batch([rf"\boxed{{{answer}}}" for answer in answers], golds, kind=kind)
