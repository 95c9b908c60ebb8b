"""What will happen to each stage: it is done, it goes on or it starts again."""

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from ..config.errors import RecipeError
from ..errors import did_you_mean
from .definition import Pipeline, Stage
from .state import read_state


@dataclass(frozen=True)
class PlannedStage:
    """
    What will happen to one stage.

    Args:
        stage (`Stage`):
            The stage.
        folder (`Path`):
            Its folder; also the folder of the model it makes.
        fingerprint (`str`):
            See [`Pipeline.fingerprint`].
        run (`str`):
            Names this making of the stage: kept when it goes on, new when it starts again.
        action (`str`):
            `skip` (done, or not asked for), `run`, or `continue` (it did not finish before).
        note (`str`):
            Why, for the person at the terminal.
    """

    stage: Stage
    folder: Path
    fingerprint: str
    run: str
    action: str
    note: str


@dataclass(frozen=True)
class StageCheck:
    """
    A stage to be checked.

    Args:
        stage (`Stage`):
            The stage.
        settings (`dict[str, Any]`):
            Its settings with all references filled in.
        folder (`Path`):
            Its folder.
        is_ready (`bool`):
            Whether everything its settings refer to is there; if not, only the recipe itself can be checked.
    """

    stage: Stage
    settings: dict[str, Any]
    folder: Path
    is_ready: bool


def plan_stages(
    pipeline: Pipeline, root: Path, *, only: str | None = None, start: str | None = None, restart: bool = False
) -> list[PlannedStage]:
    """
    Decide for each stage whether it is done, has to run or can go on.

    Args:
        pipeline (`Pipeline`):
            A checked pipeline.
        root (`Path`):
            Its output folder.
        only (`str`, *optional*):
            Run this stage alone.
        start (`str`, *optional*):
            Run this stage and the ones after it.
        restart (`bool`, *optional*, defaults to `False`):
            Run the chosen stages again, even if they are done.

    Returns:
        `list[PlannedStage]`: one entry a stage, in order.

    Raises:
        `RecipeError`: for an unknown stage name, a chosen stage that needs one which is not done, a stage folder that
        no pipeline made.
    """
    names = [stage.name for stage in pipeline.stages]
    for option, name in (("--only", only), ("--from", start)):
        if name is not None and name not in names:
            raise RecipeError(option, f"no stage {name!r}; stages: {', '.join(names)}.{did_you_mean(name, names)}")
    chosen = [only] if only else names[names.index(start) if start else 0 :]
    planned: dict[str, PlannedStage] = {}
    for stage in pipeline.stages:
        folder = root / "stages" / stage.name
        before = read_state(folder)
        # Not only how an earlier stage was made counts but also which making of it this is.
        fingerprint = pipeline.fingerprint(
            stage, {name: f"{entry.fingerprint} {entry.run}" for name, entry in planned.items()}
        )
        if stage.name in chosen:
            action, note = _action(pipeline, stage, folder, fingerprint, restart)
        else:  # it counts as it is
            action, note, fingerprint = "skip", "not chosen", before.get("fingerprint", fingerprint)
        if action != "skip":
            _check_needs(stage, chosen, root)
        run = uuid.uuid4().hex[:8] if action == "run" else before.get("run", "")
        planned[stage.name] = PlannedStage(stage, folder, fingerprint, run, action, note)
    return list(planned.values())


def _action(pipeline: Pipeline, stage: Stage, folder: Path, fingerprint: str, restart: bool) -> tuple[str, str]:
    before = read_state(folder)
    if not before:
        if folder.is_dir() and any(folder.iterdir()):
            raise RecipeError(f"stages.{stage.name}", f"{folder} holds files that no pipeline wrote; move them away")
        return "run", ""
    if restart:
        return "run", "starts again"
    if before["fingerprint"] != fingerprint:
        return "run", f"starts again, {_difference(before, pipeline, stage)}"
    if before["status"] == "finished":
        return "skip", "done before"
    return "continue", f"goes on, it was {before['status']}"


def _difference(before: dict[str, Any], pipeline: Pipeline, stage: Stage) -> str:
    old, new = before["settings"], pipeline.resolve(stage, Path())
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    if keys:
        shown = ", ".join(f"{key} was {old.get(key)!r} and is {new.get(key)!r}" for key in keys[:3])
        return shown + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
    if before["version"] != __version__:
        return f"the package was {before['version']} and is {__version__}"
    return "its recipe or a stage that it refers to changed"


def _check_needs(stage: Stage, chosen: list[str], root: Path) -> None:
    for name in stage.needs:
        if name not in chosen and read_state(root / "stages" / name).get("status") != "finished":
            raise RecipeError(
                f"stages.{stage.name}", f"needs stage {name!r}, which is not finished; run it first: --only {name}"
            )
