import json

import pytest

from trl_reasoning.data import DataError, load_source


def error_of(spec):
    with pytest.raises(DataError) as caught:
        load_source(spec)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "mentions"),
    [
        ("rows.jsonl", '{"a": 1}\n\n{"a": 2\n{"a": 3}\n', ["rows.jsonl, line 3", '{"a": 2']),
        ("rows.jsonl", '{"a": 1}\n2\n', ["rows.jsonl, line 2", "expected an object"]),
        ("rows.json", '[\n {"a": 1},\n {"a": 2 "b": 3}]', ["rows.json, line 3"]),
        ("rows.json", '[{"a": 1}, 5]', ["rows.json, row 1", "expected an object"]),
        ("rows.jsonl", "", ["rows.jsonl", "empty"]),
        ("rows.jsonl", "\n \n", ["rows.jsonl", "empty"]),
        ("rows.json", "[]", ["rows.json", "empty"]),
        ("rows.csv", "a,b\n1,2\n", ["rows.csv", ".jsonl", ".parquet"]),
        ("rows.parquet", "not parquet", ["rows.parquet", "could not read"]),
    ],
)
def test_a_file_that_cannot_be_read(name, text, mentions, tmp_path):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    message = error_of({"path": str(path)})
    for word in mentions:
        assert word in message


def test_a_bad_row_far_down_a_folder(tmp_path):
    lines = [json.dumps({"a": n}) for n in range(500)]
    (tmp_path / "part-0.jsonl").write_text("\n".join(lines), "utf-8")
    lines[321] = '{"a": '
    (tmp_path / "part-1.jsonl").write_text("\n".join(lines), "utf-8")
    assert "part-1.jsonl, line 322" in error_of({"path": str(tmp_path)})


def test_folders_without_rows_or_with_two_formats(tmp_path):
    assert "no file that ends in" in error_of({"path": str(tmp_path)})
    (tmp_path / "a.jsonl").write_text('{"a": 1}', "utf-8")
    (tmp_path / "b.parquet").write_text("", "utf-8")
    message = error_of({"path": str(tmp_path)})
    assert "json, parquet" in message


def test_a_file_that_is_not_there_names_its_neighbour(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gsm8k_train.jsonl").write_text("{}", "utf-8")
    message = error_of({"path": "./gsm8k_trian.jsonl"})
    assert str(tmp_path) in message
    assert "did you mean 'gsm8k_train.jsonl'?" in message


def test_a_hub_set_that_cannot_be_reached_says_what_was_tried(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def unreachable(*args, **kwargs):
        raise ConnectionError("offline mode is enabled")

    monkeypatch.setattr("datasets.load_dataset", unreachable)
    message = error_of({"path": "openai/gsm8k", "name": "main", "split": "train"})
    for word in (str(tmp_path), "openai/gsm8k", "name='main'", "split='train'", "offline mode is enabled"):
        assert word in message


def test_a_hub_set_is_asked_for_its_name_and_split(monkeypatch):
    from datasets import Dataset, DatasetDict

    asked = []

    def load_dataset(path, name=None, split=None):
        asked.append((path, name, split))
        rows = Dataset.from_list([{"question": "1+1?", "answer": "1+1=2\n#### 2"}])
        return DatasetDict({"train": rows, "test": rows}) if split is None else rows

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    dataset = load_source({"path": "openai/gsm8k", "name": "main", "adapter": "gsm8k"})
    assert dataset.to_list() == [{"question": "1+1?", "rationale": "1+1=2", "solution": "2"}]
    load_source({"path": "openai/gsm8k", "name": "main", "split": "test"})
    assert asked == [("openai/gsm8k", "main", None), ("openai/gsm8k", "main", "test")]


def test_builtin_tasks():
    dataset = load_source(
        {"path": "builtin:chain", "split": "heldout", "size": 6, "params": {"operands": [3, 3], "seed": 1}}
    )
    assert len(dataset) == 6
    assert set(dataset["difficulty"]) == {3}
    assert dataset[0]["prompt"] == [{"role": "user", "content": dataset[0]["question"]}]


@pytest.mark.parametrize(
    ("spec", "mentions"),
    [
        ({"path": "builtin:chian"}, ["chian", "did you mean 'chain'"]),
        ({"path": "builtin:chain", "params": {"operand": 3}}, ["operand", "did you mean 'operands'"]),
        ({"path": "builtin:chain", "params": {"size": 3}}, ["params", "'size'"]),
        ({"path": "builtin:chain", "split": "test"}, ["builtin:chain", "split", "heldout"]),
    ],
)
def test_wrong_builtin_settings(spec, mentions):
    message = error_of(spec)
    for word in mentions:
        assert word in message
