"""Win rates by hand, and the judges."""

import pytest

from trl_reasoning.errors import UserError
from trl_reasoning.evaluation import JUDGES, win_rate
from trl_reasoning.evaluation.win_rate import RewardModelJudge


RIGHT, WRONG = ("right", 10), ("wrong", 10)


def records(*problems):
    return [
        {
            "id": problem,
            "sample": sample,
            "prompt": f"q{problem}",
            "solution": "1",
            "status": status,
            "tokens": tokens,
            "completion": f"{status} {tokens}",
        }
        for problem, samples in enumerate(problems)
        for sample, (status, tokens) in enumerate(samples)
    ]


def test_the_verifier_by_hand():
    ours = records([RIGHT, WRONG], [RIGHT], [WRONG])
    theirs = records([WRONG, WRONG], [RIGHT], [RIGHT])
    found = win_rate(ours, theirs, JUDGES["verifier"]())
    # Problem 0: two wins and two ties, 0.75; problem 1 a tie, 0.5; problem 2 a loss.
    assert found["rate"] == pytest.approx(1.25 / 3)
    assert (found["won"], found["tied"], found["lost"]) == (pytest.approx(0.5 / 3), pytest.approx(1.5 / 3), 1 / 3)
    # Standard deviation of 0.75, 0.5, 0: 0.38188; standard error 0.22048; t(0.975, 2) = 4.3027: beyond [0, 1].
    assert found["interval"] == [0.0, 1.0]
    assert found["problems"] == 3
    mirrored = win_rate(theirs, ours, JUDGES["verifier"]())
    assert mirrored["rate"] == pytest.approx(1 - found["rate"])


def test_of_two_right_answers_the_shorter_wins():
    judge = JUDGES["shorter_right"]()
    ours = records([("right", 8)], [("right", 9)], [("wrong", 3)], [("wrong", 3)], [("right", 40)])
    theirs = records([("right", 9)], [("right", 9)], [("wrong", 9)], [("right", 9)], [("wrong", 3)])
    values = [win_rate([first], [second], judge)["rate"] for first, second in zip(ours, theirs, strict=True)]
    assert values == [1.0, 0.5, 0.5, 0.0, 1.0]


def test_a_judge_that_favours_the_first_favours_nobody():
    found = win_rate(records([RIGHT]), records([WRONG]), lambda prompt, first, second: 1.0)
    assert (found["rate"], found["tied"]) == (0.5, 1.0)


def test_a_judge_sees_the_prompt_and_both_records():
    seen = []

    def judge(prompt, first, second):
        seen.append((prompt, first["completion"], second["completion"]))
        return 0.75

    win_rate(records([RIGHT]), records([WRONG]), judge)
    assert seen == [("q0", "right 10", "wrong 10"), ("q0", "wrong 10", "right 10")]


def test_a_reward_model_compares_scores_and_reads_each_completion_once(monkeypatch):
    judge = RewardModelJudge("some/hub-id")
    calls = []

    def score(prompts, completions, completion_ids, thought_opened):
        calls.append(list(completions))
        return [None if text.startswith("wrong") else float(text.split()[1]) for text in completions]

    monkeypatch.setattr(judge, "scorer", score)
    ours = records([("right", 5), ("right", 5)], [("right", 2)], [("wrong", 1)])
    theirs = records([("right", 5)], [("right", 1)], [("right", 7)])
    found = win_rate(ours, theirs, judge)
    assert found["rate"] == pytest.approx((0.5 + 1.0 + 0.5) / 3)  # no score: a tie
    assert calls == [["right 5", "right 2", "wrong 1", "right 1", "right 7"]]


def test_a_completion_after_an_opened_thought_is_another_one(monkeypatch):
    judge = RewardModelJudge("some/hub-id")

    def score(prompts, completions, completion_ids, thought_opened):
        return [0.0 if opened else 1.0 for opened in thought_opened]

    monkeypatch.setattr(judge, "scorer", score)
    (ours,), (theirs,) = records([RIGHT]), records([RIGHT])
    assert win_rate([{**ours, "thought_opened": True}], [{**theirs, "thought_opened": False}], judge)["rate"] == 0.0


def test_problems_without_a_readable_gold_are_left_out():
    unread = ("unreadable_gold", 5)
    found = win_rate(records([RIGHT], [unread]), records([WRONG], [unread]), JUDGES["verifier"]())
    assert (found["rate"], found["problems"]) == (1.0, 1)
    empty = win_rate(records([unread]), records([unread]), JUDGES["verifier"]())
    assert (empty["rate"], empty["interval"], empty["problems"]) == (None, None, 0)


def test_other_problems_and_wild_judgements_are_refused():
    with pytest.raises(UserError, match="against: the other records are of other problems"):
        win_rate(records([RIGHT]), records([RIGHT], [RIGHT]), JUDGES["verifier"]())
    with pytest.raises(UserError, match=r"judge: expected 1 \(the first is better\), 0 or 0.5, got 2"):
        win_rate(records([RIGHT]), records([RIGHT]), lambda prompt, first, second: 2)
