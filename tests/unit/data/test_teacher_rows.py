"""Stored log-probs are refused with the column and the row where lengths or numbers cannot be right."""

import numpy
import pytest
from datasets import Dataset

from trl_reasoning.data import DataError, check_columns
from trl_reasoning.data.teacher_rows import check_teacher_rows


GOOD = {
    "input_ids": [5, 6, 7],
    "labels": [-100, 6, 7],
    "top_ids": [[6, 1], [7, 2]],
    "top_logps": [[-0.1, -3.0], [-0.2, -2.0]],
}


def rows(**changes) -> Dataset:
    """A good row, and one with changes."""
    return Dataset.from_list([GOOD, {**GOOD, **changes}])


def test_good_rows_pass():
    check_teacher_rows(rows())
    check_teacher_rows(rows(input_ids=[1, 2], labels=[-100, 2], top_ids=[[2, 0]], top_logps=[[-0.5, -1.0]]))
    check_columns(rows(), "logits")
    check_teacher_rows(Dataset.from_list([{**GOOD, "rest_logps": [-3.1, float("-inf")]}]))


@pytest.mark.parametrize("rest", [[-3.1], [-3.1, float("nan")], [-3.1, 0.5]])
def test_a_bad_rest_is_named(rest):
    with pytest.raises(DataError, match="`rest_logps`, row 0: expected one log-probability for each of the 2 tokens"):
        check_teacher_rows(Dataset.from_list([{**GOOD, "rest_logps": rest}]))


def test_rounding_to_half_precision_passes():
    """Five times a fifth is a little more than 1 in half precision."""
    logps = numpy.log(numpy.full((2, 5), 0.2)).astype(numpy.float16)
    assert numpy.exp(logps.astype(numpy.float32)).sum(axis=1).max() > 1.0
    row = {**GOOD, "top_ids": [[1, 2, 3, 4, 5]] * 2, "top_logps": logps.tolist()}
    check_teacher_rows(Dataset.from_list([row]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [-100, 6]}, "`labels`, row 1: 2 labels for 3 tokens"),
        ({"labels": [5, 6, -100]}, "`labels`, row 1: the first token follows no other"),
        ({"labels": [-100, -100, -100]}, "`labels`, row 1: no token is in the loss"),
        ({"labels": [-100, -100, 7]}, "`top_ids`, row 1: 2 places for 1 tokens in the loss"),
        ({"top_logps": [[-0.1, -3.0]]}, "`top_logps`, row 1: 1 places for 2 tokens in the loss"),
        ({"top_ids": [[6], [7]]}, "`top_ids`, row 1: 1 tokens a place, and 2 before it"),
        ({"top_ids": [[6, 1], [7]]}, "`top_ids`, row 1: the places have different numbers of tokens"),
        ({"top_logps": [[-0.1, -0.2], [-0.2, -2.0]]}, "`top_logps`, row 1: expected log-probabilities.*got 1.72"),
        ({"top_logps": [[float("nan"), -3.0], [-0.2, -2.0]]}, "`top_logps`, row 1: expected log-probabilities"),
    ],
)
def test_bad_rows_are_named(changes, message):
    with pytest.raises(DataError, match=message):
        check_teacher_rows(rows(**changes))


def test_a_missing_column_is_named():
    with pytest.raises(DataError, match="no column `top_logps`.*teacher_model_name_or_path"):
        check_teacher_rows(rows().remove_columns("top_logps"))
