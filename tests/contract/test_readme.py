"""The README names files and commands that exist."""

import re
import shlex

import pytest
from source_tree import REPOSITORY

from trl_reasoning.cli import COMMANDS


README = REPOSITORY / "README.md"
MAX_LINES = 250


@pytest.fixture(scope="module")
def text() -> str:
    return README.read_text()


def test_it_is_short(text):
    assert 20 < len(text.splitlines()) <= MAX_LINES


def test_its_paths_exist(text):
    paths = set(re.findall(r"(?<![\w/.])(?:recipes|tests|trl_reasoning|benchmarks|\.ci)/[\w./*<>-]*[\w/*>]", text))
    assert len(paths) > 3
    missing = [path for path in sorted(paths) if "<" not in path and not list(REPOSITORY.glob(path.rstrip("/")))]
    assert missing == []


def test_its_links_exist(text):
    targets = re.findall(r"\]\(([^)#]+)\)", text)
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (REPOSITORY / target).exists()] == []


def commands(text: str) -> list[list[str]]:
    """Every call of our program, with line continuations joined."""
    calls = re.findall(r"(?:trl-reasoning|-m trl_reasoning) +([a-z][^\n`|#]*)", text.replace("\\\n", " "))
    return [shlex.split(call.split("  #")[0]) for call in calls]


def test_its_commands_exist(text):
    found = commands(text)
    assert {"train", "pipeline", "evaluate", "recipes"} <= {words[0] for words in found}
    for words in found:
        assert words[0] in COMMANDS, f"`trl-reasoning {words[0]}` is not a command"


def test_it_names_every_command_and_its_own_test_command(text):
    for command in COMMANDS:
        assert f"`{command}`" in text or f"trl-reasoning {command}" in text, f"{command} is not in the README"
    assert re.search(r"^\s*(\$ )?pytest\b", text, re.MULTILINE)
    assert "pip install -e" in text


def test_its_options_are_those_of_the_commands(text):
    """An option is one that the command declares, or else an override of a recipe's key: those have no dash inside."""
    for words in commands(text):
        options = [word.partition("=")[0] for word in words[1:] if word.startswith("--")]
        assert [option for option in options if not re.fullmatch(r"--[a-z][\w.]*", option)] == []


def test_no_placeholder_is_left():
    assert "<<" not in README.read_text()
