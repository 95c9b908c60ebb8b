"""Check the same answers with `answers.verify_batch`, math-verify and TRL's accuracy reward: verdicts and time."""

import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from verify_rows import Check, gsm8k_checks, hostile_checks, math_checks, math_golds


SIDES = ("ours", "math_verify", "trl")
_WARM_UP = (r"\boxed{\sin 2x}", r"2\sin x\cos x"), (r"\boxed{\sin 2y}", r"2\sin y\cos y")


def measure(name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Check right, wrong and hostile answers with each side.

    The pool of workers is started, and math-verify imported, before any clock. Everything runs on one core, the
    workers included, except the batch, which has two. Answers of a repetition are new to all caches ("cold"); a second
    pass over them has the caches' help on our side ("warm").

    Args:
        name (`str`):
            Name of the experiment.
        settings (`dict[str, Any]`):
            `shared` (`env:NAME` of a folder), `repetitions`, `rows`, `long_thought`, `batch`, `batch_shares`,
            `batch_repetitions`, `hostile_seconds`, `hostile_memory_mb`, `seeds` (the first one is used).

    Returns:
        `tuple[dict[str, Any], str]`: for each kind the ratios of times (theirs / ours, median, least and greatest),
        microseconds an answer and verdicts; hostile answers one by one; seconds of the batch; the load of the
            machine, which it shared with other work; and a summary.
    """
    folder = Path(os.environ[settings["shared"].removeprefix("env:")])
    cores = sorted(os.sched_getaffinity(0))
    golds = math_golds(folder)
    makers: dict[str, Callable[[random.Random], list[Check]]] = {
        "gsm8k": lambda draw: gsm8k_checks(folder, draw, settings["rows"]),
        "gsm8k_long": lambda draw: gsm8k_checks(folder, draw, settings["rows"], thought=settings["long_thought"]),
        "math": lambda draw: math_checks(golds, draw, settings["rows"]),
    }
    os.sched_setaffinity(0, cores[:1])
    _warm_up(*SIDES)
    kinds = {kind: _compare(make, settings) for kind, make in makers.items()}
    os.sched_setaffinity(0, cores)
    figures = {
        "load": os.getloadavg()[0],
        "kinds": kinds,
        "hostile": _hostile(name, settings),
        "batch_seconds": [_in_process("batch", name, str(seed)) for seed in range(settings["batch_repetitions"])],
        "batch_seconds_without_hostile": _in_process("batch", name, "-1"),
    }
    summary = "; ".join(
        f"({kind}) {found['speedup']['math_verify']['median']:.0f}x math-verify, "
        f"{found['speedup']['trl']['median']:.0f}x TRL's reward, {found['us']['ours']:.0f} us each, wrong verdicts "
        + ", ".join(f"{side} {found['verdicts'][side]['wrong_verdicts']}" for side in SIDES)
        + f" of {found['known']}"
        for kind, found in kinds.items()
    )
    batch = sorted(run["seconds"] for run in figures["batch_seconds"])
    return figures, (
        f"{summary}; batch of {settings['batch']} {statistics.median(batch):.2f} s [{batch[0]:.2f}, {batch[-1]:.2f}]; "
        f"load {figures['load']:.0f} on {len(cores)} cores"
    )


def check_all(side: str, checks: Sequence[Check]) -> list[bool | None]:
    """Verdicts of one side as its users call it; `None` where it gives none."""
    if side == "ours":
        from trl_reasoning.answers import verify_batch

        verdicts = verify_batch([check.prediction for check in checks], [check.gold for check in checks])
        return [None if verdict.score is None else verdict.is_right for verdict in verdicts]
    if side == "trl":
        from trl.rewards import accuracy_reward

        rewards = accuracy_reward(
            [[{"content": check.prediction}] for check in checks], [check.gold for check in checks]
        )
        return [None if reward is None else reward == 1.0 for reward in rewards]
    from math_verify import parse, verify

    return [verify(parse(f"${check.gold}$"), parse(check.prediction)) for check in checks]


def _warm_up(*sides: str) -> None:
    """Import all and start the workers, two of them at once."""
    checks = [Check(answer, gold, True) for answer, gold in _WARM_UP]
    for side in sides:
        check_all(side, checks)


def _compare(make: Callable[[random.Random], list[Check]], settings: dict[str, Any]) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {side: [] for side in (*SIDES, "ours_warm")}
    found: dict[str, list[bool | None]] = {side: [] for side in SIDES}
    all_checks: list[Check] = []
    for repetition in range(settings["repetitions"]):
        checks = make(random.Random(f"{settings['seeds'][0]} {repetition}"))
        all_checks += checks
        for side in SIDES if repetition % 2 else reversed(SIDES):
            started = time.perf_counter()
            found[side] += check_all(side, checks)
            seconds[side].append(time.perf_counter() - started)
        started = time.perf_counter()
        check_all("ours", checks)
        seconds["ours_warm"].append(time.perf_counter() - started)
    known = [(number, check.is_right) for number, check in enumerate(all_checks) if check.is_right is not None]
    return {
        "speedup": {side: _ratios(seconds[side], seconds["ours"]) for side in ("math_verify", "trl")},
        "speedup_warm": {side: _ratios(seconds[side], seconds["ours_warm"]) for side in ("math_verify", "trl")},
        "us": {side: 1e6 * statistics.median(taken) / settings["rows"] for side, taken in seconds.items()},
        "answers": len(all_checks),
        "known": len(known),
        "verdicts": {
            side: {
                "wrong_verdicts": sum(bool(found[side][number]) != is_right for number, is_right in known),
                "false_accepts": sum(found[side][number] is True and not is_right for number, is_right in known),
                "none": found[side].count(None),
                "as_ours": sum(
                    bool(theirs) == bool(ours) for theirs, ours in zip(found[side], found["ours"], strict=True)
                ),
            }
            for side in SIDES
        },
    }


def _ratios(theirs: list[float], ours: list[float]) -> dict[str, float]:
    ratios = [one / two for one, two in zip(theirs, ours, strict=True)]
    return {"median": statistics.median(ratios), "least": min(ratios), "greatest": max(ratios)}


def _hostile(name: str, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Each hostile answer in a process of its own, with limits on time and memory."""
    return [
        {
            "answer": check.prediction[:60],
            **{
                side: _in_process("hostile", name, side, str(number), seconds=settings["hostile_seconds"])
                for side in SIDES[:2]
            },
        }
        for number, check in enumerate(hostile_checks())
    ]


def _in_process(*arguments: str, seconds: float | None = None) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__)), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=Path(__file__).parent, timeout=seconds and seconds + 30
        )
    except subprocess.TimeoutExpired:
        return {"outcome": "ended from outside", "seconds": seconds}
    if done.returncode:
        return {"outcome": f"died with code {done.returncode}", "error": done.stderr.strip()[-200:]}
    return json.loads(done.stdout.splitlines()[-1])


