import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from reasoning_gym.factory import DATASETS

from trl_reasoning.data import DataError, load_source
from trl_reasoning.data.puzzle_rows import puzzle_key, split_of
from trl_reasoning.data.reasoning_gym import find_task, load_reasoning_gym
from trl_reasoning.rewards._puzzle_entries import decode_entry, encode_entry, scorer_of


def load(task, **source):
    return load_source({"path": f"reasoning_gym:{task}", **source})


def test_rows_of_a_task():
    rows = load("spell_backward", size=20, params={"seed": 3, "min_word_len": 4, "max_word_len": 5})
    assert rows.column_names == ["question", "solution", "task", "puzzle"]
    assert len(set(rows["question"])) == 20
    for row in rows:
        entry = decode_entry(row["puzzle"])
        word = entry["metadata"]["word"]
        assert row["solution"] == word[::-1] == entry["answer"]
        assert 4 <= len(word) <= 5
        assert word in row["question"]
        assert (row["task"], entry["params"]) == ("spell_backward", {"min_word_len": 4, "max_word_len": 5})


@pytest.mark.parametrize("task", ["number_sorting", pytest.param("ransom_note", marks=pytest.mark.slow)])
def test_the_same_settings_give_the_same_rows_in_another_process(task):
    # The library draws the second from a set, whose order depends on the process.
    source = {"path": f"reasoning_gym:{task}", "size": 5, "params": {"seed": 2}}
    script = f"from trl_reasoning.data import load_source; print(list(load_source({source!r})['puzzle']))"
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    assert done.stdout.strip() == str(list(load_source(source)["puzzle"])), done.stderr


def test_errors_of_the_other_process_arrive():
    with pytest.raises(DataError, match="word_ladder: min_word_length"):
        load("word_ladder", size=2, params={"min_word_length": 1})


def test_the_global_generators_are_left_alone():
    random.seed(1)
    np.random.seed(1)
    expected = random.Random(1).random(), np.random.RandomState(1).rand()
    load("pool_matrix", size=3)  # seeds numpy's
    first = load("list_functions", size=30)["puzzle"]  # draws from Python's
    assert (random.random(), np.random.rand()) == expected
    assert list(load("list_functions", size=30)["puzzle"]) == list(first)


def test_neighbouring_seeds_share_no_run_of_questions():
    # In the library, question i of seed s is question i - 1 of seed s + 1.
    first, second = (set(load("chain_sum", size=200, params={"seed": seed})["question"]) for seed in (0, 1))
    assert len(first & second) < 20


@pytest.mark.parametrize("task", ["chain_sum", "countdown", "mini_sudoku", "syllogism"])
def test_splits_do_not_overlap_whatever_the_seeds(task):
    train, test = set(), set()
    for seed in (0, 1):
        train |= {_key(row) for row in load(task, split="train", size=12, params={"seed": seed})}
        test |= {_key(row) for row in load(task, split="test", size=4, params={"seed": seed})}
    assert not train & test
    assert all(split_of(key) == "train" for key in train)
    assert all(split_of(key) == "test" for key in test)


def _key(row):
    return puzzle_key(row["task"], {"question": row["question"], "metadata": decode_entry(row["puzzle"])["metadata"]})


def test_a_tiny_space_is_shared_out_and_runs_out_with_an_error():
    params = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}
    counts = {}
    for split in ("train", "test"):
        with pytest.raises(DataError, match="found only") as caught:
            load("chain_sum", split=split, size=5000, params=params)
        counts[split] = int(str(caught.value).partition("found only ")[2].split()[0])
    # 1 to 9 (and 0 where the library allows it), plus or minus: at most 200 questions in both splits together.
    assert 100 < counts["train"] + counts["test"] <= 200
    assert counts["train"] > 2 * counts["test"] > 0
    train = load("chain_sum", split="train", size=counts["train"], params=params)["question"]
    test = load("chain_sum", split="test", size=counts["test"], params={**params, "seed": 9})["question"]
    assert not set(train) & set(test)


def test_two_wordings_of_one_countdown_problem_are_one():
    def entry(question, numbers):
        return {"question": question, "metadata": {"target": 24, "numbers": numbers}}

    assert puzzle_key("countdown", entry("Make 24", [3, 8])) == puzzle_key("countdown", entry("Reach 24", [8, 3]))
    assert puzzle_key("countdown", entry("Make 24", [3, 8])) != puzzle_key("countdown", entry("Make 24", [3, 8, 8]))
    assert puzzle_key("aiw", {"question": "Who  is\nthere?"}) == puzzle_key("aiw", {"question": "who is there?"})


