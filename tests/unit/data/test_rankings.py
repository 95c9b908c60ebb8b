"""Rankings and labels of pairs: each error names the column and the row."""

import pytest
from datasets import Dataset

from trl_reasoning.data import DataError
from trl_reasoning.data.rankings import check_pair_labels, check_rankings


ASK = [{"role": "user", "content": "1+1?"}]
SAY = [{"role": "assistant", "content": "2"}]
TEXT = {"prompt": "1+1?", "replies": ["2", "3"], "scores": [1.0, 0.0]}
CHAT = {"prompt": ASK, "replies": [SAY, SAY], "scores": [1.0, 0.0]}


@pytest.mark.parametrize("row", [TEXT, CHAT], ids=["text", "messages"])
def test_good_rankings_pass(row):
    tied = {**row, "scores": [0.5, 0.5]}
    check_rankings(Dataset.from_list([row, tied]))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**TEXT, "prompt": ""}, "^column `prompt`, row 1: the prompt is empty"),
        ({**TEXT, "replies": ["2"], "scores": [1.0]}, "^column `replies`, row 1: a ranking needs at least 2"),
        ({**TEXT, "scores": [1.0]}, "^column `scores`, row 1: expected one score for each of the 2 replies, got 1"),
        ({**TEXT, "scores": None}, "^column `scores`, row 1: expected one score"),
        ({**TEXT, "scores": [1.0, float("nan")]}, "^column `scores`, row 1: expected finite numbers"),
        ({**TEXT, "scores": [1.0, None]}, "^column `scores`, row 1: expected finite numbers"),
        ({**TEXT, "replies": None}, "^column `replies`, row 1: expected a list of replies"),
        ({**TEXT, "replies": ["2", None]}, "^column `replies`, row 1, reply 1: expected plain text"),
    ],
)
def test_a_bad_row_of_text(row, message):
    with pytest.raises(DataError, match=message):
        check_rankings(Dataset.from_list([TEXT, row]))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**CHAT, "prompt": None}, "^column `prompt`, row 1: the prompt is empty"),
        ({**CHAT, "replies": [SAY, []]}, "^column `replies`, row 1, reply 1: expected a list of messages"),
        ({**CHAT, "replies": [SAY, ASK]}, "^column `replies`, row 1, reply 1: .*assistant's turn, got role 'user'"),
    ],
)
def test_a_bad_row_of_messages(row, message):
    with pytest.raises(DataError, match=message):
        check_rankings(Dataset.from_list([CHAT, row]))


def test_forms_have_to_agree():
    with pytest.raises(DataError, match="^column `replies`, row 0, reply 0: expected messages like the prompt"):
        check_rankings(Dataset.from_list([{**CHAT, "replies": ["2", "3"]}]))


@pytest.mark.parametrize("column", ["prompt", "replies", "scores"])
def test_a_missing_column(column):
    with pytest.raises(DataError, match=f"^no column `{column}`; rankings need"):
        check_rankings(Dataset.from_list([{key: value for key, value in TEXT.items() if key != column}]))


def test_rows_that_are_all_tied():
    with pytest.raises(DataError, match="^column `scores`: all replies are tied in each of the 2 rows"):
        check_rankings(Dataset.from_list([{**TEXT, "scores": [1.0, 1.0]}] * 2))


@pytest.mark.parametrize("column", ["margin", "preference"])
def test_labels_of_pairs_do_not_belong_to_rankings(column):
    with pytest.raises(DataError, match=f"^column `{column}` labels a pair"):
        check_rankings(Dataset.from_list([{**TEXT, column: 0.5}]))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("preference", 1.2, r"^column `preference`, row 1: .*in \[0, 1\], got 1.2"),
        ("preference", None, "^column `preference`, row 1: "),
        ("margin", float("inf"), "^column `margin`, row 1: expected a finite number, got inf"),
    ],
)
def test_a_bad_label(column, value, message):
    with pytest.raises(DataError, match=message):
        check_pair_labels(Dataset.from_dict({column: [0.5, value]}))


def test_good_labels_pass_and_two_kinds_do_not():
    check_pair_labels(Dataset.from_dict({"chosen": ["a"]}))
    check_pair_labels(Dataset.from_dict({"preference": [0.0, 0.5, 1.0]}))
    check_pair_labels(Dataset.from_dict({"margin": [-1.0, 2.0]}))
    with pytest.raises(DataError, match="^columns `margin` and `preference`"):
        check_pair_labels(Dataset.from_dict({"preference": [0.5], "margin": [1.0]}))
