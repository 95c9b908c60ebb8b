"""Rows of public problem sets as question, rationale and solution."""

import re
from typing import Any

from trl_reasoning.text import THINK_CLOSE, split_thought

from .errors import DataError
from .golds import last_boxed, number_text
from .rows import Row


# GSM8K's calculator notes, `<<48/2=24>>`, repeat the sum that stands before them.
_CALCULATOR_NOTE = re.compile(r"<<[^<>]*>>")


def convert_gsm8k(row: Row) -> Row:
    """
    GSM8K. Calculator notes leave the rationale and thousands separators leave the gold ("1,080" -> "1080").

    Example:

    ```python
    >>> convert_gsm8k({"question": "Half of 48?", "answer": "48/2 = <<48/2=24>>24.\\n#### 24"})
    {'question': 'Half of 48?', 'rationale': '48/2 = 24.', 'solution': '24'}

    ```
    """
    answer = _text(row, "answer")
    rationale, mark, gold = answer.rpartition("####")
    if not mark or not gold.strip():
        raise DataError(f"`answer` has no gold after '####': {answer[-80:]!r}")
    return {
        "question": _text(row, "question"),
        "rationale": _CALCULATOR_NOTE.sub("", rationale).strip(),
        "solution": gold.strip().replace(",", ""),
    }


def convert_svamp(row: Row) -> Row:
    """SVAMP. A body that ends without a full stop gets one, so that the question is a sentence of its own."""
    body = _text(row, "Body").strip()
    if body[-1] not in ".?!,":
        body += "."
    return {"question": f"{body} {_text(row, 'Question').strip()}", "solution": _number(row, "Answer")}


def convert_math(row: Row) -> Row:
    """MATH. The gold is the content of the last box; `Level 3` becomes difficulty 3."""
    solution = _text(row, "solution")
    gold = last_boxed(solution)
    if gold is None:
        raise DataError(f"`solution` has no complete \\boxed{{...}}: {solution[-80:]!r}")
    level = re.search(r"\d+", str(row.get("level")))
    return {
        "question": _text(row, "problem"),
        "rationale": solution.strip(),
        "solution": gold,
        "difficulty": int(level.group()) if level else None,
    }


def convert_countdown(row: Row) -> Row:
    """Countdown. The solution is the target: which expression reaches it is free."""
    numbers = row["nums"]
    if not numbers:
        raise DataError("`nums` is empty")
    target = _number(row, "target")
    shown = ", ".join(number_text(number) for number in numbers)
    question = (
        f"Write an arithmetic expression that equals {target}. Use each of the numbers {shown} exactly once, and only "
        "the operations +, -, *, / and parentheses."
    )
    return {"question": question, "solution": target}


def convert_deepmath(row: Row) -> Row:
    """DeepMath-103K."""
    difficulty = row.get("difficulty")
    trace = row.get("r1_solution_1")
    return {
        "question": _text(row, "question"),
        "rationale": None if trace is None else _thought_of(trace),
        "solution": _text(row, "final_answer").strip(),
        "difficulty": None if difficulty is None else float(difficulty),
    }


def convert_openr1_math(row: Row) -> Row:
    """OpenR1-Math. A generation counts as verified when it is complete and math-verify found it right."""
    generations = row.get("generations") or []
    right = row.get("correctness_math_verify") or [False] * len(generations)
    complete = row.get("is_reasoning_complete") or [True] * len(generations)
    verified = [
        text for text, is_right, is_whole in zip(generations, right, complete, strict=True) if is_right and is_whole
    ]
    return {
        "question": _text(row, "problem"),
        "rationale": _thought_of(verified[0]) if verified else row["solution"],
        "solution": _text(row, "answer").strip(),
    }


def _thought_of(trace: str) -> str:
    """The thought of a reasoning trace, which may have lost its opening tag or both tags."""
    return split_thought(trace).thought if THINK_CLOSE in trace else trace.strip()


def _text(row: Row, column: str) -> str:
    value = row[column]
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"`{column}` should be a non-empty string, got {value!r}")
    return value


def _number(row: Row, column: str) -> str:
    value: Any = row[column]
    try:
        return number_text(value if isinstance(value, int) else float(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"`{column}` should be a number, got {value!r}") from error
