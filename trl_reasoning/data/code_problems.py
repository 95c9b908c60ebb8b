"""Rows of public sets of programming problems."""

from .errors import DataError
from .rows import Row


def convert_humaneval(row: Row) -> Row:
    """
    HumanEval. The question asks for the function whose head and docstring it shows; the solution is a whole program.

    Example:

    ```python
    >>> row = {"prompt": "def up(x):\\n", "canonical_solution": "    return x + 1\\n", "test": "assert up(1) == 2"}
    >>> convert_humaneval({**row, "entry_point": "up"})["solution"]
    'def up(x):\\n    return x + 1\\n'

    ```
    """
    for column in ("prompt", "canonical_solution", "test", "entry_point"):
        _check_text(row, column)
    question = (
        "Complete this Python function. Answer with one ```python block that holds the whole function and what it "
        f"needs.\n\n```python\n{row['prompt'].strip()}\n```"
    )
    return {
        "question": question,
        "solution": row["prompt"] + row["canonical_solution"],
        "tests": [row["test"]],
        "entry_point": row["entry_point"],
        "code_prompt": row["prompt"],
    }


def convert_mbpp(row: Row) -> Row:
    """
    MBPP. The question shows the first test, which names the function; the others stay hidden.

    Example:

    ```python
    >>> tests = ["assert up(1) == 2", "assert up(5) == 6"]
    >>> convert_mbpp({"text": "Add one.", "code": "def up(x): return x + 1", "test_list": tests})["question"][-19:]
    ': assert up(1) == 2'

    ```
    """
    for column in ("text", "code"):
        _check_text(row, column)
    tests = row["test_list"]
    if not isinstance(tests, list) or not tests or not all(isinstance(test, str) for test in tests):
        raise DataError(f"`test_list` should be a list of asserts, got {tests!r}")
    question = (
        f"{row['text'].strip()} Answer with one ```python block that holds the whole function and what it needs. It "
        f"has to pass this test and others: {tests[0]}"
    )
    return {
        "question": question,
        "solution": row["code"],
        "tests": tests,
        "test_setup": row.get("test_setup_code") or "",
    }


def _check_text(row: Row, column: str) -> None:
    if not isinstance(row[column], str) or not row[column].strip():
        raise DataError(f"`{column}` should be a non-empty string, got {row[column]!r}")
