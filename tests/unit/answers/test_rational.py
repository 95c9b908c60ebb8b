import math
from fractions import Fraction

import pytest

from trl_reasoning.answers.rational import TooLargeError, rational


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", Fraction(5)),
        ("-5", Fraction(-5)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("1.25", Fraction(5, 4)),
        ("4.5e3", Fraction(4500)),
        ("3/4", Fraction(3, 4)),
        ("1/2/4", Fraction(1, 8)),
        (r"\frac{3}{4}", Fraction(3, 4)),
        (r"\frac38", Fraction(3, 8)),
        (r"\frac{-1}{2}", Fraction(-1, 2)),
        (r"\frac{1}{\frac{1}{3}}", Fraction(3)),
        ("2 1/5", Fraction(11, 5)),
        ("-2 1/5", Fraction(-11, 5)),
        (r"1\frac{3}{4}", Fraction(7, 4)),
        (r"3\frac12", Fraction(7, 2)),
        (r"1.2\times 10^{3}", Fraction(1200)),
        (r"3\cdot10^{-4}", Fraction(3, 10000)),
        ("2+3*4", Fraction(14)),
        ("2(3+4)", Fraction(14)),
        ("(2)(3)", Fraction(6)),
        ("-2^2", Fraction(-4)),
        ("2^3^2", Fraction(512)),
        ("2**5", Fraction(32)),
        ("3!", Fraction(6)),
        (r"6\div 4", Fraction(3, 2)),
        ("(-1)^{10000001}", Fraction(-1)),
        (r"\frac{5^{900}+2}{5^{901}}", Fraction(5**900 + 2, 5**901)),
        (r"\frac{1}{3004!}", Fraction(1, math.factorial(3004))),
    ],
)
def test_values(text, value):
    assert rational(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "2x", "5 6", "4 10/3", "2 1/5 3", r"2\frac{5}{3}", r"2\sqrt{3}", "1/0", "0^{-1}", "4^{1/2}", "(1"),
        *("1)", "(1]", "1,2", "--", "1..2", r"\fraction", "½!", "1/3!!x", "__import__('os')"),
    ],
)
def test_other_texts(text):
    assert rational(text) is None


@pytest.mark.parametrize(
    "text",
    [
        *("10^{10^{10}}", "9^{9^{9}}", "9999!", "((9!)!)!", "1e99999", "1" * 4001, "(" * 100 + "1" + ")" * 100),
        "*".join(["10^{30000}"] * 3),
    ],
    ids=lambda text: text[:10],
)
def test_too_large(text):
    with pytest.raises(TooLargeError):
        rational(text)
