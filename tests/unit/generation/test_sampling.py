"""Resumable sampling with a scripted backend: no model."""

import json
from dataclasses import replace

import pytest
from datasets import Dataset

from trl_reasoning.builtin.tiny import build_tokenizer
from trl_reasoning.errors import UserError
from trl_reasoning.generation import Generation, RecordsError, SamplingParams, read_records, sample_problems


PARAMS = SamplingParams(max_new_tokens=20)
COMPLETIONS = {
    "2+3=?": "<think>2+3=5</think>5",
    "9-1=?": "<think>9-1=7</think>7",
    "4+4=?": "<think>4+4=8, no",
}


class ScriptedBackend:
    """Answers from a table; the seed and the row are in the thought, so that equal draws are seen."""

    def __init__(self, batch_size=2, fails_after=None):
        self.tokenizer = build_tokenizer()
        self.batch_size = batch_size
        self.name = "scripted"
        self.weights = "w1"
        self.seeds = []
        self.fails_after = fails_after

    def fingerprint(self):
        return self.weights

    def generate(self, prompt_ids, params):
        if len(self.seeds) == self.fails_after:
            raise KeyboardInterrupt
        self.seeds.append(params.seed)
        return [self._answer(ids, params.seed, row) for row, ids in enumerate(prompt_ids)]

    def _answer(self, ids, seed, row):
        question = self.tokenizer.decode(ids).split("<|user|>")[1].split("<|end|>")[0]
        text = COMPLETIONS[question].replace("<think>", f"<think>{seed}.{row} ")
        ended = "</think>" in text
        tokens = self.tokenizer(text)["input_ids"] + [self.tokenizer.eos_token_id] * ended
        return Generation(tokens, text, "stop" if ended else "length")


@pytest.fixture
def problems():
    return Dataset.from_list(
        [
            {"prompt": [{"role": "user", "content": question}], "solution": solution, "difficulty": 2}
            for question, solution in zip(COMPLETIONS, ["5", "8", "8"], strict=True)
        ]
    )


def without_time(records):
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


def test_a_record_says_everything(problems, tmp_path):
    records = sample_problems(ScriptedBackend(), problems, PARAMS, samples=1, path=tmp_path / "records.jsonl")
    assert without_time(records)[0] == {
        "id": 0,
        "sample": 0,
        "prompt": [{"role": "user", "content": "2+3=?"}],
        "completion": "<think>0.0 2+3=5</think>5",
        "tokens": 13,
        "thought_tokens": 9,
        "finish_reason": "stop",
        "status": "right",
        "extracted": "5",
        "solution": "5",
        "difficulty": 2,
        "thought": "0.0 2+3=5",
        "valid_format": True,
        "thought_opened": False,
        "reply_start": "",
    }
    assert [record["status"] for record in records] == ["right", "wrong", "unparsed"]
    assert records[2]["finish_reason"] == "length"
    assert not records[2]["valid_format"]


@pytest.mark.parametrize("kept_lines", [0, 1, 2, 3, 5])
def test_a_killed_run_continues_to_the_same_records(problems, tmp_path, kept_lines):
    whole = sample_problems(ScriptedBackend(), problems, PARAMS, samples=2, path=tmp_path / "whole.jsonl")
    path = tmp_path / "killed.jsonl"
    sample_problems(ScriptedBackend(), problems, PARAMS, samples=2, path=path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:kept_lines]) + lines[kept_lines][:20])  # half a line, as a kill leaves it
    backend = ScriptedBackend()
    resumed = sample_problems(backend, problems, PARAMS, samples=2, path=path)
    assert without_time(resumed) == without_time(whole)
    assert without_time(read_records(path)) == without_time(whole)
    assert backend.seeds == [seed for seed in (0, 2, 4) if seed + 2 > kept_lines]


def test_an_interruption_loses_one_batch(problems, tmp_path):
    path = tmp_path / "records.jsonl"
    with pytest.raises(KeyboardInterrupt):
        sample_problems(ScriptedBackend(fails_after=2), problems, PARAMS, samples=2, path=path)
    assert len(read_records(path)) == 4


def test_a_finished_file_draws_nothing(problems, tmp_path):
    path = tmp_path / "records.jsonl"
    first = sample_problems(ScriptedBackend(), problems, PARAMS, samples=2, path=path)
    backend = ScriptedBackend()
    assert sample_problems(backend, problems, PARAMS, samples=2, path=path) == first
    assert backend.seeds == []


