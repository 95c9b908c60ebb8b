import pytest
from datasets import Dataset

from trl_reasoning.data import DataError, check_golds
from trl_reasoning.data.gold_check import GoldFailure


def golds(*values):
    rows = [{"prompt": "q", "solution": value} for value in values]
    return Dataset.from_list(rows, on_mixed_types="use_json")


def error_of(dataset, **options):
    with pytest.raises(DataError) as caught:
        check_golds(dataset, **options)
    return str(caught.value)


def test_a_gold_that_is_no_string_names_its_row():
    message = error_of(golds(2))  # b042
    for word in ("`solution`", "row 0", "string", "int 2", "columns: {solution: solution}"):
        assert word in message
    with pytest.raises(DataError, match=r"row 1.*float 0\.5"):
        check_golds(golds("x", 0.5))


def test_golds_that_verify():
    report = check_golds(golds("2", "-3", "3/4", "0.5", r"\frac{x}{2}", "(0,1]", "Evelyn", r"12\text{ cm}", "#### 7"))
    assert (report.rows, report.checked, report.failures, report.failing_share) == (9, 9, (), 0.0)
    assert report.summary() is None


def test_few_failing_golds_are_reported_and_many_are_an_error():
    dataset = golds(*["2"] * 98, None, "")
    report = check_golds(dataset)
    assert report.failures == (
        GoldFailure(98, None, "unreadable_gold", "no_gold"),
        GoldFailure(99, "", "unreadable_gold", "no_gold"),
    )
    assert report.failing_share == 0.02
    assert report.summary() == (
        "column `solution`: 2 of 100 golds do not verify against themselves (2.0%), so no answer to these rows "
        "scores; row 98 (no_gold): None; row 99 (no_gold): ''"
    )
    message = error_of(dataset, limit=0.01)
    assert "The limit is 1.0% (`max_failing_golds`)" in message


def test_a_gold_that_a_box_would_cut_fails():
    report = check_golds(golds("(1, 2) } {"), limit=1.0)
    assert [failure.row for failure in report.failures] == [0]


def test_the_kind_of_the_golds_decides():
    assert check_golds(golds("X", "B"), kind="choice").failures == ()
    assert check_golds(golds("Some longer answer in many words of text"), kind="text").failures == ()
    assert "2 of 2 golds" in error_of(golds("B", "C"), kind="number")
    assert "not what `kind: number` of the reward says" in error_of(golds("B", "C"), kind="number")


def test_an_empty_gold_column_names_the_column_that_holds_the_answers():
    rows = Dataset.from_list([{"prompt": "q", "solution": "", "label": "", "answer": "2", "target": "4"}] * 3)
    message = error_of(rows)
    for word in ("`solution` is empty", "column `answer` holds the answers (row 0: '2')", "{solution: answer}"):
        assert word in message
    assert "is empty. Rename with `columns:" in error_of(golds("", None))
    assert "is empty in some rows; leave them out" in error_of(golds("", "5"))


def test_worked_sentences_as_golds_name_the_marks():
    message = error_of(golds("First we count all of the sides, which gives five of them."))
    for word in ("row 0", "worked solutions", r"`#### 5`", "adapter"):
        assert word in message


def test_golds_that_lost_a_backslash_are_named():
    # A plain string literal turns the escape of \frac into one character.
    report = check_golds(golds("\frac{1}{2}", "5", r"\frac{1}{2}"), limit=1.0)
    assert [(failure.row, failure.rule) for failure in report.failures] == [(0, "control_character")]
    assert "control characters" in error_of(golds("\frac{1}{2}", "\times 3"))


def test_golds_of_a_large_set_are_read_evenly():
    report = check_golds(golds(*["", "5", "5"] * 3, ""), max_rows=4, limit=1.0)
    assert (report.rows, report.checked) == (10, 4)
    assert [failure.row for failure in report.failures] == [0, 3, 6, 9]


def test_the_gold_column_must_exist():
    with pytest.raises(DataError, match="no column `solution`"):
        check_golds(Dataset.from_list([{"prompt": "q"}]))
