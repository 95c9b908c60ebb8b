"""What `evaluate` and `sample` have in common: their keys, as flags and as a recipe file, and what they load."""

import argparse
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..config.convert import check_choice, convert
from ..config.errors import RecipeError, did_you_mean
from ..config.overrides import apply_override, parse_overrides
from ..config.recipe import read_mapping, resolve_interpolations
from ..config.shipped import find_recipe


if TYPE_CHECKING:
    from datasets import Dataset

    from ..generation import Backend, SamplingParams


@dataclass
class SamplingSettings:
    """The keys of an `evaluate` or `sample` recipe; each is also a flag of the command, see `HELP`."""

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
    device: str | None = None
    restart: bool = False


HELP: dict[str, str] = {
    "model": "builtin:tiny, a folder (also one with an adapter alone) or a hub id",
    "task": "builtin:chain, a data file or folder, a hub id, or {path: ..., ...}",
    "output_dir": "folder for the results",
    "adapter": "LoRA adapter to put on the model",
    "split": "split of the task; heldout for a builtin one",
    "task_params": "parameters of a builtin task: {operands: [3, 5], size: 50}",
    "task_adapter": "ready-made column mapping: gsm8k, math, ...",
    "columns": "our column names to the file's: {question: text, solution: answer}",
    "limit": "take the first so many problems",
    "prompt_template": "none, r1_zero, qwen_boxed, qwen3",
    "system_prompt": "system message before the question",
    "chat_template_kwargs": "for the chat template: {enable_thinking: false}",
    "answer_kind": "kind of answer that the verifier expects",
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
    "dtype": "data type of the weights",
    "load_in_4bit": "quantize the model to 4 bits (bitsandbytes)",
    "device": "cpu, cuda, ...; the first accelerator where there is one",
    "restart": "draw everything again instead of keeping what is there",
}
FIELDS: dict[str, Field] = {item.name: item for item in fields(SamplingSettings)}
# Keys that change neither the samples nor the numbers.
_FREE_KEYS = ("output_dir", "restart", "batch_size", "device")


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    """Every key as a flag; values stay text here and are read as YAML later, like those of a recipe's overrides."""
    parser.allow_abbrev = False
    parser.add_argument("recipe", nargs="?", help="YAML file with the keys below; flags override it")
    for name, item in FIELDS.items():
        flag: dict[str, Any] = {"nargs": "?", "const": "true"} if item.type is bool else {}
        text = HELP[name] + (f" (default {item.default})" if _has_shown_default(item) else "")
        parser.add_argument(
            f"--{name}",
            default=argparse.SUPPRESS,
            metavar="VALUE",
            help=text.replace("%", "%%"),
            **flag,
        )


def read_settings(
    args: argparse.Namespace, extra: Sequence[str], command: str
) -> tuple[SamplingSettings, Path | None]:
    """
    The settings of a command from its recipe and its flags.

    Args:
        args (`argparse.Namespace`):
            Of a parser with [`add_sampling_arguments`].
        extra (`Sequence[str]`):
            Words the parser did not know: `--task_params.size 50`, or an error.
        command (`str`):
            `"evaluate"` or `"sample"`; what a recipe's `kind` has to be.

    Returns:
        `tuple[SamplingSettings, Path | None]`: the settings, and the folder of the recipe file where there is one.

    Raises:
        [`~trl_reasoning.config.RecipeError`]: names the key, what was expected and the nearest spelling.
    """
    flags = [f"--{name}={vars(args)[name]}" for name in FIELDS if name in vars(args)]
    recipe, extra = _give_back_value(args.recipe, list(extra))
    _check_keys([word[2:].partition("=")[0].partition(".")[0] for word in extra if word.startswith("--")], command)
    base_dir = None if recipe is None else find_recipe(recipe).parent
    return make_settings(recipe, [*flags, *extra], command), base_dir


def _give_back_value(recipe: str | None, extra: list[str]) -> tuple[str | None, list[str]]:
    """argparse takes the word after a flag it does not know (`--task_params.size 50`) for the recipe: undo that."""
    alone = [
        place
        for place, word in enumerate(extra)
        if word.startswith("--") and "=" not in word and (extra[place + 1 :] or ["--"])[0].startswith("--")
    ]
    if recipe is None or not alone or Path(recipe).is_file():
        return recipe, extra
    return None, [*extra[: alone[0] + 1], recipe, *extra[alone[0] + 1 :]]


