"""Matrices and vectors written in LaTeX."""

import re
from collections.abc import Callable


# A determinant (vmatrix) is a number, so it is none of these.
_MATRIX = re.compile(
    r"\\begin\s*\{\s*([pbB]?)matrix\s*\}(?P<body>(?:(?!\\begin|\\end).)*)\\end\s*\{\s*\1matrix\s*\}\Z"
)


def read_matrix(text: str) -> list[list[str]] | None:
    r"""
    Rows of a matrix, or `None` when the text is not wholly one matrix. A row break after the last row is no row.

    Example:
    ```python
    >>> read_matrix(r"\begin{pmatrix}1&2\\3&4\\\end{pmatrix}")
    [['1', '2'], ['3', '4']]

    ```
    """
    match = _MATRIX.match(text)
    if match is None:
        return None
    rows = [row.strip() for row in match["body"].split(r"\\")]
    return [[cell.strip() for cell in row.split("&")] for row in rows if row]


def is_same_matrix(first: list[list[str]], second: list[list[str]], is_equal: Callable[[str, str], bool]) -> bool:
    """Whether two matrices have the same shape and equal entries."""
    if [len(row) for row in first] != [len(row) for row in second]:
        return False
    pairs = [pair for rows in zip(first, second, strict=True) for pair in zip(*rows, strict=True)]
    return all(is_equal(*pair) for pair in pairs)


def vector_of(matrix: list[list[str]]) -> list[str] | None:
    """Entries of a matrix with one row or one column, or `None`."""
    if len(matrix) == 1:
        return matrix[0]
    return [row[0] for row in matrix] if all(len(row) == 1 for row in matrix) else None
