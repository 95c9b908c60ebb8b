"""The tests of a row: what they call, how many they are, and whether they can be run at all."""

import ast
import builtins
import functools
import json
import symtable
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .marking import Unit, mark_asserts


_DATA_TYPES = (int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
_CLASS_CHECKS = ("isinstance", "issubclass")
_DATA_ATTRIBUTES = frozenset().union(*map(dir, _DATA_TYPES))


class UnreadableTestsError(ValueError):
    """The tests of a row cannot be run, whatever the program is."""


@dataclass(frozen=True)
class AssertTests:
    """
    Tests that call the program.

    Args:
        entries (`dict[str, str]`):
            Names in the tests, and what each is in the program (a function's name or an expression).
        setup (`str`):
            The data's own code that stands before the tests.
        items (`tuple[str, ...]`):
            The tests, each assert marked with its number.
        units (`tuple[Unit, ...]`):
            What counts as one test: each assert statement, or a whole item without one.
    """

    entries: dict[str, str]
    setup: str
    items: tuple[str, ...]
    units: tuple[Unit, ...]


@dataclass(frozen=True)
class StdinTests:
    """
    Inputs and the outputs that are expected.

    Args:
        pairs (`tuple[tuple[str, str], ...]`):
            Input and output of each test.
        tolerance (`float`, *optional*, defaults to `0.0`):
            As in [`is_same_output`].
    """

    pairs: tuple[tuple[str, str], ...]
    tolerance: float = 0.0


def read_asserts(tests: Any, setup: str | None = None, entry_point: str | None = None) -> AssertTests:
    """
    Read assert tests.

    Args:
        tests (`str` or `Sequence[str]`):
            Python code, or a list of it whose items are independent tests (MBPP). Code that defines `check` and does
            not call it (HumanEval) is called with the entry point.
        setup (`str`, *optional*):
            The data's code that the tests may use.
        entry_point (`str`, *optional*):
            What is called in the program: a function's name, or an expression such as `Solution().add`, which the
            tests know as `candidate`. Other names that the tests use and nobody defines are the program's, too.

    Returns:
        [`AssertTests`]

    Raises:
        UnreadableTestsError: for what is no Python code, calls nothing of the program, or uses its objects: only data
            comes back from a call.

    Example:
    ```python
    >>> tests = read_asserts(["assert add(1, 2) == 3", "assert add(0, 0) == 0"])
    >>> tests.entries, len(tests.units)
    ({'add': 'add'}, 2)

    ```
    """
    items = [tests] if isinstance(tests, str) else tests
    if not isinstance(items, Sequence) or not items or not all(isinstance(item, str) for item in items):
        raise UnreadableTestsError(f"expected Python code or a list of it, got {_shown(tests)}")
    return _read_asserts(tuple(items), setup or "", entry_point or "")


def read_stdin(tests: Any, *, tolerance: float = 0.0) -> StdinTests:
    """
    Read tests of inputs and outputs.

    Args:
        tests (`list[dict]`, `dict` or `str`):
            `[{"input": ..., "output": ...}, ...]` or `{"inputs": [...], "outputs": [...]}`, or one of them as JSON.
        tolerance (`float`, *optional*, defaults to `0.0`):
            Goes into the result.

    Returns:
        [`StdinTests`]

    Raises:
        UnreadableTestsError: for anything else, and without a test.

    Example:
    ```python
    >>> read_stdin('[{"input": "1 2", "output": "3"}]').pairs
    (('1 2', '3'),)

    ```
    """
    try:
        found = json.loads(tests) if isinstance(tests, str) else tests
        if isinstance(found, dict):
            pairs = list(zip(found["inputs"], found["outputs"], strict=True))
        else:
            pairs = [(test["input"], test["output"]) for test in found]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UnreadableTestsError(
            f"expected a list of {{input, output}} or {{inputs, outputs}}, got {_shown(tests)}"
        ) from error
    if not pairs or not all(isinstance(text, str) for pair in pairs for text in pair):
        raise UnreadableTestsError(f"expected at least one input and output, as texts, got {_shown(tests)}")
    return StdinTests(tuple(pairs), tolerance)


@functools.lru_cache(maxsize=4096)
def _read_asserts(items: tuple[str, ...], setup: str, entry_point: str) -> AssertTests:
    trees = [_parse(item, f"test {number}") for number, item in enumerate(items)]
    setup_tree = _parse(setup, "the setup")
    _check_entry(entry_point)
    main = entry_point if entry_point.isidentifier() else "candidate" if entry_point else ""
    entries = {main: entry_point} if entry_point else {}
    bound = _names(setup)[0].union(*(_names(item)[0] for item in items))
    for tree in trees:
        if _defines_check(tree):
            if not main:
                raise UnreadableTestsError("the tests define `check(candidate)`, which needs an `entry_point`")
            tree.body += ast.parse(f"check({main})").body
    if "*" not in bound:
        used = _names(setup)[1].union(*(_names(item)[1] for item in items))
        unknown = used - bound - set(dir(builtins)) - set(entries) - {"__name__", "__file__", "__doc__"}
        entries |= {name: name for name in sorted(unknown)}
    if not entries:
        raise UnreadableTestsError("the tests call nothing of the program")
    for tree in [setup_tree, *trees]:
        _check_data_only(tree, set(entries))
    marked, units = mark_asserts(trees)
    return AssertTests(entries, setup, marked, units)


def _parse(code: str, what: str) -> ast.Module:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnreadableTestsError(f"{what} is no Python code ({error})") from error


def _check_entry(entry_point: str) -> None:
    """A name, or attributes and calls without arguments of one: what the program evaluates before each call."""
    if not entry_point:
        return
    try:
        node: ast.AST = ast.parse(entry_point, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise UnreadableTestsError(f"`entry_point` is no Python name: {entry_point!r}") from error
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Call) and not node.args and not node.keywords:
            node = node.func
        else:
            raise UnreadableTestsError(f"expected `entry_point` like `add` or `Solution().add`, got {entry_point!r}")


def _names(code: str) -> tuple[set[str], set[str]]:
    """The names that the code binds at its top level (`*` for a star import), and all global ones that it uses."""
    table = symtable.symtable(code, "tests", "exec")
    bound = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
    }
    used, tables = set(), [table]
    while tables:
        current = tables.pop()
        tables += current.get_children()
        for symbol in current.get_symbols():
            if symbol.is_referenced() and (symbol.is_global() or current is table):
                used.add(symbol.get_name())
            if symbol.is_declared_global() and symbol.is_assigned():
                bound.add(symbol.get_name())
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(ast.parse(code))):
        bound.add("*")
    return bound, used


