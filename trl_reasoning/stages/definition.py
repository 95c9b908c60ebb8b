"""The stages of a pipeline: their kinds, the references between them and their fingerprints."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .. import __version__
from ..config.errors import RecipeError
from ..config.recipe import read_mapping


@dataclass(frozen=True)
class StageKind:
    """
    What a kind of stage is.

    Args:
        outputs (`dict[str, str]`):
            What later stages may refer to as `${stages.NAME.<key>}`, and its path inside the stage's folder.
        roles (`tuple[str, ...]`):
            What the stage's row in the report may be called; the first one is the default. Empty where the pipeline
            has to say it.
        is_seeded (`bool`):
            Whether the command takes `--seed`.
        is_launched (`bool`):
            Whether the command runs under accelerate.
    """

    outputs: dict[str, str]
    roles: tuple[str, ...]
    is_seeded: bool = True
    is_launched: bool = False


TRAIN_ROLES = ("sft", "rl", "preference", "reward", "distillation", "control")
KINDS: dict[str, StageKind] = {
    "train": StageKind({"model": "."}, TRAIN_ROLES, is_launched=True),
    "evaluate": StageKind({"records": "records.jsonl", "metrics": "metrics.json"}, ("eval", "base", *TRAIN_ROLES)),
    "sample": StageKind({"records": "records.jsonl", "step_labels": "step_labels.jsonl"}, ("sample",)),
    "export": StageKind({"model": "."}, ("export",), is_seeded=False),
}
_REFERENCE = re.compile(r"\$\{\s*stages\b([^}]*)\}")


@dataclass
class Stage:
    """
    One stage: a command, a recipe and its overrides.

    Args:
        name (`str`):
            Name of the stage and of its folder.
        kind (`str`):
            A key of `KINDS`; also the name of the command.
        role (`str`):
            What the report calls the stage's model: `base`, `sft`, `rl`, `preference`, `control`, ...
        recipe (`Path`, *optional*):
            The recipe file; a stage that is not training can do without one.
        settings (`dict[str, Any]`):
            Overrides of the recipe, the pipeline's defaults for this kind included, references not yet filled in.
        of (`str`, *optional*):
            The stage whose model an evaluation measures; its numbers go into that stage's row.
        time_limit_of (`str`, *optional*):
            The training stage whose training time is the limit of this one.
        accelerate (`str`, *optional*):
            Name of a file in `recipes/accelerate/`; chosen by the device when not given.
        num_processes (`int`, *optional*):
            Number of training processes; the accelerate file's when not given.
    """

    name: str
    kind: str
    role: str
    recipe: Path | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    of: str | None = None
    time_limit_of: str | None = None
    accelerate: str | None = None
    num_processes: int | None = None

    @property
    def needs(self) -> list[str]:
        """Names of the stages that this one refers to, each once."""
        named = [self.of, self.time_limit_of, *(name for name, _ in references(self.settings))]
        return list(dict.fromkeys(name for name in named if name))


@dataclass
class Pipeline:
    """
    A checked pipeline file.

    Args:
        name (`str`):
            Heading of the report.
        stages (`list[Stage]`):
            Stages in the order in which they run.
        output_dir (`str`):
            Where to write unless the command says otherwise.
        seed (`int`, *optional*):
            Seed of every stage that names none of its own.
        variables (`dict[str, Any]`):
            Values for `${variables.NAME}` in the settings of stages.
        report (`dict[str, str]`):
            `title` and `difficulty_label` of the report.
    """

    name: str
    stages: list[Stage]
    output_dir: str
    seed: int | None = None
    variables: dict[str, Any] = field(default_factory=dict)
    report: dict[str, str] = field(default_factory=dict)

    def resolve(self, stage: Stage, root: Path) -> dict[str, Any]:
        """
        The stage's settings with every reference filled in.

        Args:
            stage (`Stage`):
                One of the pipeline's stages.
            root (`Path`):
                The pipeline's output folder.

        Returns:
            `dict[str, Any]`: settings as the stage's command gets them.
        """
        folders = {
            other.name: {
                "output_dir": str(root / "stages" / other.name),
                **{key: str(root / "stages" / other.name / path) for key, path in KINDS[other.kind].outputs.items()},
            }
            for other in self.stages
        }
        try:
            tree = OmegaConf.create(
                {
                    "name": self.name,
                    "output_dir": str(root),
                    "seed": self.seed,
                    "variables": self.variables,
                    "stages": folders,
                    "settings": stage.settings,
                }
            )
            settings: Any = OmegaConf.to_container(tree.settings, resolve=True)
        except OmegaConfBaseException as error:
            key = f"stages.{stage.name}.with"
            known = ", ".join(["name", "output_dir", "seed", *(f"variables.{name}" for name in self.variables)])
            message = f"{str(error).splitlines()[0]}; known here: stages.NAME.KEY of an earlier stage, {known}"
            raise RecipeError(key, message) from error
        if stage.of:
            settings["model"] = folders[stage.of]["model"]
        if self.seed is not None and KINDS[stage.kind].is_seeded:
            settings.setdefault("seed", self.seed)
        return settings

    def fingerprint(self, stage: Stage, earlier: dict[str, str]) -> str:
        """
        A hash of everything the pipeline knows that can change a stage's result.

        It covers the stage's settings, what its recipe says (comments aside), the fingerprints of the stages it
        refers to and the version of this package. It doesn't cover the contents of data files and of model folders
        that no stage made. It does not depend on where the output folder lies.

        Args:
            stage (`Stage`):
                One of the pipeline's stages.
            earlier (`dict[str, str]`):
                Fingerprints of the stages before it, by name.

        Returns:
            `str`: 64 hexadecimal digits.
        """
        content = {
            "kind": stage.kind,
            "recipe": read_mapping(stage.recipe) if stage.recipe else None,
            "settings": self.resolve(stage, Path()),
            "time_limit_of": stage.time_limit_of,
            "accelerate": [stage.accelerate, stage.num_processes],
            "needs": {name: earlier[name] for name in stage.needs},
            "version": __version__,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def references(settings: Any) -> Iterator[tuple[str, str | None]]:
    """
    Every `${stages.NAME.KEY}` inside nested settings.

    Args:
        settings (`Any`):
            A dict, list or scalar.

    Yields:
        `tuple[str, str | None]`: stage name and key; the key is `None` when it is missing.

    Example:

    ```python
    >>> list(references({"model": "${stages.rl.model}", "samples": 4}))
    [('rl', 'model')]

    ```
    """
    if isinstance(settings, str):
        for match in _REFERENCE.finditer(settings):
            name, _, key = match[1].strip().removeprefix(".").partition(".")
            yield name, key or None
    elif isinstance(settings, dict):
        for value in settings.values():
            yield from references(value)
    elif isinstance(settings, list):
        for value in settings:
            yield from references(value)
