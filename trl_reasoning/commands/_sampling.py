"""What `evaluate` and `sample` have in common: their keys, as flags and as a recipe file, and what they load."""

import argparse
import functools
import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..config.convert import check_choice
from ..config.errors import RecipeError
from ._settings import add_setting_arguments, make_settings, read_settings
from ._weights import load_model, weight_format


if TYPE_CHECKING:
    from datasets import Dataset

    from ..generation import SamplingParams, TransformersBackend


@dataclass
class SamplingSettings:
    """The keys that `evaluate` and `sample` recipes share; each is also a flag of the command, see `HELP`."""

    model: str
    task: str | dict[str, Any]
    output_dir: str
    adapter: str | None = None
    split: str | None = None
    task_params: dict[str, Any] = field(default_factory=dict)
    task_adapter: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    limit: int | None = None
    prompt_template: str | None = None
    system_prompt: str | None = None
    chat_template_kwargs: dict[str, Any] = field(default_factory=dict)
    answer_kind: str = "auto"
    samples: int = 4
    max_new_tokens: int = 1024
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float | None = None
    repetition_penalty: float = 1.0
    stop_strings: list[str] | None = None
    seed: int = 0
    batch_size: int = 32
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    load_in_4bit: bool = False
    bnb_4bit_quant_type: Literal["nf4", "fp4"] | None = None
    use_bnb_nested_quant: bool | None = None
    device: str | None = None
    restart: bool = False


HELP: dict[str, str] = {
    "model": "builtin:tiny, a folder (also one with an adapter alone) or a hub id",
    "task": "builtin:chain, a data file or folder, a hub id, or {path: ..., ...}",
    "output_dir": "folder for the results",
    "adapter": "LoRA adapter to put on the model",
    "split": "split of the task; heldout for a builtin one",
    "task_params": "parameters of a builtin task: {operands: [3, 5], size: 50}",
    "task_adapter": "ready-made column mapping: gsm8k, svamp, math, countdown, deepmath, openr1_math",
    "columns": "our column names to the file's: {question: text, solution: answer}",
    "limit": "take the first N problems",
    "prompt_template": "none, none_text, r1_zero, r1_zero_primed, qwen_boxed, qwen3",
    "system_prompt": "system message before the question",
    "chat_template_kwargs": "for the chat template: {enable_thinking: false}",
    "answer_kind": "kind of answer that the verifier expects: auto, choice, number, text",
    "samples": "completions for each problem",
    "max_new_tokens": "token limit of a completion",
    "temperature": "0 decodes greedily",
    "top_p": "nucleus mass",
    "top_k": "most likely tokens kept; 0 keeps all",
    "min_p": "least probability relative to the most likely token",
    "repetition_penalty": "1 is no penalty",
    "stop_strings": "strings that end a completion: '[\"</answer>\"]'; default: the prompt template's",
    "seed": "seed of the sampling",
    "batch_size": "most completions in one batch",
    "dtype": "data type of the weights: auto, float32, bfloat16, float16",
    "load_in_4bit": "quantize the model to 4 bits (bitsandbytes), a run's base as the run did",
    "bnb_4bit_quant_type": "with load_in_4bit: nf4 or fp4; the run's, or nf4",
    "use_bnb_nested_quant": "with load_in_4bit: quantize the block scales, too; as the run did, or false",
    "device": "cpu, cuda, ...; the first accelerator where there is one",
    "restart": "draw everything again instead of keeping what is there",
}
# Keys that change neither the samples nor the numbers.
_FREE_KEYS = ("output_dir", "restart", "batch_size", "device")


