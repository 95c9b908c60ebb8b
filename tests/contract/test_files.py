"""Sizes, names and words of files."""

import re

import pytest
from source_tree import PACKAGE, REPOSITORY, modules, relative, repository_files

from trl_reasoning.config import METHODS


HARD_LIMIT, SOFT_LIMIT = 400, 250
# Files over the soft limit, each with the reason why it is not split. Split a file rather than add it here.
LONG_FILES: dict[str, str] = {
    "tests/contract/test_trl_api.py": "one table of all that a new version of TRL may break",
    "tests/trainers/test_packed_update.py": "every way in which TRL splits its updates, against one helper",
}
# In pieces, so that this file does not hold what it looks for.
FORBIDDEN = [
    "/wo" + "rk/",
    "/tmp" + "/",
    "/ro" + "ot/",
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "registry." + "npmjs",
    "download." + "pytorch",
]
TEXT_SUFFIXES = {".py", ".md", ".yaml", ".yml", ".toml", ".jinja", ".json", ".jsonl", ".txt", ".typed", ""}


def python_files():
    folders = (PACKAGE, REPOSITORY / "tests", REPOSITORY / "benchmarks")
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def line_count(path) -> int:
    return len(path.read_text().splitlines())


def test_no_file_is_over_the_hard_limit():
    sizes = {relative(path): line_count(path) for path in python_files()}
    assert len(sizes) > 50
    assert {name: size for name, size in sizes.items() if size > HARD_LIMIT} == {}


def test_files_over_the_soft_limit_are_known():
    found = {relative(path) for path in python_files() if line_count(path) > SOFT_LIMIT}
    assert found == set(LONG_FILES), "split new ones or name them with a reason; drop what is short again"


def test_there_is_no_drawer_for_leftovers():
    assert [relative(path) for path in modules() if re.fullmatch(r"_?(utils?|helpers?|misc|common)", path.stem)] == []


def test_files_name_no_machine_and_no_registry():
    files = repository_files()
    if not files:
        pytest.skip("not a git checkout, so what belongs to the repository is unknown")
    found = []
    for path in files:
        if path.suffix in TEXT_SUFFIXES:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                found += [f"{relative(path)}:{number}: {word}" for word in FORBIDDEN if word in line]
    assert found == []


@pytest.mark.parametrize("stem", METHODS)
def test_one_method_has_one_stem(stem):
    assert METHODS[stem].stem == stem
    assert METHODS[stem].trainer.startswith(f"trl_reasoning.trainers.{stem}:")
    assert (PACKAGE / "trainers" / f"{stem}.py").is_file()
    assert list((REPOSITORY / "recipes").rglob(f"{stem}_*.yaml")), f"no recipe {stem}_<model>.yaml"
    assert list((REPOSITORY / "tests").rglob(f"test_{stem}.py")), f"no tests/**/test_{stem}.py"
    rows = [line for line in (REPOSITORY / "README.md").read_text().splitlines() if line.startswith("|")]
    assert any(f"`{stem}`" in row for row in rows), f"no row with `{stem}` in the README's methods table"
