"""Scores over a records file: sums, interruptions, other rewards; no model."""

import json

import pytest
from datasets import Dataset

from trl_reasoning.errors import UserError
from trl_reasoning.generation import read_records
from trl_reasoning.generation.scoring import WeightedReward, score_records
from trl_reasoning.rewards import make_kimi_length_reward


PROBLEMS = Dataset.from_list(
    [
        {"prompt": [{"role": "user", "content": "9-5=?"}], "solution": "4", "level": 1},
        {"prompt": [{"role": "user", "content": "1+1=?"}], "solution": "2", "level": 2},
    ]
)
TEXTS = [["<think>9-5</think>4", "<think></think>5"], ["<think>1+1</think>2", "2"]]


class Lengths:
    """The characters of a completion; counts its calls, and fails at one of them."""

    __name__ = "lengths"

    def __init__(self, fails_at=None):
        self.calls = []
        self.fails_at = fails_at

    def __call__(self, prompts, completions, level, **kwargs):
        if len(self.calls) == self.fails_at:
            raise KeyboardInterrupt
        self.calls.append((prompts, completions, level, kwargs))
        return [float(len(turns[0]["content"])) for turns in completions]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "records.jsonl"
    records = [
        {
            "id": problem,
            "sample": sample,
            "prompt": PROBLEMS[problem]["prompt"],
            "completion": text,
            "tokens": len(text),
            "thought_opened": False,
        }
        for problem, texts in enumerate(TEXTS)
        for sample, text in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def score(file, *rewards, settings=None, **options):
    weighted = [WeightedReward(reward.__name__, reward, weight) for reward, weight in rewards]
    return score_records(file, PROBLEMS, weighted, settings or {"rewards": "a"}, **options)


def even_places(completions, **kwargs):
    return [1.0 if place % 2 == 0 else None for place in range(len(completions))]


def test_one_reward_is_the_score(file):
    records = score(file, (Lengths(), 1.0))
    assert [record["score"] for record in records] == [19.0, 16.0, 19.0, 1.0]
    assert "scores" not in records[0]
    assert read_records(file) == records
    assert sorted(path.name for path in file.parent.iterdir()) == ["records.jsonl", "records.jsonl.score.json"]


def test_several_are_weighted_and_none_is_left_out(file):
    records = score(file, (Lengths(), 0.1), (even_places, 2.0))
    assert [record["score"] for record in records] == pytest.approx([3.9, 1.6, 3.9, 0.1])
    assert records[1]["scores"] == {"lengths": 16.0, "even_places": None}
    assert [record["score"] for record in score(file, (even_places, 2.0), settings={"b": 1})] == [2.0, None, 2.0, None]
    assert "scores" not in read_records(file)[0]


def test_a_reward_gets_what_it_gets_in_training(file):
    reward = Lengths()
    score(file, (reward, 1.0))
    [(prompts, completions, level, kwargs)] = reward.calls
    assert prompts == [PROBLEMS[0]["prompt"]] * 2 + [PROBLEMS[1]["prompt"]] * 2
    assert completions[1] == [{"role": "assistant", "content": "<think></think>5"}]
    assert level == [1, 1, 2, 2]
    assert kwargs["solution"] == ["4", "4", "2", "2"]
    assert kwargs["thought_opened"] == [False] * 4
    assert [len(ids) for ids in kwargs["completion_ids"]] == [19, 16, 19, 1]


def test_kimis_length_reward_compares_the_samples_of_one_problem(file):
    # Problem 0: 19 tokens right, 16 wrong. Problem 1: 19 and 1, both right. lambda = 0.5 - (len - min) / (max - min).
    for batch_size in (1, 64):
        records = score(file, (make_kimi_length_reward(), 1.0), settings={"size": batch_size}, batch_size=batch_size)
        assert [record["score"] for record in records] == [-0.5, 0.0, -0.5, 0.5]


def test_an_asynchronous_reward(file):
    async def judge(completions, **kwargs):
        return [2.5] * len(completions)

    assert [record["score"] for record in score(file, (judge, 1.0))] == [2.5] * 4


def test_a_second_pass_with_the_same_settings_scores_nothing(file):
    score(file, (Lengths(), 1.0))
    before = file.read_bytes()
    assert score(file, (Lengths(fails_at=0), 1.0))[0]["score"] == 19.0
    assert file.read_bytes() == before


def test_an_interrupted_pass_goes_on(file):
    with pytest.raises(KeyboardInterrupt):
        score(file, (Lengths(fails_at=1), 1.0), batch_size=1)
    assert "score" not in read_records(file)[0]
    partial = file.with_name("records.jsonl.scores.jsonl")
    partial.write_text(partial.read_text() + '{"id": 1, "sam')  # half a line, as a kill leaves it
    reward = Lengths()
    records = score(file, (reward, 1.0), batch_size=1)
    assert [record["score"] for record in records] == [19.0, 16.0, 19.0, 1.0]
    assert [prompts for prompts, *_ in reward.calls] == [[PROBLEMS[1]["prompt"]] * 2]


@pytest.mark.parametrize("interrupted", [False, True])
def test_another_scorer_or_other_samples_are_scored_again(file, interrupted):
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            score(file, (Lengths(fails_at=1), 1.0), batch_size=1)
    else:
        score(file, (Lengths(), 1.0))
    assert [record["score"] for record in score(file, (Lengths(), 2.0), settings={"b": 1})] == [38.0, 32.0, 38.0, 2.0]
    file.write_text(file.read_text().replace("9-5</think>4", "5</think>4"))
    assert [record["score"] for record in score(file, (Lengths(), 2.0), settings={"b": 1})] == [34.0, 32.0, 38.0, 2.0]


def test_values_that_are_no_scores(file):
    def few(completions, **kwargs):
        return [1.0]

    def nan(completions, **kwargs):
        return [1.0, float("nan"), 1.0, 1.0]

    with pytest.raises(UserError, match="score: few returned 1 values for 4 samples"):
        score(file, (few, 1.0))
    with pytest.raises(UserError, match="score: nan gave nan for problem 0, sample 1"):
        score(file, (nan, 1.0))
    assert "score" not in read_records(file)[0]
