"""Running a pipeline: which stages are done, each other one in a process of its own, one report at the end."""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context
from pathlib import Path

from . import __version__
from .errors import UserError
from .stages import (
    KINDS,
    Outcome,
    Pipeline,
    PlannedStage,
    Stage,
    StageCheck,
    default_accelerate,
    last_lines,
    load_pipeline,
    plan_stages,
    read_state,
    references,
    report_curves,
    report_rows,
    run_process,
    stage_command,
    write_state,
)


__all__ = ["PlannedStage", "load_pipeline", "plan_stages", "run_pipeline"]

LOG_FILE = "log.txt"
FAILURE_LINES = 15


def run_pipeline(
    pipeline: Pipeline,
    root: str | Path,
    *,
    only: str | None = None,
    start: str | None = None,
    restart: bool = False,
    dry_run: bool = False,
    check: Callable[[Sequence[StageCheck]], None] | None = None,
    say: Callable[[str], None] = print,
    on_progress: Callable[[str], None] = lambda line: None,
) -> int:
    """
    Run the stages that are not done, then write the report.

    Args:
        pipeline (`Pipeline`):
            A checked pipeline.
        root (`str` or `Path`):
            The output folder: `stages/NAME/` for each stage, `report.md`, `report.json` and plots.
        only, start, restart:
            See [`plan_stages`].
        dry_run (`bool`, *optional*, defaults to `False`):
            Check every stage and print the plan, run nothing.
        check (`Callable[[Sequence[StageCheck]], None]`, *optional*):
            Checks the recipes of the stages that will run, in a process of its own; it has to be picklable. Without it
            each stage's command checks its recipe when its turn comes.
        say (`Callable[[str], None]`, *optional*, defaults to `print`):
            Gets one line for each thing that happened.
        on_progress (`Callable[[str], None]`, *optional*):
            Gets the last line of the running stage's log, a few times a second.

    Returns:
        `int`: 0, 1 when a stage failed, 130 or 143 when it was stopped by Ctrl-C or SIGTERM.

    Raises:
        `UserError`: when a stage cannot run as it is written; nothing has run then.
    """
    root = Path(root)
    with nullcontext() if dry_run else _lock(root):
        planned = plan_stages(pipeline, root, only=only, start=start, restart=restart)
        say(f"{pipeline.name}: {len(planned)} stages, output in {root}")
        accelerate = _check_before_running(pipeline, planned, root, check)
        if dry_run:
            for number, entry in enumerate(planned, start=1):
                say(f"{_label(number, planned)}: would {entry.action}{f', {entry.note}' if entry.note else ''}")
            return 0
        code = 0
        for number, entry in enumerate(planned, start=1):
            label = _label(number, planned)
            if entry.action == "skip":
                say(f"{label}: skipped, {entry.note}")
                continue
            say(f"{label}: {entry.note or 'starts'}; log: {entry.folder / LOG_FILE}")
            if entry.action == "run":
                _clear(entry.folder, keep=not restart)
            outcome, status = _run_stage(pipeline, entry, root, accelerate, say, on_progress)
            code = _report_outcome(entry, outcome, status, label, say)
            if code:
                break
        _write_report(pipeline, root, say)
    return code


def _check_before_running(
    pipeline: Pipeline, planned: list[PlannedStage], root: Path, check: Callable[[Sequence[StageCheck]], None] | None
) -> str:
    """
    Check the stages that will run and choose the accelerate file for this machine.

    In a process that is gone when the stages run: it imports torch, and a trainer's arguments take hold of the GPU.
    """
    checks = [
        StageCheck(entry.stage, pipeline.resolve(entry.stage, root), entry.folder, _is_ready(entry, planned))
        for entry in planned
        if entry.action != "skip"
    ]
    chooses = any(KINDS[entry.stage.kind].is_launched and entry.stage.accelerate is None for entry in checks)
    if not chooses and (check is None or not checks):
        return ""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        if check is not None:
            pool.submit(check, checks).result()
        return pool.submit(default_accelerate).result() if chooses else ""


