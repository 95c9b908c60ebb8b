"""`__all__` is complete and sorted, and every public name says what it is."""

import ast
import doctest
import importlib
import inspect
import warnings

import pytest
from source_tree import PACKAGE, modules, relative

import trl_reasoning


PACKAGES = [path for path in modules() if path.name == "__init__.py"]


def module_name(path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def in_ruffs_order(names: list[str]) -> list[str]:
    """Constants, then classes, then the rest, as ruff sorts `__all__`."""
    return sorted(names, key=lambda name: (0 if name.isupper() else 1 if name[0].isupper() else 2, name))


@pytest.mark.parametrize("path", PACKAGES, ids=relative)
def test_all_is_complete_and_sorted(path):
    module = importlib.import_module(module_name(path))
    names = list(module.__all__)
    assert names == in_ruffs_order(names)
    assert [name for name in names if not hasattr(module, name)] == []
    body = ast.parse(path.read_text()).body
    relative_imports = [node for node in body if isinstance(node, ast.ImportFrom) and node.level]
    imported = {alias.asname or alias.name for node in relative_imports for alias in node.names}
    defined = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert {name for name in imported | defined if not name.startswith("_")} <= set(names)


def test_the_lazy_names_are_those_that_type_checkers_see():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    typing_only = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in typing_only.body for alias in node.names}  # type: ignore[attr-defined]
    assert seen == trl_reasoning._MODULE_OF
    assert set(trl_reasoning.__all__) == {*seen, "__version__"}


def test_the_promised_import_works():
    from trl_reasoning import DrGRPOConfig, DrGRPOTrainer

    assert DrGRPOTrainer.__module__ == DrGRPOConfig.__module__ == "trl_reasoning.trainers.dr_grpo"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="DrGRPOTrainr"):
        trl_reasoning.DrGRPOTrainr  # noqa: B018


@pytest.mark.parametrize("path", modules(), ids=relative)
def test_public_names_have_docstrings(path):
    tree = ast.parse(path.read_text())
    missing = [] if ast.get_docstring(tree) or not tree.body else ["the module"]
    module = importlib.import_module(module_name(path))
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node):
            missing.append(node.name)
        if isinstance(node, ast.ClassDef):
            # A method that overrides one with a docstring inherits it.
            methods = [item.name for item in node.body if isinstance(item, ast.FunctionDef) and item.name[0] != "_"]
            owner = getattr(module, node.name)
            missing += [f"{node.name}.{name}" for name in methods if not inspect.getdoc(getattr(owner, name))]
    assert missing == []


@pytest.mark.parametrize("path", modules(), ids=relative)
def test_examples_in_docstrings_run(path):
    if ">>>" not in path.read_text():
        pytest.skip("no example with a prompt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = doctest.testmod(importlib.import_module(module_name(path)))
    assert result.attempted > 0
    assert result.failed == 0
