"""Gold answers as text."""

import re


_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*")


def number_text(number: int | float) -> str:
    """
    A number as a person writes it: whole numbers without a decimal point.

    Args:
        number (`int` or `float`):
            A finite number.

    Returns:
        `str`

    Example:

    ```python
    >>> number_text(8.0), number_text(2.5), number_text(-3)
    ('8', '2.5', '-3')

    ```
    """
    return str(int(number)) if number == int(number) else repr(number)


def last_boxed(text: str) -> str | None:
    r"""
    The content of the last complete `\boxed{...}` (or `\fbox{...}`) of a worked solution.

    Args:
        text (`str`):
            LaTeX text.

    Returns:
        `str` or `None`: the content without outer blanks; `None` when there is no box, or when the last box has no end
        (an earlier one may be an intermediate result, so it is not taken instead) or is empty.

    Example:

    ```python
    >>> last_boxed(r"so $\boxed{\frac{1}{2}}$.")
    '\\frac{1}{2}'

    ```
    """
    starts = list(_BOX.finditer(text))
    if not starts:
        return None
    rest = text[starts[-1].end() :]
    if not rest.startswith("{"):
        # `\boxed 5` boxes one token.
        token = re.match(r"[^\s$.,{}\\]+", rest)
        return token.group() if token else None
    depth = 0
    # Escaped braces are set characters of the formula and need not balance: `\left\{ x \right.`
    for brace in re.finditer(r"\\.|[{}]", rest, flags=re.DOTALL):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0 and brace.group() == "}":
            return rest[1 : brace.start()].strip() or None
    return None
