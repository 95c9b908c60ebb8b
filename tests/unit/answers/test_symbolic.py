import time

import pytest

from trl_reasoning.answers import formula_worker, symbolic
from trl_reasoning.answers.rational import TooLargeError
from trl_reasoning.answers.symbolic import (
    TimeLimitError,
    UnreadableError,
    answer_together,
    check_formula,
    is_equal_formula,
)
from trl_reasoning.workers import Outcome


@pytest.fixture
def asked(monkeypatch):
    """The batches of questions that reach the workers."""
    batches = []
    run = symbolic.run_limited

    def record(function, items, **limits):
        batches.append(list(items))
        return run(function, items, **limits)

    monkeypatch.setattr(symbolic, "run_limited", record)
    monkeypatch.setattr(symbolic, "_remembered", {})
    return batches


@pytest.mark.parametrize(
    ("answer", "gold", "is_equal"),
    [
        (r"\frac{1}{\sqrt{3}}", r"\frac{\sqrt{3}}{3}", True),
        (r"\sqrt{1/k}", r"\frac{1}{\sqrt{k}}", True),
        (r"-3+\exp(9)", "e^{9}-3", True),
        ("1.5x", r"\frac{3x}{2}", True),
        ("1.414214", r"\sqrt{2}", False),
        (r"\sqrt{2}+10^{-40}", r"\sqrt{2}", False),
        ("x+10^{-400}", "x", False),
        ("x^2+2x-1", "(x+1)^2", False),
        (r"[\sqrt{5},\infty)", r"a\ge\sqrt{5}", True),
        ("x>2", r"x\ge 2", False),
        (r"\frac{x^2}{25}+\frac{y^2}{9}=1", r"\frac{x^2}{5}+\frac{y^2}{3}=1", False),
        ("i^2", "-1", True),
        ("x_i^2", "-1", False),
        (r"\sum_{i=1}^{3} i", "6", True),
        (r"\int_0^1 x^2 dx", r"\frac13", True),
    ],
)
def test_is_equal_formula(answer, gold, is_equal):
    assert is_equal_formula(answer, gold) is is_equal


def test_bare_latex_is_read_whole():
    # without delimiters math-verify reads the first number only
    assert not is_equal_formula(r"6\sqrt{3}", "6")


@pytest.mark.parametrize("latex", [r"\frac{", "+", "x^", "{x", "x}"])
def test_unreadable(latex):
    with pytest.raises(UnreadableError):
        check_formula(latex)


@pytest.mark.parametrize(
    "latex",
    ["2^{3^{4^{5}}}", r"\frac{1}{2004!}", "x!!", "x^{10000}", "x+" * 600 + "x", "(" * 40 + "x" + ")" * 40],
)
def test_form_is_checked_first(asked, latex):
    with pytest.raises(TooLargeError):
        check_formula(latex)
    assert asked == []


def test_limits(monkeypatch):
    monkeypatch.setattr(symbolic, "_remembered", {})
    started = time.monotonic()
    with pytest.raises(TimeLimitError):
        is_equal_formula(r"\int_0^x e^{\sin(t^t)+t^{t^2}} dt", "x")
    assert is_equal_formula("x+x", "2x")
    assert time.monotonic() - started < 15


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (Outcome("timed_out"), TimeLimitError),
        (Outcome("out_of_memory"), TooLargeError),
        (Outcome("failed", error="the worker died: SIGSEGV"), TooLargeError),
        (Outcome("done", ["unreadable", False, 0.1]), UnreadableError),
        (Outcome("done", ["failed", False, 0.1]), ArithmeticError),
    ],
)
def test_outcomes_become_errors(monkeypatch, outcome, error):
    monkeypatch.setattr(symbolic, "_remembered", {})
    monkeypatch.setattr(symbolic, "run_limited", lambda function, items, **limits: [outcome for _ in items])
    with pytest.raises(error):
        is_equal_formula("x", "y+1")


def test_questions_of_all_computations_are_asked_together_and_once(asked):
    def both(first, second):
        return is_equal_formula(*first) and is_equal_formula(*second)

    right, wrong = ("x+x", "2x"), ("x", "y")
    computations = [
        lambda: both(right, wrong),
        lambda: 3,
        lambda: is_equal_formula(*wrong),
        lambda: is_equal_formula(*right),
        lambda: both(wrong, right),
    ]
    assert answer_together(computations) == [False, 3, False, True, False]
    assert asked == [[right, wrong]]
    assert answer_together(computations) == [False, 3, False, True, False]
    assert len(asked) == 1


def test_one_answer_may_not_ask_for_ever(monkeypatch):
    monkeypatch.setattr(symbolic, "_remembered", {})
    slow = Outcome("done", ["done", True, 0.5])
    batches = []

    def run(function, items, **limits):
        batches.append(items)
        return [slow for _ in items]

    monkeypatch.setattr(symbolic, "run_limited", run)

    def ask_many():
        try:
            return all(is_equal_formula(f"x+{number}", f"{number}+x") for number in range(50))
        except TimeLimitError:
            return "limit"

    assert answer_together([ask_many, lambda: is_equal_formula("x", "1x")]) == ["limit", True]
    assert len(batches) == 3  # 1.5 s at 0.5 s each


def test_strings_are_no_expressions_while_a_formula_is_worked_on():
    import sympy

    with formula_worker._without_eval():
        for text in ("x+1", "__import__('os')", "1+1", "١", "1e9999", ""):
            with pytest.raises((TypeError, sympy.SympifyError)):
                sympy.sympify(text)
        assert [sympy.sympify(text) for text in ("12", "1.5", "2e3")] == [12, sympy.Rational(3, 2), 2000]
    assert sympy.sympify("x+1") == sympy.Symbol("x") + 1  # others in the process may still


def test_computing_time_and_not_the_clock_is_what_a_comparison_may_use_up(monkeypatch):
    limits = {}

    def record(function, items, **given):
        limits.update(given)
        return [Outcome("done", ["done", True, 0.0]) for _ in items]

    monkeypatch.setattr(symbolic, "run_limited", record)
    monkeypatch.setattr(symbolic, "_remembered", {})
    assert is_equal_formula("x", "y")
    assert limits["cpu_seconds"] == symbolic.QUESTION_SECONDS < limits["seconds"] == symbolic.WALL_SECONDS
