import pytest

from trl_reasoning.answers.normalize import Value, braced_end, clean, read_value, strip_braces
from trl_reasoning.answers.units import canonical_unit, is_known_unit, is_unit_text


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        (r"$\left(1,\,\dfrac{3}{4}\right)$.", r"(1, \frac{3}{4})"),
        (r"\mathbf{-4}", "-4"),
        (r"\textbf{\boxed{\frac12}}", r"\frac12"),
        ("**42**", "42"),
        ("−５", "-5"),
        (r"10{,}080", "10080"),
        (r"10\,080", "10080"),
        ("343,512", "343512"),
        ("343, 512", "343, 512"),
        ("(343,512)", "(343,512)"),
        ("{{7}}", "7"),
        ("pi/6", r"\pi/6"),
        (r"6\sqrt(3)", r"6\sqrt{3}"),
        (r"x\leq 2", r"x\le 2"),
        (r"\leftarrow", r"\leftarrow"),
        ("1, 2, ...", r"1, 2, \ldots"),
    ],
)
def test_clean(raw, cleaned):
    assert clean(raw) == cleaned


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (r"12\text{ cm}", Value("12", "cm")),
        ("12ft", Value("12", "ft")),
        (r"6.5 \mathrm{~m}", Value("6.5", "m")),
        (r"10 \mathrm{~cm}^{2}", Value("10", "cm^2")),
        ("10 square centimeters", Value("10", "cm^2")),
        (r"90^\circ", Value("90", "degree")),
        ("90 degrees", Value("90", "degree")),
        (r"\pi\text{ rad}", Value(r"\pi", "rad")),
        (r"\$1,250", Value("1250", "dollar")),
        ("-€5", Value("-5", "euro")),
        ("18 eggs", Value("18", "egg")),
        ("60 km/h", Value("60", "km/h")),
        (r"35\text{ percent}", Value("35", percent=True)),
        ("35 %", Value("35", percent=True)),
        # no units
        ("3 million", Value("3 million")),
        ("3m", Value("3m")),
        (r"\infty", Value(r"\infty")),
        (r"n \text{ even}", Value("n even")),
        (r"\text{ft}", Value("ft")),
    ],
)
def test_read_value(raw, value):
    assert read_value(raw) == value


def test_braces():
    assert strip_braces("{{1}{2}}") == "{1}{2}"
    assert strip_braces("{1}{2}") == "{1}{2}"
    assert strip_braces("{" * 3000 + "1" + "}" * 3000) == "1"
    assert strip_braces(r"{x\}") == r"{x\}"
    assert braced_end(r"{a\}{b}}c", 0) == 8
    assert braced_end("{a", 0) is None


def test_units():
    assert canonical_unit("centimetres") == canonical_unit("cm")
    assert canonical_unit("cubic feet") == "ft^3"
    assert canonical_unit("minutes") == "min"
    assert is_known_unit("m/s") and not is_known_unit("eggs")
    assert is_unit_text("eggs per day") and not is_unit_text("million") and not is_unit_text("百万")
