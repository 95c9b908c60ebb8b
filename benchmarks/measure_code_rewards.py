"""Compare the code reward with a plain exec of the official tests, on reference solutions and on mutants of them."""

import ast
import copy
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from trl_reasoning.data import load_source
from trl_reasoning.rewards.code import make_code_tests_reward


_FILE = Path("data") / "humaneval.jsonl.gz"
_OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Mod: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_LIMITS = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"


def measure(name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Score every reference solution and its mutants with the reward and with a plain exec, and compare the verdicts.

    Args:
        name (`str`):
            Name of the experiment.
        settings (`dict[str, Any]`):
            `data` (`env:NAME`), `mutants` (of each solution), `seconds`, `workers`, `seeds` (the first one is used).

    Returns:
        `tuple[dict[str, Any], str]`: right solutions, mutants, those killed, disagreements, programs per second, and
        the break-down of the partial credit of killed mutants; and a summary.
    """
    path = Path(os.environ[settings["data"].removeprefix("env:")]) / _FILE
    rows: list[dict[str, Any]] = list(load_source({"path": str(path), "adapter": "humaneval"}))  # type: ignore[arg-type]
    draw = random.Random(settings["seeds"][0])
    jobs: list[tuple[dict[str, Any], str]] = []
    for row in rows:
        found = sorted(set(mutants(row["solution"], row["entry_point"])))
        jobs += [(row, code) for code in draw.sample(found, min(len(found), settings["mutants"]))]
    right, _, right_seconds = _score([(row, row["solution"]) for row in rows], "strict", settings)
    strict, statuses, mutant_seconds = _score(jobs, "strict", settings)
    partial, _, _ = _score(jobs, "partial", settings)
    with ThreadPoolExecutor(settings["workers"]) as pool:
        plain = list(pool.map(lambda job: plain_exec(job[0], job[1], settings["seconds"]), jobs))
    disagreements = [
        {"task": row["task_id"], "code": code, "plain": is_right, "reward": score}
        for (row, code), is_right, score in zip(jobs, plain, strict, strict=True)
        if float(is_right) != score
    ]
    killed = [share for share, score in zip(partial, strict, strict=True) if score == 0]
    figures = {
        "solutions": len(rows),
        "solutions_right": sum(score == 1 for score in right),
        "mutants": len(jobs),
        "mutants_killed": len(killed),
        "statuses": dict(Counter(statuses)),
        "disagreements": disagreements,
        "partial_is_one_where_strict_is": all((a == 1) == (b == 1) for a, b in zip(partial, strict, strict=True)),
        "partial_credit_of_killed_mean": round(sum(killed) / len(killed), 3),
        "partial_credit_of_killed_zero": sum(share == 0 for share in killed),
        "solutions_per_second": round(len(rows) / right_seconds, 1),
        "mutants_per_second": round(len(jobs) / mutant_seconds, 1),
    }
    summary = (
        f"{figures['solutions_right']} of {len(rows)} reference solutions right; {len(jobs)} mutants, "
        f"{len(killed)} killed, {len(disagreements)} verdicts other than those of a plain exec; "
        f"{figures['solutions_per_second']} right programs and {figures['mutants_per_second']} mutants per second, "
        f"{settings['workers']} workers"
    )
    return figures, summary


def mutants(solution: str, entry_point: str) -> Iterator[str]:
    """Every change of one operator, constant or return in the function that is tested."""
    tree = ast.parse(solution)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == entry_point]
    places = [place for place, node in enumerate(ast.walk(functions[-1])) if _changed(node)]
    for place in places:
        for number in range(len(_changed(list(ast.walk(functions[-1]))[place]))):
            mutant = copy.deepcopy(functions[-1])
            _changed(list(ast.walk(mutant))[place])[number]()
            rest = [node for node in tree.body if node is not functions[-1]]
            yield ast.unparse(ast.fix_missing_locations(ast.Module([*rest, mutant], [])))


def _changed(node: Any) -> list[Callable[[], None]]:
    """The changes that a node allows, as functions that make them."""
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _OPERATORS:
        return [lambda: setattr(node, "op", _OPERATORS[type(node.op)]())]
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _OPERATORS:
        return [lambda: node.ops.__setitem__(0, _OPERATORS[type(node.ops[0])]())]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return [lambda: setattr(node, "value", not node.value)]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        value = node.value
        return [lambda: setattr(node, "value", value + 1), lambda: setattr(node, "value", -value - 1)]
    if isinstance(node, ast.Return) and node.value is not None:
        return [lambda: setattr(node, "value", ast.Constant(None))]
    return []


def plain_exec(row: dict[str, Any], code: str, seconds: float) -> bool:
    """Whether a plain exec of program and official tests in one process ends without an error, in time."""
    source = f"{_LIMITS}{row['code_prompt']}\n{code}\n{row['tests'][0]}\ncheck({row['entry_point']})\n"
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", f"exec({source!r}, {{'__name__': 'program'}})"],
                capture_output=True,
                cwd=folder,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0


def _score(
    jobs: list[tuple[dict[str, Any], str]], credit: str, settings: dict[str, Any]
) -> tuple[list[float], list[str], float]:
    reward = make_code_tests_reward(credit=credit, seconds=settings["seconds"], workers=settings["workers"])
    reward.check_ready()
    columns: dict[str, Any] = {
        name: [row[name] for row, _ in jobs] for name in ("tests", "entry_point", "code_prompt")
    }
    completions = [f"```python\n{code}\n```" for _, code in jobs]
    extra: dict[str, list[str]] = {}
    started = time.monotonic()
    scores = reward(
        [""] * len(jobs),
        completions,
        [[0]] * len(jobs),
        log_extra=lambda name, values: extra.update({name: values}),
        **columns,
    )
    return [float(score or 0) for score in scores], extra["code_status"], time.monotonic() - started
