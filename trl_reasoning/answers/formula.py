"""Formulas as trees: a small reader of LaTeX and plain text that refuses what it is not sure of."""

import re
from fractions import Fraction
from functools import lru_cache

from .formula_reader import Node, Reader
from .formula_tokens import RefusedError


MAX_LENGTH = 300

_SCIENTIFIC = re.compile(r"([+-]?)\s*((?:\d+(?:\.\d*)?|\.\d+)[eE][-+]?\d{1,3})\Z", re.ASCII)
_INDEX = re.compile(r"_\s*\{[A-Za-z\s]*\}")
# Words, scientific notation and derivatives are no products; some commands are two spellings of one letter.
_REFUSED = re.compile(
    r"(?<![\\A-Za-z])[A-Za-z]{3,}|\d[eE][-+]?\d|\\var|,|\\\\"
    r"|\\[Dd]elta\s*[A-Za-z\\]|\\frac\s*\{\s*d[^{}]*\}\s*\{\s*d\s*\\?[A-Za-z]"
)


@lru_cache(maxsize=1024)
def read(text: str) -> Node | None:
    r"""
    Read a formula cleaned by `clean`.

    Args:
        text (`str`):
            Formula without math marks.

    Returns:
        `Node` or `None`: `None` when it is refused.

    Example:
    ```python
    >>> read(r"2\pi x")
    ('*', (('n', Fraction(2, 1)), ('c', 'pi'), ('s', 'x')))
    >>> read("1/2x") is None
    True

    ```
    """
    scientific = _SCIENTIFIC.match(text)
    if scientific:
        return ("n", Fraction(scientific[1] + scientific[2]))
    if len(text) > MAX_LENGTH or _REFUSED.search(_INDEX.sub("", text)):
        return None
    try:
        return Reader(text).formula()
    except RefusedError:
        return None


def symbols(node: Node) -> frozenset[str]:
    """Names of all letters of a formula."""
    return frozenset(part[1] for part in walk(node) if part[0] == "s")


def walk(node: Node) -> list[Node]:
    """All nodes of a formula."""
    found, rest = [], [node]
    while rest:
        part = rest.pop()
        found.append(part)
        for child in part[1:]:
            if isinstance(child, tuple):
                rest.extend([child] if child and isinstance(child[0], str) else child)
    return found
