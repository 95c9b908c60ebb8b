import pytest
from datasets import Dataset

from trl_reasoning.data import ADAPTERS, DataError


def adapt(name, *rows):
    return ADAPTERS[name](Dataset.from_list(list(rows))).to_list()


def test_amc23_and_aime24_write_integers():
    assert adapt("amc23", {"problem": "p", "answer": -27.0}) == [{"question": "p", "solution": "-27"}]
    assert adapt("aime24", {"problem": "p", "solution": "s", "answer": "025"}) == [
        {"question": "p", "rationale": "s", "solution": "25"}
    ]


def test_cmath_keeps_the_school_year():
    row = {"grade": 3, "question": "99减90等于多少？", "answer": " 9 ", "reasoning_step": 1}
    assert adapt("cmath", row) == [{"question": "99减90等于多少？", "solution": "9", "difficulty": 3}]


def test_minerva_takes_the_box():
    row = {"problem": "p", "solution": r"so $s=\boxed{1.6} \mathrm{~cm}$", "type": "Astronomy"}
    assert adapt("minerva_math", row) == [
        {"type": "Astronomy", "question": "p", "rationale": row["solution"], "solution": "1.6"}
    ]


def olympiad(answer, kind="Numerical", unit=None, multiple=False, **more):
    row = {"question": "q", "final_answer": [answer], "answer_type": kind, "unit": unit}
    return {**row, "is_multiple_answer": multiple, "solution": ["s"], "context": None, **more}


@pytest.mark.parametrize(
    ("row", "gold"),
    [
        (olympiad("$2n-2$", "Expression"), "2n-2"),
        (olympiad("166", unit="$cm^2$"), r"166 \text{ cm}^2"),
        (olympiad("8", unit="min"), r"8 \text{ min}"),
        (olympiad("$45$", unit=r"^{\circ}"), r"45^{\circ}"),
        (olympiad("4.2", unit="%"), r"4.2\%"),
        (olympiad("$5$,$7$", unit="km", multiple=True), "5$,$7"),
        (olympiad("$t(0,4]$", "Interval"), r"t \in (0,4]"),
        (olympiad("$(-\\infty, 0) \\cup\\{1\\}$.", "Interval"), r"(-\infty, 0) \cup\{1\}"),
    ],
)
def test_olympiadbench(row, gold):
    (found,) = adapt("olympiadbench", row)
    assert (found["question"], found["rationale"], found["solution"]) == ("q", "s", gold)
    assert found["answer_type"] == row["answer_type"]


def test_olympiadbench_puts_the_context_first():
    assert adapt("olympiadbench", olympiad("1", context="Let x be 1."))[0]["question"] == "Let x be 1.\n\nq"
    with pytest.raises(DataError, match="row 0: `final_answer`"):
        adapt("olympiadbench", olympiad(" "))
