"""Checks that depend on where a run starts: processes, ports, and the file that accelerate was given."""

import errno
import math
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import RecipeError, did_you_mean
from .recipe import Recipe, read_mapping
from .shipped import recipe_folder


def check_environment(
    recipe: Recipe, *, num_processes: int | None = None, environ: Mapping[str, str] | None = None
) -> None:
    """
    Check a recipe against the processes and the environment that it starts in.

    Args:
        recipe ([`Recipe`]):
            The recipe.
        num_processes (`int`, *optional*):
            Number of processes; WORLD_SIZE or 1 when not given.
        environ (`Mapping[str, str]`, *optional*):
            The environment; `os.environ` when not given.

    Raises:
        RecipeError: A batch that holds no full groups, a port in use, or a precision that accelerate contradicts.
    """
    environ = os.environ if environ is None else environ
    if recipe.spec.kind == "policy":
        check_batch(recipe, num_processes or process_count(environ))
    port = (recipe.get("env") or {}).get("MASTER_PORT")
    if port is not None and "RANK" not in environ:  # inside a launched process the port is the run's own
        _check_port(port)
    launched = environ.get("ACCELERATE_MIXED_PRECISION")
    check_accelerate_precision(recipe, launched, "the accelerate launch", is_explicit=False)
    is_sharded = environ.get("ACCELERATE_USE_FSDP") == "true" or environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE") == "3"
    if recipe.get("heldout") and is_sharded:
        raise RecipeError(
            "heldout",
            "a model whose weights are sharded (FSDP, DeepSpeed stage 3) cannot be measured while it trains; remove "
            "the key and evaluate the checkpoints with `trl-reasoning evaluate`",
        )


def process_count(environ: Mapping[str, str]) -> int:
    """Number of processes of this run, as a launcher states it."""
    return int(environ.get("WORLD_SIZE", "1"))


def check_batch(recipe: Recipe, processes: int) -> None:
    """
    The completions that are sampled together must be whole groups of `num_generations`.

    Raises:
        RecipeError: Prints the product and the nearest settings that divide.
    """
    generations, per_device = recipe.setting("num_generations"), recipe.setting("per_device_train_batch_size")
    whole = f"{processes} process" + ("es" if processes > 1 else "")
    size = recipe.get("generation_batch_size")
    if size is not None:
        step = per_device * processes
        unit = math.lcm(step, generations)
        if size % unit:
            raise RecipeError(
                "generation_batch_size",
                f"{size} is not a multiple of per_device_train_batch_size {per_device} x {whole} = {step} and of "
                f"num_generations {generations}; nearest: {_nearest_multiple(size, unit)}",
            )
        return
    key = "steps_per_generation" if recipe.get("steps_per_generation") else "gradient_accumulation_steps"
    steps = recipe.setting(key)
    product = per_device * steps * processes
    if product % generations:
        raise RecipeError(
            "num_generations",
            f"per_device_train_batch_size {per_device} x {key} {steps} x {whole} = {product} completions are not "
            f"whole groups of {generations}; nearest: "
            + " | ".join(_nearest_batches(per_device, steps, processes, generations, key)),
        )


def check_accelerate_precision(
    recipe: Recipe, mixed_precision: str | None, source: str, *, is_explicit: bool = True
) -> None:
    """
    Refuse a recipe whose `bf16` or `fp16` contradicts accelerate's `mixed_precision`.

    Args:
        recipe ([`Recipe`]):
            The recipe.
        mixed_precision (`str` or `None`):
            `"no"`, `"bf16"` or `"fp16"`.
        source (`str`):
            Who says so, for the message.
        is_explicit (`bool`, *optional*, defaults to `True`):
            Whether a `"no"` was written by somebody. accelerate tells its processes `"no"` when nobody chose anything,
            and then the recipe decides.
    """
    if mixed_precision is None or (mixed_precision == "no" and not is_explicit):
        return
    if mixed_precision not in ("no", "bf16", "fp16"):
        raise RecipeError(None, f"{source} says mixed_precision {mixed_precision}; this package knows bf16, fp16, no")
    wanted = {"bf16": mixed_precision == "bf16", "fp16": mixed_precision == "fp16"}
    for key in sorted(wanted, key=lambda key: not recipe.get(key)):  # what the recipe switches on is named first
        if recipe.get(key) not in (None, wanted[key]):
            raise RecipeError(
                key,
                f"the recipe says `{key}: {str(recipe.get(key)).lower()}` and {source} says mixed_precision "
                f"{mixed_precision}; remove mixed_precision there (the recipe then decides), or change the recipe",
            )


