"""Preference pairs: the shared prompt, forms, and pairs that prefer nothing."""

import pytest
from datasets import Dataset

from trl_reasoning.data import DataError, check_columns, split_pairs
from trl_reasoning.data.pairs import check_pairs, identical_pairs


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def test_prompt_is_what_both_dialogues_begin_with() -> None:
    shared = [user("1"), assistant("2"), user("3")]
    row = {"chosen": [*shared, assistant("good")], "rejected": [*shared, assistant("bad")], "margin": 0.5}
    split = split_pairs(Dataset.from_list([row]))
    assert split[0] == {
        "prompt": shared,
        "chosen": [assistant("good")],
        "rejected": [assistant("bad")],
        "margin": 0.5,
    }
    check_columns(split, "preference")


def test_replies_of_several_turns_stay_whole() -> None:
    row = {
        "chosen": [user("1"), assistant("a"), user("2"), assistant("b")],
        "rejected": [user("1"), assistant("x")],
    }
    split = split_pairs(Dataset.from_list([row]))
    assert split[0]["prompt"] == [user("1")]
    assert split[0]["chosen"] == [assistant("a"), user("2"), assistant("b")]


@pytest.mark.parametrize("earlier", [[{"role": "system", "content": "s"}], [user("1"), assistant("2")]])
def test_a_question_is_never_part_of_a_reply(earlier) -> None:
    row = {"chosen": [*earlier, user("a"), assistant("b")], "rejected": [*earlier, user("c"), assistant("d")]}
    with pytest.raises(DataError, match=f"row 0: `chosen`: turn {len(earlier)} .*differs, and its role is 'user'"):
        split_pairs(Dataset.from_list([row]))


def test_a_reply_is_never_taken_for_the_prompt() -> None:
    dialogue = [user("1"), assistant("same")]
    split = split_pairs(Dataset.from_list([{"chosen": dialogue, "rejected": dialogue}]))
    assert split[0]["prompt"] == [user("1")]
    assert identical_pairs(split) == [0]


def test_rows_with_a_prompt_or_of_text_are_left_alone() -> None:
    rows = Dataset.from_list([{"prompt": "q", "chosen": "a", "rejected": "b"}])
    assert split_pairs(rows) is rows
    texts = Dataset.from_list([{"chosen": "qa", "rejected": "qb"}])
    assert split_pairs(texts) is texts
    with pytest.raises(DataError, match="no column `prompt`.*hh_rlhf"):
        check_columns(texts, "reward")


def test_dialogues_that_share_nothing() -> None:
    rows = Dataset.from_list([{"chosen": [user("1"), assistant("a")], "rejected": [user("2"), assistant("b")]}])
    with pytest.raises(DataError, match="row 0: .*share none"):
        split_pairs(rows)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"prompt": "q", "rejected": "b"}], "no column `chosen`"),
        (
            [{"prompt": [user("q")], "chosen": "a", "rejected": "b"}],
            "row 0: `prompt` is conversational, `chosen` is pl",
        ),
        (
            [{"prompt": "q", "chosen": "a", "rejected": "b"}, {"prompt": "", "chosen": "a", "rejected": "b"}],
            "row 1: the",
        ),
        (
            [{"prompt": "q", "chosen": "a", "rejected": None}],
            "row 0: `prompt` is plain text.*`rejected` is conversational",
        ),
        (
            [{"prompt": [user("q")], "chosen": [assistant("a")], "rejected": [user("b")]}],
            "`rejected`, row 0: a reply ends",
        ),
        (
            [{"prompt": [user("q")], "chosen": [assistant("a")], "rejected": []}],
            "`rejected`, row 0: expected a list of",
        ),
    ],
)
def test_bad_rows_are_named(rows, message) -> None:
    with pytest.raises(DataError, match=message):
        check_columns(Dataset.from_list(rows), "preference")


def test_no_rows() -> None:
    empty = Dataset.from_list([{"prompt": "q", "chosen": "a", "rejected": "b"}]).select([])
    with pytest.raises(DataError, match="the data set is empty"):
        check_pairs(empty)


def test_few_identical_pairs_pass_and_many_do_not() -> None:
    good = [{"prompt": "q", "chosen": str(index), "rejected": "no"} for index in range(98)]
    same = {"prompt": "q", "chosen": "x", "rejected": "x"}
    check_columns(Dataset.from_list([*good, same]), "preference")  # 1 of 99: 1 %
    with pytest.raises(DataError, match="identical in 3 of 101 rows, the first is row 98"):
        check_columns(Dataset.from_list([*good, same, same, same]), "preference")


def test_empty_replies_are_rows() -> None:
    check_columns(Dataset.from_list([{"prompt": "q", "chosen": "", "rejected": "b"}]), "preference")
