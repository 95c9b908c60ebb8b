"""The adapters on the real files."""

import re

import pytest

from trl_reasoning.data import check_columns, check_golds, load_source


NUMBER = re.compile(r"-?\d+(\.\d+)?")


@pytest.mark.parametrize(
    ("file", "adapter", "rows"),
    [("gsm8k_train.jsonl", "gsm8k", 7473), ("gsm8k_test.jsonl", "gsm8k", 1319), ("svamp.jsonl", "svamp", 1000)],
)
def test_word_problems_have_numbers_as_golds(file, adapter, rows, shared_dir):
    dataset = load_source({"path": str(shared_dir / "data" / file), "adapter": adapter})
    assert len(dataset) == rows
    assert [gold for gold in dataset["solution"] if not NUMBER.fullmatch(gold)] == []
    assert check_golds(dataset, max_rows=None).failures == ()
    assert all(question.strip() for question in dataset["question"])


@pytest.mark.parametrize(
    ("file", "rows", "failing"),
    [
        ("amc23", 40, []),
        ("aime24", 30, []),
        ("cmath", 600, []),
        ("minerva_math", 272, []),
        # The answer to row 73 is a sentence: a function "where b is an arbitrary integer, and ...".
        ("olympiadbench", 675, [73]),
    ],
)
def test_golds_of_problem_sets_verify_against_themselves(file, rows, failing, shared_dir):
    dataset = load_source({"path": str(shared_dir / "data" / f"{file}.jsonl"), "adapter": file})
    report = check_golds(dataset, max_rows=None)
    assert report.checked == rows
    assert [failure.row for failure in report.failures] == failing


def test_gsm8k_first_row(shared_dir):
    row = load_source({"path": str(shared_dir / "data" / "gsm8k_train.jsonl"), "adapter": "gsm8k"})[0]
    assert row["question"].startswith("Natalia sold clips")
    assert row["rationale"].endswith("72 clips altogether in April and May.")
    assert "<<" not in row["rationale"]
    assert row["solution"] == "72"


def test_hh_rlhf_pairs(shared_dir):
    dataset = load_source({"path": str(shared_dir / "data" / "hh_harmless_test.jsonl.gz"), "adapter": "hh_rlhf"})
    assert len(dataset) == 2312
    check_columns(dataset, "preference")
    for row in dataset.to_list():
        roles = [message["role"] for message in row["prompt"]]
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
        assert [message["role"] for message in row["chosen"] + row["rejected"]] == ["assistant", "assistant"]
        assert row["chosen"] != row["rejected"]


def test_boxed_solutions_and_renamed_golds(shared_dir):
    boxed = load_source({"path": str(shared_dir / "data" / "minerva_math.jsonl"), "adapter": "math"})
    assert len(boxed) == 272
    assert boxed[0]["solution"] == "1.6"
    renamed = load_source({"path": str(shared_dir / "data" / "amc23.jsonl"), "columns": {"solution": "answer"}})
    assert len(renamed) == 40
    assert renamed[0]["solution"] == "27"