def test_another_batch_size_may_continue(problems, tmp_path):
    path = tmp_path / "records.jsonl"
    with pytest.raises(KeyboardInterrupt):
        sample_problems(ScriptedBackend(fails_after=1), problems, PARAMS, samples=2, path=path)
    records = sample_problems(ScriptedBackend(batch_size=1), problems, PARAMS, samples=2, path=path)
    assert len(records) == 6
    assert len({record["thought"] for record in records}) == 6


def test_samples_of_one_problem_are_drawn_differently(problems):
    records = sample_problems(ScriptedBackend(batch_size=3), problems, PARAMS, samples=4)
    assert len({record["thought"] for record in records}) == 12


@pytest.mark.parametrize("changed", ["weights", "temperature", "samples", "dataset"])
def test_records_of_other_settings_are_not_mixed(problems, tmp_path, changed):
    path = tmp_path / "records.jsonl"
    sample_problems(ScriptedBackend(), problems, PARAMS, samples=2, path=path)
    before = path.read_text()
    backend, params = ScriptedBackend(), PARAMS
    if changed == "weights":
        backend.weights = "w2"
    if changed == "temperature":
        params = replace(PARAMS, temperature=0.5)
    if changed == "dataset":
        problems = problems.select([0, 1])
    samples = 3 if changed == "samples" else 2
    with pytest.raises(RecordsError, match=f"{changed}: .* there, .* now.*--restart"):
        sample_problems(backend, problems, params, samples=samples, path=path)
    assert path.read_text() == before
    fresh = sample_problems(backend, problems, params, samples=samples, path=path, resume=False)
    assert len(fresh) == samples * len(problems)


def test_a_broken_line_in_the_middle_is_named(problems, tmp_path):
    path = tmp_path / "records.jsonl"
    sample_problems(ScriptedBackend(), problems, PARAMS, samples=1, path=path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0] + "{broken\n" + lines[2])
    with pytest.raises(RecordsError, match="line 2: not JSON"):
        sample_problems(ScriptedBackend(), problems, PARAMS, samples=1, path=path)


def test_a_file_of_unknown_origin_is_refused(problems, tmp_path):
    path = tmp_path / "records.jsonl"
    sample_problems(ScriptedBackend(), problems, PARAMS, samples=1, path=path)
    (tmp_path / "records.jsonl.meta.json").unlink()
    with pytest.raises(RecordsError, match="origin is unknown"):
        sample_problems(ScriptedBackend(), problems, PARAMS, samples=1, path=path)


def test_a_thought_that_the_prompt_opens_is_read_as_one(problems):
    prompts = Dataset.from_list([{"prompt": "<|user|>2+3=?<|end|><|assistant|><think>", "solution": "5"}])
    backend = ScriptedBackend()
    record = sample_problems(backend, prompts, PARAMS, samples=1)[0]
    # The scripted completion opens a second thought, which the format does not allow.
    assert (record["status"], record["valid_format"], record["difficulty"]) == ("right", False, None)


def test_without_golds_nothing_is_judged(problems):
    records = sample_problems(ScriptedBackend(), problems.remove_columns("solution"), PARAMS, samples=1)
    assert [record["status"] for record in records] == [None, None, None]


def test_an_unreadable_gold_is_told_from_a_wrong_answer(problems):
    golds = problems.remove_columns("solution").add_column("solution", ["5", None, "8"])
    statuses = [record["status"] for record in sample_problems(ScriptedBackend(), golds, PARAMS, samples=1)]
    assert statuses == ["right", "unreadable_gold", "unparsed"]


def test_zero_samples_are_refused(problems):
    with pytest.raises(UserError, match="samples: expected at least 1"):
        sample_problems(ScriptedBackend(), problems, PARAMS, samples=0)


def test_the_sidecar_names_the_settings(problems, tmp_path):
    sample_problems(ScriptedBackend(), problems, PARAMS, samples=1, path=tmp_path / "records.jsonl")
    meta = json.loads((tmp_path / "records.jsonl.meta.json").read_text())
    assert (meta["model"], meta["weights"], meta["max_new_tokens"], meta["seed"]) == ("scripted", "w1", 20, 0)
