"""`builtin:chain_steps`: its labels are those of the checker, and of every prefix."""

import pytest

from trl_reasoning.builtin import make_chain_steps_dataset
from trl_reasoning.builtin.chain import split_of
from trl_reasoning.data.step_rows import check_step_rows
from trl_reasoning.errors import UserError
from trl_reasoning.rewards.steps import make_chain_step_reward


def test_labels_of_steps_are_those_of_the_checker():
    rows = make_chain_steps_dataset(size=100, labels="step")
    check_step_rows(rows)
    reward = make_chain_step_reward()
    for row in rows:
        text = "<think>" + "\n".join(row["steps"][:-1]) + "</think>" + row["steps"][-1]
        (scores,) = reward([""], [text], question=[row["question"]])
        assert [score.score for score in scores] == row["labels"]
        assert len(row["steps"]) == row["difficulty"]


def test_labels_so_far():
    steps = make_chain_steps_dataset(size=200, labels="step")
    so_far = make_chain_steps_dataset(size=200)
    for one, other in zip(steps, so_far, strict=True):
        assert one["steps"] == other["steps"]
        first_wrong = (one["labels"] + [0.0]).index(0.0)
        assert other["labels"] == [float(index < first_wrong) for index in range(len(one["labels"]))]
    slips = sum(row["labels"][-1] == 0.0 for row in so_far) / 200
    assert 0.48 < slips < 0.72  # 0.6 within 3.5 standard deviations


def test_splits_are_those_of_the_chain():
    for split in ("train", "heldout"):
        questions = make_chain_steps_dataset(split, size=50)["question"]
        assert {split_of(question) for question in questions} == {split}
    assert set(make_chain_steps_dataset(size=20, slip_share=0.0)["labels"][0]) == {1.0}


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"labels": "line"}, "^labels: "), ({"slip_share": 1.5}, "^slip_share: "), ({"split": "test"}, "^split: ")],
)
def test_bad_settings(settings, message):
    with pytest.raises(UserError, match=message):
        make_chain_steps_dataset(**settings)