def make_settings(recipe: str | Path | None, overrides: Sequence[str], command: str) -> SamplingSettings:
    """
    Read and check a recipe of kind `evaluate` or `sample`; loads neither data nor a model.

    Args:
        recipe (`str` or `Path`, *optional*):
            YAML file, or the name of a shipped recipe.
        overrides (`Sequence[str]`):
            Words `--key value`.
        command (`str`):
            The kind.

    Returns:
        [`SamplingSettings`]

    Raises:
        [`~trl_reasoning.config.RecipeError`]: as [`read_settings`].
    """
    file = find_recipe(recipe) if recipe is not None else None
    try:
        values = read_mapping(file) if file is not None else {}
        return _check(values, overrides, command)
    except RecipeError as error:
        error.path = file
        raise


def _check(values: dict[str, Any], overrides: Sequence[str], command: str) -> SamplingSettings:
    kind = values.pop("kind", command)
    if kind != command:
        raise RecipeError("kind", f"{kind!r} is not a recipe of `trl-reasoning {command}`; expected `kind: {command}`")
    for key, value in parse_overrides(overrides):
        apply_override(values, key, value)
    hints = typing.get_type_hints(SamplingSettings)
    _check_keys(values, command)
    for key, item in FIELDS.items():
        if key not in values and item.default is MISSING and item.default_factory is MISSING:
            raise RecipeError(key, f"is missing: {HELP[key]}")
    checked = {key: convert(value, hints[key], key) for key, value in resolve_interpolations(values).items()}
    settings = SamplingSettings(**checked)
    for key, least in (("samples", 1), ("batch_size", 1), ("limit", 1)):
        value = getattr(settings, key)
        if value is not None and value < least:
            raise RecipeError(key, f"expected at least {least}, got {value}")
    _check_names(settings)
    sampling_params(settings)
    return settings


def _check_keys(keys: Iterable[Any], command: str) -> None:
    for key in keys:
        if key not in FIELDS:
            raise RecipeError(str(key), f"not a key of `{command}`.{did_you_mean(str(key), FIELDS)}")


def _check_names(settings: SamplingSettings) -> None:
    from ..answers.verify import KINDS
    from ..data import PROMPTS
    from ..data.source_spec import parse_source

    check_choice(settings.answer_kind, KINDS, "answer_kind")
    if settings.prompt_template is not None:
        check_choice(settings.prompt_template, tuple(PROMPTS), "prompt_template")
    with _task_errors():
        parse_source(source_of(settings))


@contextmanager
def _task_errors() -> Iterator[None]:
    """Data errors speak of a recipe's `datasets`; here the key is `task`."""
    from ..data import DataError

    try:
        yield
    except DataError as error:
        raise RecipeError("task", str(error).removeprefix("datasets: ")) from error


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

    keys: Mapping[str, Any] = {key: getattr(settings, key) for key in FIELDS if key not in _FREE_KEYS}
    return {
        **keys,
        "stop_strings": list(sampling_params(settings).stop_strings),
        "weights": weights_hash(settings.model, settings.adapter),
    }


def load_all(settings: SamplingSettings, base_dir: Path | None) -> "tuple[Backend, Dataset]":
    """The task first, so that a wrong path is found before the model is loaded."""
    from ..evaluation import load_task
    from ..generation import load_backend

    with _task_errors():
        dataset = load_task(
            source_of(settings),
            limit=settings.limit,
            prompt_template=settings.prompt_template,
            system_prompt=settings.system_prompt,
            base_dir=base_dir,
        )
    backend = load_backend(
        settings.model,
        settings.adapter,
        dtype=settings.dtype,
        load_in_4bit=settings.load_in_4bit,
        device=settings.device,
        batch_size=settings.batch_size,
    )
    return backend, dataset


def _has_shown_default(item: Field) -> bool:
    return item.default is not MISSING and item.default is not None and item.type is not bool
