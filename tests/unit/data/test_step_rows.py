"""Step-labelled rows: what is taken, and errors that name column and row."""

import pytest
from datasets import Dataset

from trl_reasoning.data import DataError
from trl_reasoning.data.step_rows import as_step_rows, check_step_row, check_step_rows


ROW = {"prompt": "1+1?", "steps": ["one and one", "is 2"], "labels": [1.0, 0.25]}
CHAT = [{"role": "user", "content": "1+1?"}]


@pytest.mark.parametrize(
    "row",
    [
        ROW,
        {**ROW, "prompt": CHAT},
        {**ROW, "labels": [True, False]},
        {**ROW, "labels": [None, 1.0]},
        {**ROW, "solution": "2"},
    ],
    ids=["text", "messages", "bools", "one label missing", "solution"],
)
def test_good_rows(row):
    check_step_rows(Dataset.from_list([row] * 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": ""}, "column `prompt`, row 1: expected a text or a list of messages, got ''"),
        ({"steps": []}, "column `steps`, row 1: expected a list of texts, at least one"),
        ({"steps": ["one", " \n"]}, r"column `steps`, row 1: step 1 should be a text that is not empty, got ' \\n'"),
        ({"labels": [1.0]}, "column `labels`, row 1: expected one label for each of the 2 steps, got 1"),
        ({"labels": None}, "column `labels`, row 1: expected one label for each of the 2 steps, got None"),
        ({"labels": [1.0, 1.5]}, r"column `labels`, row 1: the label of step 1 should be true, false or .* got 1.5"),
        ({"labels": [-0.1, 1.0]}, "column `labels`, row 1: the label of step 0 .* got -0.1"),
        ({"labels": [float("nan"), 1.0]}, "column `labels`, row 1: the label of step 0 .* got nan"),
    ],
)
def test_bad_rows(change, message):
    with pytest.raises(DataError, match=message):
        check_step_rows(Dataset.from_list([ROW, {**ROW, **change}]))


def test_labels_of_another_kind():
    with pytest.raises(DataError, match=r"column `labels`, row 3: the label of step 0 .* got '\+'"):
        check_step_row({**ROW, "labels": ["+", "-"]}, 3)


def test_messages_without_content():
    with pytest.raises(DataError, match="column `prompt`, row 0: a message needs the keys role and content"):
        check_step_rows(Dataset.from_list([{**ROW, "prompt": [{"role": "user"}]}]))


def test_forms_that_differ():
    with pytest.raises(DataError, match="column `prompt`, row 1: expected messages as in row 0"):
        check_step_rows(_Rows([{**ROW, "prompt": CHAT}, ROW]))


class _Rows(list):
    """Rows that are read one by one, of more than one form."""

    column_names = list(ROW)

    def select_columns(self, names):
        return self


def test_missing_columns():
    with pytest.raises(DataError, match=r"no column `labels`, .*found: prompt, steps.*`columns: {labels: <their"):
        check_step_rows(Dataset.from_list([ROW]).remove_columns("labels"))


def test_no_label_at_all():
    with pytest.raises(DataError, match="column `labels`: no step has a label"):
        check_step_rows(Dataset.from_list([{**ROW, "labels": [None, None]}]))


def test_name_of_the_steps_in_trl():
    rows = Dataset.from_list([ROW]).rename_column("steps", "completions")
    assert as_step_rows(rows)[0] == ROW
    other = rows.remove_columns("labels")
    assert as_step_rows(other).column_names == ["prompt", "completions"]
