import gzip
import json
import logging

import pytest
from datasets import Dataset, DatasetDict

from trl_reasoning.data import DataError, load_source


ROWS = [{"question": f"{n}+1?", "answer": str(n + 1)} for n in range(10)]


def write_jsonl(path, rows=ROWS):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def save_as(kind, folder):
    """The rows in one format; returns the path to load."""
    dataset = Dataset.from_list(ROWS)
    if kind == "jsonl":
        return write_jsonl(folder / "rows.jsonl")
    if kind == "json":
        (folder / "rows.json").write_text(json.dumps(ROWS, indent=1), "utf-8")
        return folder / "rows.json"
    if kind == "jsonl.gz":
        with gzip.open(folder / "rows.jsonl.gz", "wt") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in ROWS)
        return folder / "rows.jsonl.gz"
    if kind == "parquet":
        dataset.to_parquet(folder / "rows.parquet")
        return folder / "rows.parquet"
    dataset.save_to_disk(folder / "saved")
    if kind == "arrow":
        return next((folder / "saved").glob("*.arrow"))
    return folder / "saved"


@pytest.mark.parametrize("kind", ["jsonl", "json", "jsonl.gz", "parquet", "arrow", "save_to_disk"])
def test_local_formats_give_the_same_rows(kind, tmp_path):
    dataset = load_source({"path": str(save_as(kind, tmp_path))})
    assert dataset.to_list() == ROWS


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_rows_stay_memory_mapped(kind, tmp_path):
    dataset = load_source({"path": str(save_as(kind, tmp_path)), "columns": {"solution": "answer"}, "shuffle_seed": 1})
    assert dataset.cache_files
    assert dataset.data.nbytes > 0


def test_a_folder_of_files_with_splits_in_their_names(tmp_path):
    write_jsonl(tmp_path / "train-0.jsonl", ROWS[:3])
    write_jsonl(tmp_path / "train-1.jsonl", ROWS[3:5])
    write_jsonl(tmp_path / "test.jsonl", ROWS[5:])
    assert load_source({"path": str(tmp_path)}).to_list() == ROWS[:5]
    assert load_source({"path": str(tmp_path), "split": "test"}).to_list() == ROWS[5:]
    with pytest.raises(DataError, match="tset"):
        load_source({"path": str(tmp_path), "split": "tset"})


def test_a_saved_dataset_dict_picks_its_split(tmp_path):
    DatasetDict({"train": Dataset.from_list(ROWS[:4]), "test": Dataset.from_list(ROWS[4:])}).save_to_disk(
        tmp_path / "d"
    )
    assert len(load_source({"path": str(tmp_path / "d")})) == 4
    assert len(load_source({"path": str(tmp_path / "d"), "split": "test"})) == 6
    with pytest.raises(DataError, match=r"no split 'tst'; did you mean 'test'\? \(found: train, test\)"):
        load_source({"path": str(tmp_path / "d"), "split": "tst"})


def test_the_split_of_a_single_file_is_a_label_and_can_be_sliced(tmp_path):
    path = str(write_jsonl(tmp_path / "rows.jsonl"))
    assert load_source({"path": path, "split": "test"}).to_list() == ROWS
    assert load_source({"path": path, "split": "train[2:4]"}).to_list() == ROWS[2:4]


def test_relative_paths_from_the_current_directory_then_the_recipe_folder(tmp_path, monkeypatch):
    here, recipes = tmp_path / "here", tmp_path / "recipes"
    here.mkdir()
    recipes.mkdir()
    monkeypatch.chdir(here)
    write_jsonl(recipes / "rows.jsonl", ROWS[:2])
    assert len(load_source({"path": "rows.jsonl"}, base_dir=recipes)) == 2
    write_jsonl(here / "rows.jsonl", ROWS[:3])
    assert len(load_source({"path": "rows.jsonl"}, base_dir=recipes)) == 3


def test_size_fraction_and_shuffle(tmp_path):
    path = str(write_jsonl(tmp_path / "rows.jsonl"))
    assert load_source({"path": path, "size": 3}).to_list() == ROWS[:3]
    assert load_source({"path": path, "fraction": 0.2}).to_list() == ROWS[:2]
    shuffled = load_source({"path": path, "shuffle_seed": 3})
    assert sorted(shuffled["answer"], key=int) == [row["answer"] for row in ROWS]
    assert shuffled.to_list() != ROWS
    assert load_source({"path": path, "shuffle_seed": 3, "size": 4}).to_list() == shuffled.to_list()[:4]


def test_a_size_beyond_the_rows_says_so(tmp_path, caplog):
    path = str(write_jsonl(tmp_path / "rows.jsonl"))
    with caplog.at_level(logging.WARNING):
        assert len(load_source({"path": path, "size": 50})) == 10
    assert "10 rows, fewer than size 50" in caplog.text


def test_a_hub_name_does_not_stop_a_replaced_path(tmp_path, caplog):
    path = str(write_jsonl(tmp_path / "rows.jsonl"))
    with caplog.at_level(logging.WARNING):
        assert len(load_source({"path": path, "name": "main"})) == 10
    assert "'main'" in caplog.text


def test_columns_rename_and_make_golds_text(tmp_path):
    rows = [{"problem": "p", "solution": "worked", "answer": 27.0}, {"problem": "q", "solution": "w", "answer": 2.5}]
    path = str(write_jsonl(tmp_path / "rows.jsonl", rows))
    dataset = load_source({"path": path, "columns": {"question": "problem", "solution": "answer"}})
    assert dataset.to_list() == [{"question": "p", "solution": "27"}, {"question": "q", "solution": "2.5"}]


def test_columns_can_swap_and_keep_a_name(tmp_path):
    path = str(write_jsonl(tmp_path / "rows.jsonl", [{"a": "x", "b": "y", "solution": 4}]))
    dataset = load_source({"path": path, "columns": {"a": "b", "b": "a", "solution": "solution"}})
    assert dataset.to_list() == [{"a": "y", "b": "x", "solution": "4"}]


def test_constants_are_columns_with_one_value(tmp_path):
    path = str(write_jsonl(tmp_path / "rows.jsonl", [{"q": "a"}, {"q": "b"}]))
    dataset = load_source({"path": path, "constants": {"scenario": "math", "level": 3}, "size": 1})
    assert dataset.to_list() == [{"q": "a", "scenario": "math", "level": 3}]
    with pytest.raises(DataError, match=r"constants: .*rows.jsonl has a column 'q' already"):
        load_source({"path": path, "constants": {"q": "math"}})


@pytest.mark.parametrize(
    ("columns", "mentions"),
    [
        ({"solution": "answr"}, ["answr", "did you mean 'answer'", "question"]),
        ({"solution": "answer", "prompt": "answer"}, ["two names"]),
    ],
)
def test_wrong_columns(columns, mentions, tmp_path):
    with pytest.raises(DataError) as caught:
        load_source({"path": str(write_jsonl(tmp_path / "rows.jsonl")), "columns": columns})
    for word in mentions:
        assert word in str(caught.value)


def test_a_gold_that_is_no_number_names_its_row(tmp_path):
    path = str(write_jsonl(tmp_path / "rows.jsonl", [{"q": "a", "final": ["1"]}, {"q": "b", "final": ["2", "3"]}]))
    with pytest.raises(DataError, match=r"solution, row 0: expected a string or a number, got \['1'\]"):
        load_source({"path": path, "columns": {"solution": "final"}})