def _defines_check(tree: ast.Module) -> bool:
    defines = any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body)
    calls = any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "check"
        for node in ast.walk(tree)
    )
    return defines and not calls


def _check_data_only(tree: ast.Module, entries: set[str]) -> None:
    """Refuse tests of the program's own objects, as far as the text shows it."""

    def is_entry(node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id in entries

    made = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and is_entry(node.value.func)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        # A class of the program in `except Error:` or `isinstance(result, Stack)`.
        kinds: list[ast.AST | None] = []
        if isinstance(node, ast.ExceptHandler):
            kinds = [node.type]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CLASS_CHECKS:
            kinds = [*node.args[1:]]
        if any(is_entry(part) for kind in kinds if kind is not None for part in ast.walk(kind)):
            raise UnreadableTestsError(f"the tests use a class of the program: `{ast.unparse(node)[:80]}`")
        if not isinstance(node, ast.Attribute) or node.attr in _DATA_ATTRIBUTES:
            continue
        owner = node.value
        is_result = isinstance(owner, ast.Call) and is_entry(owner.func)
        if is_entry(owner) or is_result or (isinstance(owner, ast.Name) and owner.id in made):
            raise UnreadableTestsError(
                f"the tests use `{ast.unparse(node)}`: only data comes back from the program, so its classes and "
                "objects cannot be tested; test functions, or name a method as `entry_point: Solution().add`"
            )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