def find_accelerate_file(name: str) -> Path:
    """The accelerate file of that path, or the shipped one of that name (`fsdp2`)."""
    if Path(name).is_file():
        return Path(name)
    folder = recipe_folder() / "accelerate"
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    if name.removesuffix(".yaml") not in names:
        hint = did_you_mean(name, names)
        raise RecipeError("accelerate", f"no file and no shipped accelerate file {name!r} ({', '.join(names)}).{hint}")
    return folder / f"{name.removesuffix('.yaml')}.yaml"


def check_accelerate_file(path: Path) -> Any:
    """Load an accelerate file with accelerate's own loader; its error names the file."""
    from accelerate.commands.config.config_args import load_config_from_file

    read_mapping(path)  # also finds keys that are written twice
    try:
        return load_config_from_file(str(path))
    except (ValueError, TypeError) as error:
        raise RecipeError(None, f"not an accelerate file: {error}", path=path) from error


def accelerate_command(name: str, *, num_processes: int | None = None, recipe: Recipe | None = None) -> list[str]:
    """
    The command that starts accelerate with a file of `recipes/accelerate/`.

    Args:
        name (`str`):
            Name of a shipped file, or a path.
        num_processes (`int`, *optional*):
            Number of processes; the file's when not given.
        recipe ([`Recipe`], *optional*):
            Checked against the file: its precision, and the batch with that number of processes.

    Returns:
        `list[str]`: to be followed by `-m trl_reasoning ...`.
    """
    path = find_accelerate_file(name)
    config = check_accelerate_file(path)
    if recipe is not None:
        check_accelerate_precision(recipe, config.mixed_precision, str(path))
        if recipe.spec.kind == "policy":
            check_batch(recipe, num_processes or max(config.num_processes, 1))
    command = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(path)]
    command += ["--num_processes", str(num_processes)] if num_processes else []
    # The cores shared out among the processes: accelerate alone may leave each with one thread. A user's
    # OMP_NUM_THREADS stays in force: accelerate reads it when the option is absent.
    if "OMP_NUM_THREADS" not in os.environ:
        threads = _cores() // (num_processes or max(config.num_processes, 1))
        command += ["--num_cpu_threads_per_process", str(max(1, threads))]
    return command


def _cores() -> int:
    # Not every system can say which cores this process may use.
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _check_port(port: str) -> None:
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise RecipeError("env.MASTER_PORT", f"{port!r} is not a port number")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", int(port)))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise RecipeError("env.MASTER_PORT", f"port {port} cannot be used: {error.strerror}") from error
            raise RecipeError(
                "env.MASTER_PORT",
                f"port {port} is taken, perhaps by another run; write another one, or remove the key",
            ) from error


def _nearest_batches(per_device: int, steps: int, processes: int, generations: int, key: str) -> list[str]:
    """One change each of the three settings that makes whole groups."""
    more_steps = _nearest_multiple(steps, generations // math.gcd(generations, per_device * processes))
    wider = _nearest_multiple(per_device, generations // math.gcd(generations, steps * processes))
    product = per_device * steps * processes
    settings = [
        f"{key} {more_steps} ({per_device * more_steps * processes} completions)",
        f"per_device_train_batch_size {wider} ({wider * steps * processes} completions)",
    ]
    divisors = [size for size in range(2, product + 1) if product % size == 0]
    if divisors:
        settings.append(f"num_generations {min(divisors, key=lambda size: (abs(size - generations), size))}")
    return settings


def _nearest_multiple(value: int, unit: int) -> int:
    return max(1, round(value / unit)) * unit
