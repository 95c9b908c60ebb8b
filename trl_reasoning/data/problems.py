"""Rows of public problem sets as question, rationale and solution."""

import re
from typing import Any

from trl_reasoning.rewards._puzzle_entries import encode_entry
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


def convert_amc23(row: Row) -> Row:
    """AMC 2023. The answers, stored as floats, become integers."""
    return {"question": _text(row, "problem"), "solution": _number(row, "answer")}


def convert_aime24(row: Row) -> Row:
    """AIME 2024. Answers are written with three digits there ("025"), which a solution need not do."""
    return {
        "question": _text(row, "problem"),
        "rationale": _text(row, "solution"),
        "solution": number_text(int(_text(row, "answer"))),
    }


def convert_cmath(row: Row) -> Row:
    """CMATH, Chinese primary school problems. The school year becomes the difficulty."""
    return {
        "question": _text(row, "question"),
        "solution": _text(row, "answer").strip(),
        "difficulty": int(row["grade"]),
    }


def convert_minerva_math(row: Row) -> Row:
    """University science problems with their answers in boxes; units stand behind the box and are left out."""
    return {key: value for key, value in convert_math(row).items() if key != "difficulty"}


def convert_olympiadbench(row: Row) -> Row:
    r"""
    OlympiadBench. Its `context` goes before the question, its unit behind a single number, and intervals of a letter
    that have lost their `\in` get it back.

    Example:

    ```python
    >>> convert_olympiadbench({"question": "q", "final_answer": ["$166$"], "unit": "$cm^2$", "solution": ["s"],
    ...                        "answer_type": "Numerical", "is_multiple_answer": False})["solution"]
    '166 \\text{ cm}^2'

    ```
    """
    answers = row["final_answer"]
    if not answers or not all(isinstance(answer, str) and answer.strip() for answer in answers):
        raise DataError(f"`final_answer` should be a list of non-empty strings, got {answers!r}")
    gold = ", ".join(answer.strip().rstrip(".").removeprefix("$").removesuffix("$") for answer in answers)
    unit = (row.get("unit") or "").strip("$ ")
    if row["answer_type"] == "Interval":
        gold = re.sub(r"\A([a-z])\s*(?=[(\[])", r"\1 \\in ", gold)
    elif unit and row["answer_type"] == "Numerical" and not row["is_multiple_answer"]:
        gold += r"\%" if unit == "%" else re.sub(r"\A([A-Za-z/]+)", r" \\text{ \1}", unit)
    question = _text(row, "question")
    solutions = row.get("solution") or []
    return {
        "question": f"{row['context']}\n\n{question}" if row.get("context") else question,
        "rationale": solutions[0] if solutions else None,
        "solution": gold,
    }


def convert_countdown(row: Row) -> Row:
    """
    Countdown. The solution is the target: which expression reaches it is free. The puzzle is what judges a reply, see
    [`trl_reasoning.rewards.make_reasoning_gym_reward`].
    """
    numbers = row["nums"]
    if not numbers:
        raise DataError("`nums` is empty")
    target = _number(row, "target")
    shown = ", ".join(number_text(number) for number in numbers)
    question = (
        f"Write an arithmetic expression that equals {target}. Use each of the numbers {shown} exactly once, and only "
        "the operations +, -, *, / and parentheses."
    )
    metadata = {"target": int(target) if target.isdigit() else float(target), "numbers": list(numbers)}
    return {"question": question, "solution": target, "puzzle": encode_entry("countdown", {}, target, metadata)}


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
