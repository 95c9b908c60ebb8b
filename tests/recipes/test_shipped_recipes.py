"""Every shipped file passes its checks and has its row in the list."""

import re
from pathlib import Path

import pytest
import yaml

from trl_reasoning.commands.recipes import check_file, check_paths


RECIPES = Path(__file__).resolve().parents[2] / "recipes"
FILES = sorted(RECIPES.rglob("*.yaml"))


def test_recipes_are_found() -> None:
    assert len(FILES) > 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(RECIPES).as_posix())
def test_recipe_passes_every_check(path: Path) -> None:
    kind, _ = check_file(path)
    assert (kind == "accelerate") == (path.parent.name == "accelerate")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(RECIPES).as_posix())
def test_header_says_what_it_is(path: Path) -> None:
    """What it does in the first line; a run also names its hardware and its command."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ")
    if path.parent.name != "accelerate":
        for label in ("# What:", "# Hardware:", "# Command:"):
            assert label in text


def test_readme_has_one_row_for_each_recipe() -> None:
    rows = re.findall(r"^\| \[`([^`]+)`\]\(([^)]+)\) \|", (RECIPES / "README.md").read_text(), flags=re.MULTILINE)
    assert sorted(link for _, link in rows) == [path.relative_to(RECIPES).as_posix() for path in FILES]
    assert all(link == f"{name}.yaml" for name, link in rows)


def test_accelerate_files_leave_the_precision_to_the_recipe() -> None:
    for path in (RECIPES / "accelerate").glob("*.yaml"):
        assert "mixed_precision" not in yaml.safe_load(path.read_text())


def test_check_counts_failures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("method: dr_gpro\n")
    good = RECIPES / "smoke" / "sft_tiny.yaml"
    assert check_paths([str(tmp_path), str(good)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"FAILED  {bad}: method: 'dr_gpro'")
    assert lines[1] == f"ok      {good}: train (sft)"
    assert lines[-1] == "2 recipes checked, 1 failed"
    assert check_paths([str(good)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 recipes checked, 0 failed"
