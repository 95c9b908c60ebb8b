"""From a task's name or file to problems with prompts."""

import json

import pytest

from trl_reasoning.data import DataError
from trl_reasoning.evaluation import load_task, task_source, template_stop_strings


def test_a_builtin_task_reads_its_heldout_split():
    dataset = load_task(task_source("builtin:chain", params={"operands": [3, 5], "size": 9}), limit=6)
    assert dataset["difficulty"] == [3, 4, 5, 3, 4, 5]
    assert dataset[0]["prompt"] == [{"role": "user", "content": dataset[0]["question"]}]
    assert task_source("builtin:chain", split="train")["split"] == "train"


def test_a_file_gets_columns_and_a_prompt_template(tmp_path):
    path = tmp_path / "problems.jsonl"
    path.write_text(json.dumps({"text": "1+1?", "answer": "2"}) + "\n")
    source = task_source(str(path), columns={"question": "text", "solution": "answer"})
    bare = load_task(source)[0]
    assert bare["prompt"] == [{"role": "user", "content": "1+1?"}]
    assert bare["solution"] == "2"
    assert load_task(source, prompt_template="r1_zero")[0]["prompt"].endswith("User: 1+1? Assistant:")
    assert load_task(source, system_prompt="Be brief.")[0]["prompt"][0] == {"role": "system", "content": "Be brief."}


def test_a_relative_path_is_tried_beside_the_recipe(tmp_path):
    (tmp_path / "problems.jsonl").write_text(json.dumps({"question": "1+1?", "solution": "2"}) + "\n")
    assert len(load_task(task_source("problems.jsonl"), base_dir=tmp_path)) == 1


def test_a_whole_source_may_be_given():
    source = task_source({"path": "builtin:chain", "params": {"operands": 2}}, params={"size": 4}, split="train")
    assert source == {"path": "builtin:chain", "split": "train", "size": 4, "params": {"operands": 2}}


def test_an_unknown_parameter_names_its_neighbour():
    with pytest.raises(DataError, match="operands"):
        load_task(task_source("builtin:chain", params={"operand": 3}))


def test_stop_strings_belong_to_the_template():
    assert template_stop_strings("r1_zero") == ("</answer>",)
    assert template_stop_strings(None) == ()
