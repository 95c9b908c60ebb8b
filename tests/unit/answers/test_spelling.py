"""Spellings, names, words and choices."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trl_reasoning.answers.choices import chosen_letter, gold_choice
from trl_reasoning.answers.equations import is_contradiction, is_name, is_same_equation, sides_of, strip_names
from trl_reasoning.answers.formula_text import rename_capitals, with_clear_fractions
from trl_reasoning.answers.normalize import Value
from trl_reasoning.answers.rational import rational
from trl_reasoning.answers.spelling import respell
from trl_reasoning.answers.words import as_text, clock_time, is_formula, is_words


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("x**2", "x^2"),
        ("**42**", "42"),
        ("2½", "2 1/2"),
        ("10⁻³", "10^{-3}"),
        (r"\langle 1,2\rangle", "( 1,2)"),
        (r"1,\dots,9", r"1,\ldots ,9"),
        (r"\{ \}", r"\emptyset"),
        ("~7", r"\sim 7"),
        (r"f^{\prime\prime}(x)", "f''(x)"),
        (r"m_{\max }", "m_{max}"),
        (r"L_\odot", "L_{odot}"),
        (r"\lim_{\infty}", r"\lim_{\infty}"),
        ("np.arcsin(1/2)", r"\arcsin(1/2)"),
        (r"\cos 60^\circ", r"\cos (\frac{60\pi}{180})"),
        (r"60^\circ", r"60^\circ"),
        ("0,123", "0,123"),
        ("5 sec", "5 sec"),
        ("x<=3", r"x\le 3"),
    ],
)
def test_respell(raw, expected):
    assert respell(raw) == expected


def test_respelling_ends():
    # Row breaks stay before brackets.
    assert respell(r"\begin{pmatrix}1\\(2)\end{pmatrix}") == r"\begin{pmatrix}1\\(2)\end{pmatrix}"


@settings(max_examples=200, deadline=None)
@given(whole=st.integers(0, 999), digits=st.text("0123456789", min_size=1, max_size=6))
def test_repeating_decimals(whole, digits):
    # 10^n times the number less the number leaves the digits before the line.
    number = rational(rf"{whole}.\overline{{{digits}}}")
    assert number * (10 ** len(digits) - 1) == whole * (10 ** len(digits) - 1) + int(digits)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"3\frac{1}{2}x", r"(3+\frac{1}{2})x"),
        (r"3\frac12x", r"(3+\frac{1}{2})x"),
        (r"3\frac{5}{2}x", r"3\frac{5}{2}x"),
        (r"x^3\frac{1}{2}", r"x^3\frac{1}{2}"),
    ],
)
def test_with_clear_fractions(text, expected):
    assert with_clear_fractions(text) == expected


def test_capitals_are_letters_of_their_own():
    first, second = rename_capitals("X+x", "x+x")
    assert first != second == "x+x"
    assert rename_capitals(r"\Theta(n)", r"\theta(n)")[0] != r"\theta(n)"
    assert rename_capitals(r"\mathbb{R}+E_1", "E_1")[0].startswith(r"\mathbb{R}+")
    assert "E" not in "".join(rename_capitals("E_1", "E_{2}"))


@pytest.mark.parametrize("name", ["x", "x_1", "x_{max}", "f(x)", "f'", r"\theta", "(x, y)", "S"])
def test_names(name):
    assert is_name(name)


@pytest.mark.parametrize("text", ["2", "2x", "x+1", "f(2)", "x, y", "xy+1", ""])
def test_no_names(text):
    assert not is_name(text)


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("x=5", "5", ("5", "5")),
        ("5=x", "5", ("5", "5")),
        ("5", "x=5", ("5", "5")),
        ("x=5", "y=5", ("x=5", "y=5")),
        ("x=3+4=7", "7", ("7", "7")),
        ("5=6", "6", None),
        ("x=5=6", "6", None),
        ("1=1", "1", None),
        ("x+y=3", "3", None),
        ("x=5", "x>5", None),
        ("=5", "5", None),
        ("y=2x+1", "2x-y+1=0", ("y=2x+1", "2x-y+1=0")),
        (r"4\pi \approx 12.57", r"4\pi", (r"4\pi", r"4\pi")),
        ("x=1, y=2", "1, 2", ("x=1, y=2", "1, 2")),
        (r"x \in (0,1)", "(0,1)", ("(0,1)", "(0,1)")),
    ],
)
def test_strip_names(answer, gold, expected):
    stripped = strip_names(Value(answer), Value(gold))
    assert (stripped and tuple(value.text for value in stripped)) == expected


def test_sides():
    assert sides_of(r"\sum_{k=1}^{3} k") == [r"\sum_{k=1}^{3} k"]
    assert sides_of("a = b = 3") == ["a", "b", "3"]
    assert is_contradiction("4 = 5") and not is_contradiction("7/3 = 2.33")


COEFFICIENTS = st.integers(-9, 9)


@settings(max_examples=100, deadline=None)
@given(a=COEFFICIENTS, b=COEFFICIENTS, c=COEFFICIENTS, factor=st.sampled_from([-3, -1, 2, 5]))
def test_equations_are_equal_up_to_a_factor(a, b, c, factor):
    if a == 0 or b == 0:
        return
    line, multiple = f"{a}x+{b}y={c}", f"{factor * a}x+{factor * b}y={factor * c}"
    assert is_same_equation(line.replace("+-", "-"), multiple.replace("+-", "-"))
    for wrong in (f"{factor * a}x+{factor * b}y={factor * c + 1}", f"{a}x+{b}y={c}+y", f"{a}x-{b}y={c}"):
        if wrong == f"{a}x-{b}y={c}" and c == 0 and factor == -1:
            continue
        assert not is_same_equation(line.replace("+-", "-"), wrong.replace("+-", "-").replace("--", "+"))


def test_words():
    assert is_words("MR=SRMC") and as_text("SRMC = MR") == as_text("MR=SRMC") != as_text("MR=LRMC")
    assert not is_formula(r"5 \mod 7") and not is_formula("5?") and is_formula("2x")
    assert clock_time("12:05 AM") == (12, 5, "a")
    assert [clock_time(text) for text in ("25:00", "3:75", "1:2:3")] == [None, None, None]


@pytest.mark.parametrize(("gold", "letter"), [("A", "A"), ("(T)", "T"), ("K", None), ("AB", None), ("a", None)])
def test_gold_choice(gold, letter):
    assert gold_choice(gold) == letter


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("b", "B"),
        ("B. 5 or 6 cm", "B"),
        ("B: A cat", "B"),
        ("e", None),
        ("(e)", "E"),
        ("B/C", None),
        ("(B)(C)", None),
        ("B. or C.", None),
        ("B+1", None),
    ],
)
def test_chosen_letter(answer, letter):
    assert chosen_letter(answer) == letter