def _run_hostile(settings: dict[str, Any], side: str, number: str) -> dict[str, Any]:
    _warm_up(side)
    check = hostile_checks()[int(number)]
    limit = settings["hostile_memory_mb"] * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    started = time.perf_counter()
    verdict = check_all(side, [check])[0]
    return {"outcome": verdict, "seconds": time.perf_counter() - started}


def _run_batch(settings: dict[str, Any], seed: str) -> dict[str, Any]:
    """A mixed batch, new to all caches, after the pool has started; a negative seed leaves the hostile answers out."""
    _warm_up("ours")
    folder = Path(os.environ[settings["shared"].removeprefix("env:")])
    draw = random.Random(f"batch {seed}")
    count = {kind: round(share * settings["batch"]) for kind, share in settings["batch_shares"].items()}
    checks = gsm8k_checks(folder, draw, count["gsm8k"]) + math_checks(math_golds(folder), draw, count["math"])
    if int(seed) >= 0:
        checks += draw.sample(hostile_checks(), count["hostile"])
    checks += gsm8k_checks(folder, draw, settings["batch"] - len(checks))
    draw.shuffle(checks)
    started = time.perf_counter()
    verdicts = check_all("ours", checks)
    return {"seconds": time.perf_counter() - started, "right": verdicts.count(True), "answers": len(checks)}


def main(kind: str, name: str, *arguments: str) -> None:
    """Run one part in this process and print its figures."""
    from run import load_settings

    run = {"batch": _run_batch, "hostile": _run_hostile}[kind]
    print(json.dumps(run(load_settings(name), *arguments)))


if __name__ == "__main__":
    main(*sys.argv[1:])
