"""Asserts that report whether they hold: the tests' code is rewritten before it runs in its own process."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """
    What counts as one test.

    Args:
        item (`int`):
            The item of the tests in which it stands.
        in_loop (`bool`):
            Whether it can be executed more than once.
        is_item (`bool`, *optional*, defaults to `False`):
            Whether it is a whole item, which has no assert.
    """

    item: int
    in_loop: bool
    is_item: bool = False


def mark_asserts(trees: Sequence[ast.Module]) -> tuple[tuple[str, ...], tuple[Unit, ...]]:
    """
    Put every assert into a `with __checks__(number, may_go_on):`, so that those that hold can be counted.

    An assert statement is one test however often it is executed: in a loop it holds when it holds in every pass and
    the loop comes to its end. An assert of a constant is no test. `may_go_on` is false inside a `try`, where the tests
    themselves may wait for the error.

    Args:
        trees (`Sequence[ast.Module]`):
            The items of the tests; they are changed.

    Returns:
        `tuple[tuple[str, ...], tuple[Unit, ...]]`: the code of the items, and the tests in them.

    Example:
    ```python
    >>> mark_asserts([ast.parse("assert f(1) == 2")])
    (('with __checks__(0, True):\\n    assert f(1) == 2',), (Unit(item=0, in_loop=False, is_item=False),))

    ```
    """
    marker = _Marker()
    codes = []
    for item, tree in enumerate(trees):
        marker.item = item
        before = len(marker.units)
        codes.append(ast.unparse(ast.fix_missing_locations(marker.visit(tree))))
        if len(marker.units) == before:
            marker.units.append(Unit(item, in_loop=False, is_item=True))
    return tuple(codes), tuple(marker.units)


class _Marker(ast.NodeTransformer):
    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.item = 0
        self.loops = 0
        self.tries = 0

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        if not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node.test)):
            return node
        call = ast.Call(
            ast.Name("__checks__", ast.Load()), [ast.Constant(len(self.units)), ast.Constant(self.tries == 0)], []
        )
        self.units.append(Unit(self.item, in_loop=self.loops > 0))
        return ast.With([ast.withitem(call)], [node])

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._inside(node, loops=1)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._inside(node, loops=1)

    def visit_Try(self, node: ast.Try) -> ast.AST:
        return self._inside(node, tries=1)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        # `check` is called once; how often another function is called cannot be seen.
        return self._inside(node, loops=0 if node.name == "check" else 1)

    def _inside(self, node: ast.AST, loops: int = 0, tries: int = 0) -> ast.AST:
        self.loops += loops
        self.tries += tries
        self.generic_visit(node)
        self.loops -= loops
        self.tries -= tries
        return node
