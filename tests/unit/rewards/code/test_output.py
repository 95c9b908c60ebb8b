import pytest

from trl_reasoning.rewards.code import is_same_output


@pytest.mark.parametrize(
    ("printed", "expected", "is_same"),
    [
        ("42\n", "42", True),
        ("42", "42\n\n", True),
        ("1 2  \n3\t\n", "1 2\n3", True),
        ("1\r\n2\r\n", "1\n2\n", True),
        ("", "", True),
        ("", "0", False),
        (" 42", "42", False),
        ("1\n\n2", "1\n2", False),
        ("1  2", "1 2", False),
        ("YES", "Yes", False),
        ("1.0", "1", False),
        ("41\r42", "42", False),
        ("42\x00", "42", False),
    ],
)
def test_blanks_at_the_ends_alone_do_not_count(printed, expected, is_same):
    assert is_same_output(printed, expected) is is_same


@pytest.mark.parametrize(
    ("printed", "expected", "is_same"),
    [
        ("0.3333333", "0.333333333333", True),
        ("x 1.0  2", "x 1 2.0000001", True),
        ("1e-7", "0", True),
        ("1000000.5", "1000000", True),
        ("0.333", "0.3333333", False),
        ("1 2", "1", False),
        ("1\n2", "1 2", False),
        ("nan", "0", False),
        ("inf", "1", False),
        ("1e999", "1e998", False),
        ("1_0", "10", False),
        ("x", "y", False),
    ],
)
def test_numbers_within_the_tolerance_are_equal(printed, expected, is_same):
    assert is_same_output(printed, expected, tolerance=1e-6) is is_same
