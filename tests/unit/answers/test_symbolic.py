import threading
import time

import pytest

from trl_reasoning.answers import symbolic
from trl_reasoning.answers.rational import TooLargeError
from trl_reasoning.answers.symbolic import TimeLimitError, UnreadableError, is_equal_formula, read_formula


@pytest.mark.parametrize(
    ("answer", "gold", "is_equal"),
    [
        (r"\frac{1}{\sqrt{3}}", r"\frac{\sqrt{3}}{3}", True),
        (r"\sqrt{1/k}", r"\frac{1}{\sqrt{k}}", True),
        (r"-3+\exp(9)", "e^{9}-3", True),
        ("1.5x", r"\frac{3x}{2}", True),
        ("1.414214", r"\sqrt{2}", False),
        ("x^2+2x-1", "(x+1)^2", False),
        (r"[\sqrt{5},\infty)", r"a\ge\sqrt{5}", True),
        ("x>2", r"x\ge 2", False),
        (r"\frac{x^2}{25}+\frac{y^2}{9}=1", r"\frac{x^2}{5}+\frac{y^2}{3}=1", False),
    ],
)
def test_is_equal_formula(answer, gold, is_equal):
    assert is_equal_formula(answer, gold) is is_equal


def test_bare_latex_is_read_whole():
    # without delimiters math-verify reads the first number only
    assert str(read_formula(r"6\sqrt{3}")) == "6*sqrt(3)"


@pytest.mark.parametrize("latex", [r"\frac{", "+", "x^"])
def test_unreadable(latex):
    with pytest.raises(UnreadableError):
        read_formula(latex)


@pytest.mark.parametrize("latex", ["2^{3^{4^{5}}}", r"\frac{1}{2004!}", "x!!", "x^{10000}", "x+" * 600 + "x"])
def test_size_is_checked_first(latex):
    with pytest.raises(TooLargeError):
        read_formula(latex)


def test_limits_are_tighter_outside_the_main_thread():
    errors = []

    def check():
        for latex in ("x+" * 120 + "x", "x^{500}", "n!"):
            try:
                read_formula(latex)
            except TooLargeError as error:
                errors.append(error)

    thread = threading.Thread(target=check)
    thread.start()
    thread.join()
    assert len(errors) == 3
    read_formula("x^{500}")  # fine in the main thread


def test_slow_comparison_is_a_time_limit(monkeypatch):
    monkeypatch.setattr(symbolic, "VERIFY_SECONDS", 1)
    monkeypatch.setattr(symbolic, "_is_equal_for_positive", lambda answer, gold: time.sleep(30))
    with pytest.raises(TimeLimitError, match="within 1 s"):
        is_equal_formula("x", "y+1")


def test_failing_comparison_is_an_arithmetic_error(monkeypatch):
    def fail(answer, gold):
        raise TypeError("cannot compare")

    monkeypatch.setattr(symbolic, "_is_equal_for_positive", fail)
    with pytest.raises(ArithmeticError, match="TypeError: cannot compare"):
        is_equal_formula("x", "y+1")
