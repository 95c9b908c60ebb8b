import math

import pytest
from datasets import Dataset

from trl_reasoning.data import DataError, read_difficulties


def test_numbers_are_read_in_order():
    assert read_difficulties(Dataset.from_dict({"level": [3, 1, 2]}), "level") == [3.0, 1.0, 2.0]
    assert read_difficulties(Dataset.from_dict({"rate": [0.25, 1.0]}), "rate") == [0.25, 1.0]


@pytest.mark.parametrize(
    ("values", "row", "shown"),
    [
        ([1.0, None], 1, "None"),
        (["1", "2"], 0, "'1'"),
        ([True, False], 0, "True"),
        ([1.0, 2.0, math.nan], 2, "nan"),
        ([1.0, math.inf], 1, "inf"),
        ([[1.0], [2.0]], 0, r"\[1.0\]"),
    ],
)
def test_the_first_row_without_a_number_is_named(values, row, shown):
    with pytest.raises(DataError, match=f"^difficulty_column: column `level`, row {row}: expected .* got {shown}"):
        read_difficulties(Dataset.from_dict({"level": values}), "level")


def test_a_missing_column_is_named():
    with pytest.raises(DataError, match="no column `levle`; did you mean 'level'.; found: prompt, level"):
        read_difficulties(Dataset.from_dict({"prompt": ["q"], "level": [1]}), "levle")
