"""`evaluate` and the files it writes, with a backend that answers from a table."""

import json

import pytest
from datasets import Dataset

from trl_reasoning.builtin.tiny import build_tokenizer
from trl_reasoning.errors import UserError
from trl_reasoning.evaluation import evaluate, finished_metrics
from trl_reasoning.generation import Generation, SamplingParams


PARAMS = SamplingParams(max_new_tokens=20, temperature=0.5, seed=3)


class TableBackend:
    batch_size = 4
    name = "table"

    def __init__(self, answers):
        self.tokenizer = build_tokenizer()
        self.answers = answers
        self.calls = 0

    def fingerprint(self):
        return "w"

    def generate(self, prompt_ids, params):
        self.calls += 1
        texts = [f"<think>so</think>{self.answers[self.tokenizer.decode(ids)]}" for ids in prompt_ids]
        return [Generation(self.tokenizer(text)["input_ids"], text, "stop") for text in texts]


@pytest.fixture
def problems():
    rows = [("1+1=", "2", 2), ("2+2=", "4", 2), ("1+1+1=", "3", 3), ("5+5+5=", None, 3)]
    return Dataset.from_list(
        [{"prompt": prompt, "solution": gold, "difficulty": level} for prompt, gold, level in rows]
    )


@pytest.fixture
def backend():
    return TableBackend({"1+1=": "2", "2+2=": "5", "1+1+1=": "3", "5+5+5=": "15"})


def run(backend, problems, folder, **changes):
    options = {"samples": 2, "params": PARAMS, "settings": {"task": "table"}, **changes}
    return evaluate(backend, problems, output_dir=folder, **options)


def test_the_metrics_and_their_file(backend, problems, tmp_path):
    metrics = run(backend, problems, tmp_path)
    assert json.loads((tmp_path / "metrics.json").read_text()) == metrics
    assert metrics["problems"] == 3
    assert metrics["samples"] == 6
    assert metrics["accuracy"] == pytest.approx(2 / 3)
    assert metrics["unreadable_gold_share"] == 0.25
    assert metrics["unreadable_gold_problems"] == 1
    # <think>, s, o, </think> and one digit
    assert (metrics["mean_tokens"], metrics["mean_thought_tokens"]) == (5, 2)
    assert {level: row["accuracy"] for level, row in metrics["by_difficulty"].items()} == {"2": 0.5, "3": 1.0}
    assert metrics["settings"]["temperature"] == 0.5
    assert metrics["settings"]["task"] == "table"
    assert metrics["peak_memory_mb"] > 1
    records = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert len(records) == 8
    assert metrics["seconds"] == pytest.approx(sum(record["seconds"] for record in records))
    assert metrics["tokens_per_second"] == pytest.approx(sum(r["tokens"] for r in records) / metrics["seconds"])


def test_further_measures_see_the_records_with_the_tokens_that_were_drawn(backend, problems, tmp_path):
    seen = []

    def extra(records):
        seen.extend(records)
        return {"longest": max(record["tokens"] for record in records)}

    metrics = run(backend, problems, tmp_path, extra=extra)
    assert metrics["longest"] == 6  # `15` has two digits
    assert json.loads((tmp_path / "metrics.json").read_text()) == metrics
    assert len(seen) == 8
    assert all(record["token_ids"] == backend.tokenizer(record["completion"])["input_ids"] for record in seen)


def test_a_second_run_gives_the_same_without_sampling(backend, problems, tmp_path):
    first = run(backend, problems, tmp_path)
    backend.calls = 0
    second = run(backend, problems, tmp_path)
    assert backend.calls == 0
    assert {**second, "peak_memory_mb": 0} == {**first, "peak_memory_mb": 0}


def test_finished_metrics_need_the_same_settings(backend, problems, tmp_path):
    assert finished_metrics(tmp_path, {"task": "table"}) is None
    metrics = run(backend, problems, tmp_path)
    assert finished_metrics(tmp_path, {"task": "table", "samples": 2}) == metrics
    assert finished_metrics(tmp_path, {"task": "table", "samples": 4}) is None
    assert finished_metrics(tmp_path, {"adapter": "x"}) is None


def test_a_task_without_golds_is_refused(backend, problems, tmp_path):
    with pytest.raises(UserError, match=r"solution: the task has no such column.*columns"):
        run(backend, problems.remove_columns("solution"), tmp_path)
    with pytest.raises(UserError, match="no rows"):
        run(backend, problems.select([]), tmp_path)
