"""What a person types first stays fast: neither torch nor trl is imported for it."""

import subprocess
import sys

import pytest

from trl_reasoning.cli import COMMANDS


HEAVY = ("datasets", "matplotlib", "peft", "torch", "transformers", "trl")
PROGRAM = """
import sys
{statement}
print("heavy:", *sorted(set(sys.modules) & set({heavy!r})))
"""
CALL = """
from trl_reasoning.cli import main
try:
    main({arguments!r})
except SystemExit:
    pass
"""


def heavy_modules(statement: str) -> list[str]:
    program = PROGRAM.format(statement=statement, heavy=HEAVY)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()[-1].split()[1:]


def test_importing_the_package_imports_nothing_heavy():
    assert heavy_modules("import trl_reasoning") == []


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["recipes", "list"]], ids=" ".join)
def test_looking_around_imports_nothing_heavy(arguments):
    assert heavy_modules(CALL.format(arguments=arguments)) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_imports_nothing_heavy(command):
    assert heavy_modules(CALL.format(arguments=[command, "--help"])) == []


def test_a_public_name_is_imported_when_it_is_used():
    assert "trl" in heavy_modules("from trl_reasoning import DrGRPOTrainer, DrGRPOConfig")


def test_python_m_and_the_console_script_are_the_same_program():
    by_module = subprocess.run([sys.executable, "-m", "trl_reasoning", "--help"], capture_output=True, text=True)
    assert by_module.returncode == 0
    assert by_module.stdout.startswith("usage: trl-reasoning ")
