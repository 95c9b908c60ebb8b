"""Reading a pipeline file: keys, types and references are checked before anything runs."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..config.errors import RecipeError
from ..config.overrides import parse_overrides
from ..config.recipe import read_mapping
from ..config.shipped import find_recipe
from ..errors import did_you_mean
from .definition import KINDS, Pipeline, Stage, references


PIPELINE_KEYS = ("name", "output_dir", "seed", "variables", "defaults", "report", "stages")
REPORT_KEYS = ("title", "difficulty_label")
STAGE_KEYS = ("name", "kind", "role", "recipe", "with", "of", "time_limit_of", "accelerate", "num_processes")
_KEYS_OF_ONE_KIND = {"of": "evaluate", "time_limit_of": "train", "accelerate": "train", "num_processes": "train"}
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def load_pipeline(path: str | Path, overrides: Sequence[str] = (), *, seed: int | None = None) -> Pipeline:
    """
    Read and check a pipeline file.

    ```yaml
    name: r1                                     # heading of the report, unless `report: {title: ...}` says otherwise
    output_dir: outputs/r1                       # unless the command says otherwise
    seed: 0                                      # of every stage
    variables: {base: builtin:tiny}              # for ${variables.base} in `with:`
    defaults:                                    # settings of all stages of a kind
      evaluate: {samples: 4}
    stages:
      - {name: base, kind: evaluate, role: base, recipe: ../eval/chain.yaml, with: {model: "${variables.base}"}}
      - {name: cold_start, kind: train, role: sft, recipe: ../sft/sft_tiny.yaml}
      - name: rl
        kind: train
        role: rl
        recipe: ../rl/dr_grpo_tiny.yaml          # starts at the pipeline file's folder
        with: {model_name_or_path: "${stages.cold_start.model}", heldout.every: 10}
        accelerate: fsdp2                        # and num_processes; by default chosen for the machine
      - {name: rl_eval, kind: evaluate, of: rl, recipe: ../eval/chain.yaml}    # its numbers go into rl's row
      - {name: control, kind: train, role: control, recipe: ../sft/sft_tiny.yaml, time_limit_of: rl}
    ```

    A setting in `with:` replaces that of the defaults and of the recipe; a dotted key reaches inside. Besides
    `${stages.NAME.model}` there are `records`, `metrics` and `output_dir`, see `KINDS`, and `${output_dir}`,
    `${name}`, `${seed}` of the pipeline itself.

    Args:
        path (`str` or `Path`):
            The YAML file, or the name of a shipped pipeline.
        overrides (`Sequence[str]`, *optional*):
            Words `--stages.NAME.KEY VALUE` (a setting of one stage) or `--variables.NAME VALUE`.
        seed (`int`, *optional*):
            Seed of every stage; the file's `seed` when not given.

    Returns:
        `Pipeline`: the stages in order, with the defaults of their kinds merged in.

    Raises:
        `RecipeError`: for an unknown key, a wrong type, a reference to a stage that is unknown or comes later.
    """
    file = find_recipe(path)
    try:
        return _read_pipeline(read_mapping(file), file, overrides, seed)
    except RecipeError as error:
        error.path = error.path or file
        raise


def _read_pipeline(document: dict[str, Any], file: Path, overrides: Sequence[str], seed: int | None) -> Pipeline:
    _check_keys(document, PIPELINE_KEYS, "")
    if not isinstance(document.get("stages"), list) or not document["stages"]:
        raise RecipeError("stages", f"expected a list of stages, got {document.get('stages')!r}")
    for key in ("variables", "defaults", "report"):
        _check_type(document.setdefault(key, {}), dict, key, "a mapping")
    _check_keys(document["defaults"], tuple(KINDS), "defaults")
    for kind, settings in document["defaults"].items():
        _check_type(settings, dict, f"defaults.{kind}", "a mapping of recipe keys")
    _check_keys(document["report"], REPORT_KEYS, "report")
    for key, text in document["report"].items():
        _check_type(text, str, f"report.{key}", "text")
    if any(references(document["variables"])):
        raise RecipeError("variables", "cannot refer to stages; write the reference into the stage's `with:`")
    seed = document.get("seed") if seed is None else seed
    if seed is not None:
        _check_type(seed, int, "seed", "a whole number")
    for key in ("name", "output_dir"):
        if key in document:
            _check_type(document[key], str, key, "text")
    name = str(document.get("name", file.stem))
    entries = enumerate(document["stages"])
    pipeline = Pipeline(
        name=name,
        stages=[_read_stage(entry, index, document["defaults"], file.parent) for index, entry in entries],
        output_dir=str(document.get("output_dir", f"outputs/{name}")),
        seed=seed,
        variables=document["variables"],
        report=document["report"],
    )
    _apply_overrides(pipeline, overrides)
    _check_references(pipeline)
    return pipeline


def _read_stage(entry: Any, index: int, defaults: dict[str, Any], base_dir: Path) -> Stage:
    where = f"stages[{index}]"
    _check_type(entry, dict, where, "a mapping with `name`, `kind`, `recipe`")
    _check_keys(entry, STAGE_KEYS, where)
    name, kind = entry.get("name"), entry.get("kind")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise RecipeError(f"{where}.name", f"expected small letters, digits and _, got {name!r}")
    where = f"stages.{name}"
    if not isinstance(kind, str) or kind not in KINDS:
        raise RecipeError(f"{where}.kind", f"got {kind!r}; known: {', '.join(KINDS)}.{did_you_mean(str(kind), KINDS)}")
    for key, wanted in _KEYS_OF_ONE_KIND.items():
        if key in entry and kind != wanted:
            raise RecipeError(f"{where}.{key}", f"is for stages of kind {wanted!r}, this one is {kind!r}")
    roles = KINDS[kind].roles
    role = entry.get("role", None if kind == "train" else roles[0])
    if role not in roles:
        hint = did_you_mean(str(role), roles)
        raise RecipeError(f"{where}.role", f"got {role!r}; expected one of {', '.join(roles)}.{hint}")
    settings = entry.get("with", {})
    _check_type(settings, dict, f"{where}.with", "a mapping of recipe keys")
    for key in ("recipe", "of", "time_limit_of", "accelerate"):
        if entry.get(key) is not None:
            _check_type(entry[key], str, f"{where}.{key}", "text")
    for key in settings:
        _check_type(key, str, f"{where}.with", "keys that are text")
    recipe = entry.get("recipe")
    if recipe is None and kind == "train":
        raise RecipeError(f"{where}.recipe", "missing; a training stage needs a recipe file")
    if recipe is not None and not (base_dir / recipe).is_file():
        raise RecipeError(f"{where}.recipe", f"no file {str(base_dir / recipe)!r} (paths start at the pipeline file)")
    processes = entry.get("num_processes")
    if processes is not None:
        _check_type(processes, int, f"{where}.num_processes", "a whole number")
        if processes < 1:
            raise RecipeError(f"{where}.num_processes", f"expected at least 1, got {processes}")
    return Stage(
        name=name,
        kind=kind,
        role=role,
        recipe=base_dir / recipe if recipe is not None else None,
        settings={**defaults.get(kind, {}), **settings},
        of=entry.get("of"),
        time_limit_of=entry.get("time_limit_of"),
        accelerate=entry.get("accelerate"),
        num_processes=processes,
    )


def _apply_overrides(pipeline: Pipeline, overrides: Sequence[str]) -> None:
    stages = {stage.name: stage for stage in pipeline.stages}
    for option, value in parse_overrides(overrides):
        head, _, rest = option.partition(".")
        name, _, key = rest.partition(".")
        if head == "variables" and name in pipeline.variables and not key:
            pipeline.variables[name] = value
        elif head == "stages" and name in stages and key:
            stages[name].settings[key] = value
        else:
            known = [
                *(f"--stages.{name}.KEY" for name in stages),
                *(f"--variables.{key}" for key in pipeline.variables),
            ]
            raise RecipeError(option, f"is not a key of this pipeline; known: {', '.join(known)}")


def _check_references(pipeline: Pipeline) -> None:
    """Names are unique and each reference names an earlier stage and something that a stage of its kind makes."""
    earlier: dict[str, Stage] = {}
    every = [stage.name for stage in pipeline.stages]
    for stage in pipeline.stages:
        where = f"stages.{stage.name}"
        if stage.name in earlier:
            raise RecipeError(f"{where}.name", "two stages have this name")
        wanted = [(f"{where}.with", *reference) for reference in references(stage.settings)]
        wanted += [(f"{where}.of", stage.of, "model")] if stage.of else []
        wanted += [(f"{where}.time_limit_of", stage.time_limit_of, "model")] if stage.time_limit_of else []
        for key, name, output in wanted:
            if name not in earlier:
                problem = "comes later" if name in every else "is unknown"
                known = ", ".join(earlier) or "none"
                hint = did_you_mean(name, earlier)
                raise RecipeError(key, f"stage {name!r} {problem}; earlier stages: {known}.{hint}")
            known = ("output_dir", *KINDS[earlier[name].kind].outputs)
            if output not in known:
                hint = did_you_mean(str(output), known)
                raise RecipeError(key, f"stage {name!r} has no {output!r}, only {', '.join(known)}.{hint}")
        if stage.time_limit_of and earlier[stage.time_limit_of].kind != "train":
            raise RecipeError(f"{where}.time_limit_of", f"{stage.time_limit_of!r} is not a training stage")
        for key, is_set in (("output_dir", True), ("model", stage.of), ("max_seconds", stage.time_limit_of)):
            if is_set and key in stage.settings:
                raise RecipeError(f"{where}.with.{key}", "is set by the pipeline; remove it")
        earlier[stage.name] = stage
        pipeline.resolve(stage, Path())


def _check_keys(mapping: dict[str, Any], known: Sequence[str], where: str) -> None:
    for key in mapping:
        if key not in known:
            place = f"{where}.{key}" if where else str(key)
            raise RecipeError(place, f"unknown key; known: {', '.join(known)}.{did_you_mean(str(key), known)}")


def _check_type(value: Any, expected: type, key: str, words: str) -> None:
    if not isinstance(value, expected) or isinstance(value, bool):
        raise RecipeError(key, f"expected {words}, got {value!r}")