def add_sampling_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Every key of `command` as a flag, and a YAML file with the same keys."""
    module = _command(command)
    add_setting_arguments(parser, module.SETTINGS, {**HELP, **module.OWN_HELP})


def read_sampling_settings(args: argparse.Namespace, extra: Sequence[str], command: str) -> tuple[Any, Path | None]:
    """The settings of `command`, see [`read_settings`], and the folder of the recipe file where there is one."""
    module = _command(command)
    return read_settings(
        module.SETTINGS, args, extra, command, {**HELP, **module.OWN_HELP}, functools.partial(_check, module)
    )


def make_sampling_settings(recipe: str | Path | None, overrides: Sequence[str], command: str) -> Any:
    """Read and check a recipe of kind `evaluate` or `sample`, see [`make_settings`]."""
    module = _command(command)
    return make_settings(
        module.SETTINGS, recipe, overrides, command, {**HELP, **module.OWN_HELP}, functools.partial(_check, module)
    )


def _command(command: str) -> Any:
    """The module of the command: its `SETTINGS` (a class of ours with its own keys), `OWN_HELP` and `check_own`."""
    return importlib.import_module(f".{command}", __package__)


def _check(module: Any, settings: SamplingSettings) -> None:
    _check_values(settings)
    module.check_own(settings)


def _check_values(settings: SamplingSettings) -> None:
    for key, least in (("samples", 1), ("batch_size", 1), ("limit", 1)):
        value = getattr(settings, key)
        if value is not None and value < least:
            raise RecipeError(key, f"expected at least {least}, got {value}")
    for key in ("bnb_4bit_quant_type", "use_bnb_nested_quant"):
        if getattr(settings, key) is not None and not settings.load_in_4bit:
            raise RecipeError(key, "has no effect without `load_in_4bit: true`; set it, or remove this key")
    _check_names(settings)
    sampling_params(settings)


def _check_names(settings: SamplingSettings) -> None:
    from ..answers.verify import KINDS
    from ..data import PROMPTS
    from ..data.source_spec import parse_source

    check_choice(settings.answer_kind, KINDS, "answer_kind")
    if settings.prompt_template is not None:
        check_choice(settings.prompt_template, tuple(PROMPTS), "prompt_template")
    if settings.task is None:  # an evaluation without one
        return
    with source_errors("task"):
        source = parse_source(source_of(settings))
    if source.from_step:
        raise RecipeError("task", "`from_step` is for rows that are trained on; remove it")


@contextmanager
def source_errors(key: str) -> Iterator[None]:
    """Data errors speak of a recipe's `datasets`; here it is another key that names the source."""
    from ..data import DataError

    try:
        yield
    except DataError as error:
        raise RecipeError(key, str(error).removeprefix("datasets: ")) from error


def source_of(settings: SamplingSettings) -> dict[str, Any]:
    """The data source that the settings name, see [`~trl_reasoning.evaluation.task_source`]."""
    from ..evaluation import task_source

    return task_source(
        settings.task,
        split=settings.split,
        params=settings.task_params,
        adapter=settings.task_adapter,
        columns=settings.columns,
    )


def sampling_params(settings: SamplingSettings) -> "SamplingParams":
    """The sampling parameters; stop strings are the prompt template's when the settings name none."""
    from ..evaluation import template_stop_strings
    from ..generation import SamplingParams

    stop_strings = settings.stop_strings
    if stop_strings is None:
        stop_strings = template_stop_strings(settings.prompt_template)
    return SamplingParams(
        max_new_tokens=settings.max_new_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
        min_p=settings.min_p,
        repetition_penalty=settings.repetition_penalty,
        stop_strings=tuple(stop_strings),
        seed=settings.seed,
    )


def identity(settings: SamplingSettings) -> dict[str, Any]:
    """What makes two runs the same: every key that shapes the samples, and the hash of the weights."""
    from ..generation import weights_hash

    keys: Mapping[str, Any] = {
        item.name: getattr(settings, item.name) for item in fields(settings) if item.name not in _FREE_KEYS
    }
    return {
        **keys,
        **weight_format(settings),
        "stop_strings": list(sampling_params(settings).stop_strings),
        "weights": weights_hash(settings.model, settings.adapter),
    }


def load_all(settings: SamplingSettings, base_dir: Path | None) -> "tuple[TransformersBackend, Dataset]":
    """The task first, so that a wrong path is found before the model is loaded."""
    dataset = load_problems(settings, base_dir)
    return load_model(settings), dataset


def load_problems(settings: SamplingSettings, base_dir: Path | None) -> "Dataset":
    """The task's problems with their prompts."""
    from ..evaluation import load_task

    with source_errors("task"):
        return load_task(
            source_of(settings),
            limit=settings.limit,
            prompt_template=settings.prompt_template,
            system_prompt=settings.system_prompt,
            base_dir=base_dir,
        )
