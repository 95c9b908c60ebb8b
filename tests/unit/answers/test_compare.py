import pytest

from trl_reasoning.answers.compare import Items, compare, is_words, split_items


@pytest.mark.parametrize(
    ("answer", "gold", "is_equal", "rule"),
    [
        ("5", "5", True, "string"),
        ("5.0", "5", True, "number"),
        ("6", "5", False, "number"),
        ("35", r"35\%", True, "percent"),
        ("0.35", r"35\%", True, "percent"),
        (r"35\%", "0.35", True, "percent"),
        (r"0.35\%", "35", False, "percent"),
        (r"35\%", r"0.35\%", False, "number"),
        ("12 cm", "12 mm", False, "unit"),
        ("12 cm", "12", True, "string"),
        ("5+4", "9", False, "unevaluated"),
        (r"\frac15+\frac25", r"\frac{3}{5}", True, "number"),
        ("5, 6", "5", False, "list"),
        ("6, 5", "5, 6", True, "list"),
        ("5, 5", "5, 6", False, "list"),
        ("(6, 5)", "(5, 6)", False, "list"),
        ("(5, 12/2)", "(5, 6)", True, "list"),
        ("[5, 6)", "(5, 6)", False, "list"),
        ("m=4,5", "m=5,4", True, "list"),
        ("x=2, y=3", "y=3, x=2", True, "list"),
        ("x=3, y=2", "y=3, x=2", False, "list"),
        ("a", "B", False, "choice"),
        ("b", "B", True, "choice"),
        ("Everest", "E", False, "choice"),
        ("new york", "New York", True, "text"),
        ("four", "4", False, "string"),
        (r"1,2,\ldots", r"1,3,\ldots", False, "list"),
        ("2x+1", "1+2x", True, "math"),
    ],
)
def test_compare(answer, gold, is_equal, rule):
    comparison = compare(answer, gold)
    assert (comparison.is_equal, comparison.rule) == (is_equal, rule)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("5", None),
        ("(5)", None),
        ("(1)(2)", None),
        ("f(x, y)", None),
        (r"(0,1)\cup(2,3)", None),
        ("1, 2 and 3", Items(["1", "2", "3"])),
        ("1, 2, and 3", Items(["1", "2", "3"])),
        ("1 or 2", Items(["1", "2"])),
        ("(1, 2), (3, 4)", Items(["(1, 2)", "(3, 4)"])),
        ("[0, 1)", Items(["0", "1"], "[)")),
        (r"\{5\}", Items(["5"])),
        (r"\pm 45", Items(["45", "- 45"])),
    ],
)
def test_split_items(text, items):
    assert split_items(text) == items


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes", True),
        ("Mary Ann O'Hara", True),
        ("四", True),
        ("x", False),
        ("x+y", False),
        ("5 cm", False),
        ("pi", False),
    ],
)
def test_is_words(text, expected):
    assert is_words(text) is expected
