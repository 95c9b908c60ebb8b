"""Intervals, inequalities, lists and matrices."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trl_reasoning.answers import verify
from trl_reasoning.answers.intervals import Piece, is_same_set, read_set
from trl_reasoning.answers.items import Items, split_items
from trl_reasoning.answers.matrices import is_same_matrix, read_matrix, vector_of


def is_same_text(first, second):
    return first == second


@pytest.mark.parametrize(
    ("text", "name", "pieces"),
    [
        ("(0,1]", "", [Piece("0", "1", False, True)]),
        (r"x\ge 2", "x", [Piece("2", r"\infty", True, False)]),
        (r"2\le x", "x", [Piece("2", r"\infty", True, False)]),
        ("5>x>1", "x", [Piece("1", "5", False, False)]),
        ("y<x", "x", [Piece("y", r"\infty", False, False)]),
        (r"t\in(0,1)", "t", [Piece("0", "1", False, False)]),
        (r"(0,1)\cup\{3\}", "", [Piece("0", "1", False, False), Piece("3", "3", True, True)]),
        (r"x\ne 4", "x", [Piece(r"-\infty", "4", False, False), Piece("4", r"\infty", False, False)]),
        (r"\mathbb{R}", "", [Piece(r"-\infty", r"\infty", False, False)]),
    ],
)
def test_read_set(text, name, pieces):
    assert read_set(text) == (name, pieces)


@pytest.mark.parametrize("text", ["5", "x", "(1,2,3)", "1,2", r"[0,\infty]", "x<y<z<1", "x+y>1", "x<1 or y>2", "x=5"])
def test_no_sets(text):
    assert read_set(text) is None


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        (r"(0,1]\cup(1,2)", "(0,2)", True),
        (r"(0,1)\cup(1,2)", "(0,2)", False),
        (r"(2,3)\cup(0,1)", r"(0,1)\cup(2,3)", True),
        (r"[0,1]\cup[1/2,2]", "[0,2]", True),
        (r"(0,3)\cup(1,2)", "(0,3)", True),
        (r"(0,1)\cup\{1\}", "(0,1]", True),
        (r"(0,a)\cup(b,1)", r"(b,1)\cup(0,a)", True),
        (r"(0,a)\cup(b,1)", r"(0,a)", False),
        (r"(0,a]", r"(0,a)", False),
    ],
)
def test_is_same_set(first, second, is_same):
    sets = read_set(first), read_set(second)
    assert sets[0] and sets[1]
    assert is_same_set(sets[0][1], sets[1][1], is_same_text) is is_same


ENDS = st.integers(-9, 9)


@settings(max_examples=150, deadline=None)
@given(low=ENDS, width=st.integers(1, 5), brackets=st.tuples(st.sampled_from("(["), st.sampled_from(")]")))
def test_an_interval_is_its_inequality_and_no_other(low, width, brackets):
    high = low + width
    interval = f"{brackets[0]}{low},{high}{brackets[1]}"
    left, right = (r"\le" if bracket in "[]" else "<" for bracket in brackets)
    assert verify(rf"\boxed{{{low} {left} x {right} {high}}}", interval).is_right
    for wrong in (f"{low} {left} x {right} {high + 1}", f"{low - 1} {left} x {right} {high}"):
        assert not verify(rf"\boxed{{{wrong}}}", interval).is_right
    swapped = "<" if left == r"\le" else r"\le"
    assert not verify(rf"\boxed{{{low} {swapped} x {right} {high}}}", interval).is_right


@settings(max_examples=100, deadline=None)
@given(values=st.lists(st.integers(-99, 99), min_size=2, max_size=6), seed=st.randoms())
def test_lists_have_no_order_and_no_spare_values(values, seed):
    gold = ", ".join(map(str, values))
    mixed = list(values)
    seed.shuffle(mixed)
    assert verify(rf"\boxed{{{', '.join(map(str, mixed))}}}", gold).is_right
    for wrong in (mixed[1:], [*mixed, 5], [mixed[0] + 1, *mixed[1:]]):
        assert not verify(rf"\boxed{{{', '.join(map(str, wrong))}}}", gold).is_right
    if mixed != values:
        assert not verify(rf"\boxed{{({', '.join(map(str, mixed))})}}", f"({gold})").is_right


def test_items_of_unusual_marks():
    assert split_items(r"\emptyset") == Items([])
    assert split_items(r"p \lor q") == Items(["p", "q"])
    assert split_items(r"\{1\}\cup\{2\}") is None
    assert split_items(r"p \land q") is None


def test_matrices():
    assert read_matrix(r"\begin{bmatrix} a & \frac{1}{2} \\ 3 & 4 \end{bmatrix}") == [
        ["a", r"\frac{1}{2}"],
        ["3", "4"],
    ]
    assert read_matrix(r"\begin{vmatrix}1&2\\3&4\end{vmatrix}") is None
    assert read_matrix(r"2\begin{pmatrix}1\\2\end{pmatrix}") is None
    assert read_matrix(r"\begin{pmatrix}1\end{bmatrix}") is None
    assert is_same_matrix([["1", "2"]], [["1", "2"]], is_same_text)
    assert not is_same_matrix([["1", "2"]], [["1"], ["2"]], is_same_text)
    assert not is_same_matrix([["1"]], [["1"], ["2"]], is_same_text)
    assert [vector_of(matrix) for matrix in ([["1", "2"]], [["1"], ["2"]], [["1", "2"], ["3", "4"]])] == [
        ["1", "2"],
        ["1", "2"],
        None,
    ]
