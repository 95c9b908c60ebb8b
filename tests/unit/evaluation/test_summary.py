"""Numbers from hand-made records, worked out by hand."""

import pytest
from scipy.stats import ttest_rel

from trl_reasoning.evaluation import heldout_metrics, paired_change, per_problem_accuracy, summarize
from trl_reasoning.metrics import accuracy_interval


def record(problem, sample, status, tokens, *, difficulty=None, finish="stop", valid=True, thought=0):
    return {
        "id": problem,
        "sample": sample,
        "prompt": f"question {problem}",
        "solution": "1",
        "status": status,
        "tokens": tokens,
        "thought_tokens": thought,
        "finish_reason": finish,
        "valid_format": valid,
        "difficulty": difficulty,
    }


RECORDS = [
    record(0, 0, "right", 10, difficulty=3, thought=6),
    record(0, 1, "right", 20, difficulty=3, thought=10),
    record(1, 0, "right", 30, difficulty=5, thought=20, finish="stop_string"),
    record(1, 1, "wrong", 40, difficulty=5, thought=30),
    record(2, 0, "unparsed", 64, difficulty=5, thought=64, finish="length", valid=False),
    record(2, 1, "timed_out", 50, difficulty=5, thought=40),
    record(3, 0, "unreadable_gold", 1000, difficulty=3),
    record(3, 1, "unreadable_gold", 1000, difficulty=3),
]


def test_every_number_of_a_small_evaluation():
    summary = summarize(RECORDS)
    by_difficulty = summary.pop("by_difficulty")
    interval = summary.pop("interval")
    assert summary == pytest.approx(
        {
            "problems": 3,
            "samples": 6,
            "accuracy": 0.5,  # (1 + 1/2 + 0) / 3
            "mean_tokens": 214 / 6,
            "median_tokens": 35,
            "mean_thought_tokens": 170 / 6,
            "mean_right_tokens": 20,
            "mean_wrong_tokens": 154 / 3,
            "cut_share": 1 / 6,
            "format_share": 5 / 6,
            "wrong_share": 1 / 6,
            "unparsed_share": 1 / 6,
            "timed_out_share": 1 / 6,
            "unreadable_gold_share": 0.25,
            "unreadable_gold_problems": 1,
        }
    )
    assert interval == list(accuracy_interval([1, 0.5, 0], 2))
    assert list(by_difficulty) == ["3", "5"]
    assert by_difficulty["3"] == {
        "problems": 1,
        "samples": 2,
        "accuracy": 1.0,
        "interval": list(accuracy_interval([1], 2)),
        "mean_tokens": 15,
    }
    assert by_difficulty["5"]["accuracy"] == 0.25
    assert by_difficulty["5"]["mean_tokens"] == 46


def test_accuracy_is_divided_by_the_samples_that_are_there():
    assert per_problem_accuracy(RECORDS[:3]) == {0: 1.0, 1: 1.0}
    assert summarize(RECORDS[:4])["accuracy"] == 0.75


def test_difficulties_are_ordered_as_numbers():
    records = [record(index, 0, "right", 1, difficulty=level) for index, level in enumerate([10, 2, 2.5])]
    assert list(summarize(records)["by_difficulty"]) == ["2", "2.5", "10"]


def test_without_a_difficulty_there_is_no_split():
    assert summarize([record(0, 0, "right", 1)])["by_difficulty"] == {}


def test_only_unreadable_golds_leave_no_accuracy():
    summary = summarize(RECORDS[6:])
    assert (summary["accuracy"], summary["interval"], summary["mean_tokens"]) == (None, None, None)
    assert (summary["unreadable_gold_share"], summary["by_difficulty"]) == (1.0, {})


def test_heldout_metrics_are_the_summarys_numbers():
    summary, heldout = summarize(RECORDS), heldout_metrics(RECORDS)
    assert [heldout["accuracy_low"], heldout["accuracy_high"]] == summary["interval"]
    for key in ("accuracy", "mean_tokens", "mean_right_tokens", "mean_wrong_tokens", "cut_share"):
        assert heldout[key] == summary[key]


def test_heldout_metrics_leave_out_what_cannot_be_averaged():
    assert "mean_wrong_tokens" not in heldout_metrics(RECORDS[:2])


def test_the_paired_change_is_a_paired_t_interval():
    before = [record(index, 0, status, 1) for index, status in enumerate(["wrong", "wrong", "right", "wrong"])]
    after = [record(index, 0, status, 1) for index, status in enumerate(["right", "wrong", "right", "right"])]
    change = paired_change(before, after)
    expected = ttest_rel([1, 0, 1, 1], [0, 0, 1, 0]).confidence_interval(0.95)
    assert change is not None
    assert change["change"] == 0.5
    assert change["interval"] == pytest.approx([expected.low, expected.high])
    assert change["problems"] == 4


def test_other_problems_have_no_paired_change():
    after = [{**row, "prompt": "another question"} for row in RECORDS]
    assert paired_change(RECORDS, after) is None
    assert paired_change(RECORDS, RECORDS[:4]) is None
