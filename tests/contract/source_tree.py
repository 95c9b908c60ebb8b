"""The repository as the contract tests read it: files, modules and imports, from the source text alone."""

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "trl_reasoning"


@dataclass(frozen=True)
class Import:
    """
    One import statement's target.

    Args:
        module (`str`):
            Absolute dotted name of the imported module.
        names (`tuple[str, ...]`):
            Imported names of a `from` import.
        line (`int`):
            Line in the file.
        is_local (`bool`):
            Whether it stands inside a function.
        is_typing (`bool`):
            Whether it stands under `if TYPE_CHECKING:`.
    """

    module: str
    names: tuple[str, ...]
    line: int
    is_local: bool
    is_typing: bool


def modules() -> list[Path]:
    """Every Python file of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def relative(path: Path) -> str:
    """The path below the repository, with slashes."""
    return path.relative_to(REPOSITORY).as_posix()


def imports_of(path: Path) -> list[Import]:
    """Every import of a file, function-level ones included; relative imports are made absolute."""
    return list(_walk(ast.parse(path.read_text()), path, is_local=False, is_typing=False))


def repository_files() -> list[Path]:
    """Every file that git tracks or would track; empty outside a git checkout."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    names = result.stdout.split("\0") if result.returncode == 0 else []
    return [REPOSITORY / name for name in names if name and (REPOSITORY / name).is_file()]


def _walk(node: ast.AST, path: Path, *, is_local: bool, is_typing: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, (), child.lineno, is_local, is_typing)
        elif isinstance(child, ast.ImportFrom):
            names = tuple(alias.name for alias in child.names)
            yield Import(_absolute(child, path), names, child.lineno, is_local, is_typing)
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            yield from _walk(child, path, is_local=is_local, is_typing=True)
        else:
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _walk(child, path, is_local=is_local or is_function, is_typing=is_typing)


def _absolute(node: ast.ImportFrom, path: Path) -> str:
    if node.level == 0:
        return node.module or ""
    package = list(path.relative_to(REPOSITORY).parent.parts)
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, *(node.module.split(".") if node.module else [])])
