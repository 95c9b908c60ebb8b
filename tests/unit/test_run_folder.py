"""A run's folder: which checkpoint counts, and whether a run there can go on."""

import json
from types import SimpleNamespace

import pytest

from trl_reasoning.errors import UserError
from trl_reasoning.run_folder import check_same_recipe, delete_run, last_checkpoint, read_run


def prepared(text: str) -> SimpleNamespace:
    return SimpleNamespace(recipe=SimpleNamespace(to_yaml=lambda: text))


@pytest.fixture
def folder(tmp_path):
    """A run of two processes, stopped after step 20; checkpoint-30 was not finished."""
    for step in (10, 20, 30):
        (tmp_path / f"checkpoint-{step}").mkdir()
        if step < 30:
            (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text("{}")
    (tmp_path / "resolved.yaml").write_text("method: sft\nlearning_rate: 1.0\nmax_steps: 40\n")
    (tmp_path / "environment.json").write_text(json.dumps({"processes": 2}))
    (tmp_path / "mine.txt").write_text("kept")
    return tmp_path


def test_the_newest_complete_checkpoint_counts(folder, capsys):
    assert last_checkpoint(folder) == str(folder / "checkpoint-20")
    assert "checkpoint-30 is incomplete" in capsys.readouterr().err
    assert last_checkpoint(folder / "none") is None


def test_only_free_keys_may_change(folder, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    check_same_recipe(folder, prepared("method: sft\nlearning_rate: 1.0\nmax_steps: 80\n"))
    with pytest.raises(UserError, match=r"learning_rate: 1\.0 there, 2\.0 here.*--restart"):
        check_same_recipe(folder, prepared("method: sft\nlearning_rate: 2.0\nmax_steps: 40\n"))


def test_another_number_of_processes_is_refused(folder, monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(UserError, match=r"has 2 process\(es\), this one 1"):
        check_same_recipe(folder, prepared("method: sft\nlearning_rate: 1.0\n"))


def test_restart_deletes_what_a_run_wrote_and_nothing_else(folder):
    delete_run(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["mine.txt"]
    assert read_run(folder) is None