def _is_ready(entry: PlannedStage, planned: list[PlannedStage]) -> bool:
    named = {name for name, _ in references(entry.stage.settings)}
    return named.issubset(other.stage.name for other in planned if other.action == "skip")


def _run_stage(
    pipeline: Pipeline,
    entry: PlannedStage,
    root: Path,
    accelerate: str,
    say: Callable[[str], None],
    on_progress: Callable[[str], None],
) -> tuple[Outcome, str]:
    stage, folder = entry.stage, entry.folder
    folder.mkdir(parents=True, exist_ok=True)
    limit = None
    if stage.time_limit_of:
        limit = json.loads((root / "stages" / stage.time_limit_of / "run.json").read_text())["seconds"]
    settings = pipeline.resolve(stage, root)
    command = stage_command(stage, settings, folder, accelerate=accelerate, max_seconds=limit)
    state = {
        "name": stage.name,
        "kind": stage.kind,
        "role": stage.role,
        "status": "running",
        "fingerprint": entry.fingerprint,
        "run": entry.run,
        "settings": pipeline.resolve(stage, Path()),
        "version": __version__,
        "seconds": read_state(folder).get("seconds", 0.0),
        "command": command,
    }
    write_state(folder, state)
    started = time.monotonic()

    def show(line: str) -> None:
        on_progress(f"{stage.name}, {_duration(time.monotonic() - started)}: {line}")

    outcome = run_process(command, folder / LOG_FILE, on_progress=show, announce=say)
    if outcome.returncode == 0 and _has_output(stage, folder):
        status = "finished"
    else:
        status = "failed" if outcome.signal is None else "interrupted"
    write_state(folder, {**state, "status": status, "seconds": state["seconds"] + outcome.seconds})
    return outcome, status


def _has_output(stage: Stage, folder: Path) -> bool:
    """Whether a stage whose process ended well finished: a training that was stopped may end well, too."""
    if not KINDS[stage.kind].is_launched:
        return True
    run = folder / "run.json"
    return run.is_file() and json.loads(run.read_text())["status"] == "finished"


def _report_outcome(entry: PlannedStage, outcome: Outcome, status: str, label: str, say: Callable[[str], None]) -> int:
    log = entry.folder / LOG_FILE
    if status == "finished":
        say(f"{label}: finished in {_duration(outcome.seconds)}")
    elif status == "failed":
        say(f"{label}: failed with exit code {outcome.returncode}; the end of {log}:")
        say("\n".join(f"    {line}" for line in last_lines(log, FAILURE_LINES).splitlines()))
        return 1
    if outcome.signal is not None:
        where = "after" if status == "finished" else "in"
        say(f"stopped {where} stage {entry.stage.name}; the same command goes on from there")
        return outcome.exit_code
    return 0


def _clear(folder: Path, *, keep: bool) -> None:
    """Empty a stage's folder; with `keep` its files go to `<folder>.previous` in place of those that lie there."""
    if not folder.exists():
        return
    if keep:
        previous = folder.with_name(f"{folder.name}.previous")
        if previous.exists():
            shutil.rmtree(previous)
        folder.rename(previous)
    else:
        shutil.rmtree(folder)


def _write_report(pipeline: Pipeline, root: Path, say: Callable[[str], None]) -> None:
    from .evaluation import stage_table, write_report

    rows = report_rows(pipeline, root)
    report = write_report(root, rows, report_curves(pipeline, root), **{"title": pipeline.name, **pipeline.report})
    say(f"\n{stage_table(report['stages'])}")
    say(f"report: {root / 'report.md'}")


@contextmanager
def _lock(root: Path) -> Iterator[None]:
    """One pipeline at a time in an output folder; the system frees the lock of a killed one."""
    import fcntl

    root.mkdir(parents=True, exist_ok=True)
    with open(root / ".lock", "w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{root}: another pipeline is running in this folder; choose another --output_dir"
            ) from None
        yield


def _label(number: int, planned: list[PlannedStage]) -> str:
    stage = planned[number - 1].stage
    return f"[{number}/{len(planned)}] {stage.name} ({stage.kind})"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
