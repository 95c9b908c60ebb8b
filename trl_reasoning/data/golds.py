"""Gold answers as text."""

from trl_reasoning.answers.extract import boxes_of


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
        (an earlier one may be an intermediate result, so it is not taken instead). Empty boxes do not count.

    Example:

    ```python
    >>> last_boxed(r"so $\boxed{\frac{1}{2}}$.")
    '\\frac{1}{2}'

    ```
    """
    boxes, is_cut = boxes_of(text)
    return None if is_cut or not boxes else boxes[-1][2]