def test_countdown_has_the_columns_of_its_own_reward():
    rows = load("countdown", size=5, params={"min_numbers": 3, "max_numbers": 3})
    for row in rows:
        assert len(row["nums"]) == 3
        assert all(str(number) in row["question"] for number in [*row["nums"], row["target"]])


def test_levels_set_the_difficulty():
    easy, hard = (load("chain_sum", size=20, params={"level": level}) for level in (0, 3))
    assert set(easy["difficulty"]) == {0} and set(hard["difficulty"]) == {3}
    assert max(map(len, easy["question"])) < max(map(len, hard["question"]))
    only = load("chain_sum", size=5, params={"level": 3, "min_terms": 2, "max_terms": 2})
    assert all(decode_entry(text)["metadata"]["num_terms"] == 2 for text in only["puzzle"])


@pytest.mark.parametrize(
    ("source", "messages"),
    [
        ({"path": "reasoning_gym:countdwn"}, ["no task 'countdwn'", "did you mean 'countdown'", "chain_sum"]),
        ({"path": "reasoning_gym:codeio"}, ["not offered", "exec"]),
        ({"path": "reasoning_gym:propositional_logic"}, ["not offered", "premise"]),
        ({"path": "reasoning_gym:composite"}, ["not offered", "datasets"]),
        ({"path": "reasoning_gym:countdown", "params": {"max_number": 4}}, ["mean 'max_numbers'", "min_target"]),
        ({"path": "reasoning_gym:countdown", "params": {"max_numbers": 1}}, ["max_numbers must be >= min_numbers"]),
        ({"path": "reasoning_gym:countdown", "params": {"seed": -1}}, ["seed: expected"]),
        ({"path": "reasoning_gym:countdown", "params": {"seed": True}}, ["seed: expected"]),
        ({"path": "reasoning_gym:countdown", "params": {"size": 3}}, ["no 'size'"]),
        ({"path": "reasoning_gym:chain_sum", "params": {"level": 99}}, ["level", "0 to"]),
        ({"path": "reasoning_gym:acre", "params": {"level": 1}}, ["has no levels"]),
        ({"path": "reasoning_gym:countdown", "split": "validation"}, ["train and test", "'validation'"]),
        ({"path": "reasoning_gym:countdown", "name": "main"}, ["name is for hub"]),
        ({"path": "a.jsonl", "params": {"seed": 1}}, ["params are for tasks"]),
    ],
)  # fmt: skip
def test_errors(source, messages):
    with pytest.raises(DataError) as caught:
        load_source(source)
    for message in messages:
        assert message in str(caught.value)


def test_a_task_that_nobody_has_read_is_refused(monkeypatch):
    monkeypatch.setitem(DATASETS, "brand_new", DATASETS["chain_sum"])
    with pytest.raises(DataError, match="nobody has read its scorer"):
        find_task("reasoning_gym:brand_new")
    assert scorer_of("brand_new") is None


def test_every_task_of_the_library_is_decided_on():
    from trl_reasoning.rewards._puzzle_audit import CAPPED, LIBRARY_SCORED, REFUSED
    from trl_reasoning.rewards._puzzle_scorers import OWN_SCORERS

    tables = [set(OWN_SCORERS), set(LIBRARY_SCORED), set(REFUSED)]
    assert sum(map(len, tables)) == len(set().union(*tables))
    assert set().union(*tables) == set(DATASETS)
    assert CAPPED <= LIBRARY_SCORED


def test_without_the_library_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym.factory", None)
    with pytest.raises(DataError, match=r"trl-reasoning\[tasks\]"):
        load_reasoning_gym("reasoning_gym:countdown", split=None, size=1, params={})


def test_golds_that_do_not_score_are_left_out(monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # as in the process of its own, which costs seconds to start
    # One in ten of the library's integrals has an answer that still holds an integral sign.
    rows = load("intermediate_integration", size=8)
    assert not any("Integral" in solution for solution in rows["solution"])


def test_entries_come_back_as_they_were():
    metadata = {"a": (1, (2.5, None)), "b": {3: True, "x": "y"}, "c": [{"tuple": 1}], "d": float("inf"), "e": {}}
    text = encode_entry("aiw", {"k": ("x",)}, None, metadata)
    assert isinstance(json.loads(text), dict)
    assert decode_entry(text) == {"task": "aiw", "params": {"k": ("x",)}, "answer": None, "metadata": metadata}
    with pytest.raises(TypeError, match="expected plain data, got object"):
        encode_entry("aiw", {}, None, {"x": object()})
    for text in ("", "[]", "{}", "null", '{"task": "codeio", "params": {}, "answer": "", "metadata": {}}', "[" * 9999):
        with pytest.raises(ValueError, match="no entry of a task|exec"):
            decode_entry(text)
