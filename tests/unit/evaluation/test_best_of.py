"""What is chosen among samples: votes and best scores on worked examples."""

import pytest

from trl_reasoning.evaluation import best_of_accuracy, majority_of_n
from trl_reasoning.rewards.steps import StepScore


def records(problem: int, answers: list, gold: str, status: str | None = None) -> list[dict]:
    return [
        {
            "id": problem, "sample": sample, "prompt": "?", "completion": answer or "", "thought_opened": False,
            "extracted": answer, "status": status or ("right" if answer == gold else "wrong"),
        }
        for sample, answer in enumerate(answers)
    ]  # fmt: skip


def longest(prompts, texts, **columns):
    """The length of the answer is its score."""
    return [[StepScore(len(text), float(len(text)))] for text in texts]


SAMPLES = records(3, ["18", "18", "18", "26", "14"], "18") + records(1, ["7", None, "7", "100", None], "100")


def test_the_most_frequent_answer():
    assert [(record["id"], record["extracted"]) for record in majority_of_n(SAMPLES)] == [(1, "7"), (3, "18")]
    tied = records(0, [None, "5", "6", "6", "5"], "5")
    assert majority_of_n(tied)[0]["sample"] == 1
    assert majority_of_n(records(0, [None, None], "5"))[0]["sample"] == 0


def test_accuracy_by_each_choice():
    """By length: problem 1 gives 100 (right); problem 3 the first of equals, 18 (right)."""
    found = best_of_accuracy(SAMPLES, longest)
    assert (found["samples"], found["accuracy"], found["majority"]) == (5, 1.0, 0.5)
    assert (found["mean"], found["any_right"]) == (pytest.approx(4 / 10), 1.0)
    # Wilson's interval of 2 of 2, and of 1 of 2.
    assert found["interval"] == pytest.approx((0.342380, 1.0), abs=1e-5)
    assert found["majority_interval"] == pytest.approx((0.094531, 0.905469), abs=1e-5)


def test_problems_that_cannot_be_judged():
    unreadable = records(5, ["1", "2"], "", status="unreadable_gold")
    assert best_of_accuracy(SAMPLES + unreadable, longest) == best_of_accuracy(SAMPLES, longest)
    alone = best_of_accuracy(unreadable, longest)
    assert alone["samples"] == 0 and alone["accuracy"] is None and alone["majority_interval"] is None
