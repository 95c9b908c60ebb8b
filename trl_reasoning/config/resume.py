"""Checks of a checkpoint against the recipe that goes on from it."""

import json
from pathlib import Path

import yaml

from .errors import RecipeError
from .recipe import Recipe


# What decides which prompts a step sees; a checkpoint's place in the data means something else under other values.
LAYOUT_KEYS = (
    "num_generations",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "steps_per_generation",
    "generation_batch_size",
    "num_iterations",
)


def check_resume(recipe: Recipe, processes: int) -> None:
    """
    A checkpoint that the recipe names must exist, and its run must have had the same batch layout.

    The layout is read from `resolved.yaml` and `environment.json` in the checkpoint's run folder, where they exist.

    Raises:
        RecipeError: Names the key, both values and the checkpoint.
    """
    checkpoint = recipe.get("resume_from_checkpoint")
    if checkpoint is False:
        raise RecipeError(
            "resume_from_checkpoint", "false: a run goes on by itself; the flag --restart starts it again"
        )
    if checkpoint is None or checkpoint is True:
        return
    folder = Path(checkpoint)
    if not folder.is_dir():
        raise RecipeError(
            "resume_from_checkpoint", f"no folder {checkpoint}; the newest checkpoint is found by itself"
        )
    resolved, environment = folder.parent / "resolved.yaml", folder.parent / "environment.json"
    if resolved.is_file():
        before = yaml.safe_load(resolved.read_text(encoding="utf-8"))
        for key in LAYOUT_KEYS:
            _compare(key, recipe, before, checkpoint)
    if environment.is_file():
        there = json.loads(environment.read_text(encoding="utf-8")).get("processes", processes)
        if there != processes:
            raise RecipeError(
                "resume_from_checkpoint",
                f"{checkpoint} was saved with {there} processes and this run has {processes}; start as many",
            )


def _compare(key: str, recipe: Recipe, before: dict, checkpoint: str) -> None:
    from .schema import method_fields

    if key not in method_fields(recipe.method):
        return
    here = recipe.setting(key)
    there = before.get(key, method_fields(recipe.method)[key].default)
    if here != there:
        raise RecipeError(
            key,
            f"{here} in this recipe and {there} in the run of {checkpoint}: the sampler's place in the data would not "
            f"fit. Write `{key}: {there}`, or start a new run in another `output_dir`",
        )
