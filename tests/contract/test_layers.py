"""Imports go down only, heavy libraries stay in their places. Read from the source, function-level imports too."""

import re
import sys
import tomllib
from itertools import chain

import pytest
from source_tree import PACKAGE, REPOSITORY, Import, imports_of, modules, relative


# A part may import parts of a lower number, and itself.
LAYERS = {
    "errors": 0,
    "text": 0,
    "workers": 0,
    "answers": 1,
    "builtin": 2,
    "losses": 2,
    "metrics": 2,
    "rewards": 2,
    "data": 3,
    "generation": 3,
    "callbacks": 4,
    "evaluation": 4,
    "trainers": 4,
    "config": 5,
    "exporting": 6,
    "run_folder": 6,
    "stages": 6,
    "pipeline": 7,
    "train": 7,
    "commands": 8,
    "cli": 9,
    "__main__": 10,
}
PURE = ("answers", "errors", "metrics", "rewards", "text", "workers")
NOT_IN_PURE = {"accelerate", "datasets", "peft", "torch", "transformers", "trl"}
MAY_IMPORT_TRL = ("trainers/", "callbacks/", "config/", "generation/backends.py")
EXTRAS = {"bitsandbytes", "datasketch", "gguf", "matplotlib", "py3langid", "reasoning_gym", "trackio", "vllm"}
# Import name to the name of the distribution, where they differ.
DISTRIBUTIONS = {"yaml": "pyyaml", "math_verify": "math-verify", "reasoning_gym": "reasoning-gym"}
ALL = [pytest.param(path, id=relative(path)) for path in modules()]


def part_of(path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_part(entry: Import) -> list[str]:
    """The parts of our package that an import reaches; `from .. import config` reaches `config`."""
    words = entry.module.split(".")
    if words[0] != PACKAGE.name:
        return []
    return [words[1]] if len(words) > 1 else list(entry.names)


def test_the_tree_was_found():
    assert len(ALL) > 20


@pytest.mark.parametrize("path", ALL)
def test_imports_go_down_only(path):
    part = part_of(path)
    if part == "__init__":
        pytest.skip("the package's own lazy names reach everywhere")
    assert part in LAYERS, f"{part} has no layer yet; give it one in this test"
    for entry in imports_of(path):
        for target in imported_part(entry):
            if target in (part, "__version__"):
                continue
            where = f"{relative(path)}:{entry.line}"
            assert LAYERS[target] < LAYERS[part], f"{where}: {part} must not import {target}"


@pytest.mark.parametrize("path", [parameter for parameter in ALL if part_of(parameter.values[0]) in PURE])
def test_pure_parts_stay_pure(path):
    for entry in imports_of(path):
        if not entry.is_typing:
            library = entry.module.split(".")[0]
            assert library not in NOT_IN_PURE, f"{relative(path)}:{entry.line} imports {library}"


@pytest.mark.parametrize("path", ALL)
def test_trl_is_imported_where_it_may_be(path):
    inside = path.relative_to(PACKAGE).as_posix()
    for entry in imports_of(path):
        where = f"{relative(path)}:{entry.line}"
        assert not entry.module.startswith("trl.experimental"), f"{where}: trl.experimental has no deprecation cycle"
        if entry.module.split(".")[0] == "trl" and not entry.is_typing:
            assert inside.startswith(MAY_IMPORT_TRL), f"{where}: trl is imported in {', '.join(MAY_IMPORT_TRL)} only"


@pytest.mark.parametrize("path", ALL)
def test_extras_are_imported_inside_functions(path):
    for entry in imports_of(path):
        if entry.module.split(".")[0] in EXTRAS:
            where = f"{relative(path)}:{entry.line}"
            assert entry.is_local or entry.is_typing, f"{where}: import {entry.module} where it is needed"


def test_every_library_is_declared():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    requirements = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    declared = {re.match(r"[\w-]+", requirement)[0].lower() for requirement in requirements}  # type: ignore[index]
    for path in modules():
        for entry in imports_of(path):
            library = entry.module.split(".")[0]
            if library in sys.stdlib_module_names or library == PACKAGE.name:
                continue
            name = DISTRIBUTIONS.get(library, library)
            assert name in declared, f"{relative(path)}:{entry.line}: {library} is not in pyproject.toml"
