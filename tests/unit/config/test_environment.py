"""Checks against the start of a run: batch arithmetic, ports, accelerate's precision and files."""

import socket
import sys
from pathlib import Path

import pytest

from trl_reasoning.config import RecipeError, accelerate_command, check_environment, recipe_folder
from trl_reasoning.config.environment import check_accelerate_file


@pytest.mark.parametrize(
    ("settings", "processes", "mentions"),
    [
        # 3 x 4 x 1 = 12 is no multiple of 8: 3 x 8 = 24 and 4 x 4 = 16 are, and 6 divides 12 as 12 and 4 do.
        (
            {"per_device_train_batch_size": 3, "gradient_accumulation_steps": 4, "num_generations": 8},
            1,
            [
                "per_device_train_batch_size 3 x gradient_accumulation_steps 4 x 1 process = 12",
                "gradient_accumulation_steps 8 (24 completions)",
                "per_device_train_batch_size 4 (16 completions)",
                "num_generations 6",
            ],
        ),
        # 1 x 4 x 2 = 8 against groups of 16.
        (
            {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 4, "num_generations": 16},
            2,
            ["1 x gradient_accumulation_steps 4 x 2 processes = 8", "steps 8 (16", "size 2 (16", "num_generations 8"],
        ),
        (
            {"per_device_train_batch_size": 2, "steps_per_generation": 3, "num_generations": 4},
            1,
            ["steps_per_generation 3", "= 6", "steps_per_generation 4 (8 completions)"],
        ),
        # Multiples of 4 x 1 and of 6: 12, 24, 36; 24 is nearest to 20.
        (
            {"per_device_train_batch_size": 4, "generation_batch_size": 20, "num_generations": 6},
            1,
            ["generation_batch_size", "20", "nearest: 24"],
        ),
    ],
)
def test_batches_that_hold_no_whole_groups(settings: dict, processes: int, mentions: list[str], load) -> None:
    recipe = load(per_device_train_batch_size=4, num_generations=4)
    recipe.values.update(settings)
    with pytest.raises(RecipeError) as caught:
        check_environment(recipe, environ={"WORLD_SIZE": str(processes)})
    for mention in mentions:
        assert mention in str(caught.value)


def test_batches_that_fit_with_their_processes(load) -> None:
    recipe = load(per_device_train_batch_size=4, num_generations=4)
    recipe.values["num_generations"] = 8
    check_environment(recipe, num_processes=2)
    with pytest.raises(RecipeError, match="= 4 completions"):
        check_environment(recipe)


def test_check_env_false_leaves_the_start_unchecked(write_recipe) -> None:
    from trl_reasoning.config import load_recipe

    path = write_recipe(num_generations=8, env={"MASTER_PORT": "no port"})
    load_recipe(path, check_env=False)
    with pytest.raises(RecipeError, match="num_generations"):
        load_recipe(path)


def test_master_port(load) -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RecipeError, match=f"env.MASTER_PORT: port {port} is taken"):
            load(env={"MASTER_PORT": port})
        recipe = load(env={"OTHER": 1})
        assert recipe.values["env"] == {"OTHER": "1"}
        recipe.values["env"] = {"MASTER_PORT": str(port)}
        check_environment(recipe, environ={"RANK": "0"})  # the launcher holds the port itself
    check_environment(recipe, environ={})
    with pytest.raises(RecipeError, match="not a port number"):
        load(env={"MASTER_PORT": "70000"})


@pytest.mark.parametrize(
    ("changes", "launched", "key"),
    [
        ({"bf16": False}, "bf16", "bf16"),
        ({"bf16": True}, "fp16", "bf16"),
        ({"fp16": True}, "bf16", "fp16"),
        ({"fp16": False}, "fp16", "fp16"),
        ({}, "fp8", None),
    ],
)
def test_precision_that_accelerate_contradicts(changes: dict, launched: str, key: str | None, load) -> None:
    with pytest.raises(RecipeError, match=f"mixed_precision {launched}") as caught:
        check_environment(load(**changes), environ={"ACCELERATE_MIXED_PRECISION": launched})
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("changes", "launched"),
    [
        ({"bf16": True}, "no"),
        ({"bf16": True}, "bf16"),
        ({}, "bf16"),
        ({"bf16": False}, "no"),
        ({"dtype": "float32"}, "bf16"),
    ],
)
def test_precision_that_fits(changes: dict, launched: str, load) -> None:
    check_environment(load(**changes), environ={"ACCELERATE_MIXED_PRECISION": launched})


def test_what_accelerate_says_counts_where_the_recipe_is_silent(prepared, monkeypatch) -> None:
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    run = prepared()
    assert run.args.bf16
    assert run.precision.bf16


@pytest.mark.parametrize(
    "environ", [{"ACCELERATE_USE_FSDP": "true"}, {"ACCELERATE_DEEPSPEED_ZERO_STAGE": "3"}], ids=["fsdp", "zero3"]
)
def test_heldout_needs_whole_weights(environ: dict, load) -> None:
    recipe = load(heldout={"task": "builtin:chain"})
    check_environment(recipe, environ={"ACCELERATE_DEEPSPEED_ZERO_STAGE": "2"})
    with pytest.raises(RecipeError, match=r"heldout: .*trl-reasoning evaluate"):
        check_environment(recipe, environ=environ)


def test_accelerate_command(tmp_path: Path, load, monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # a user's own number of threads is left alone
    command = accelerate_command("cpu_2")
    assert command == [
        sys.executable,
        "-m",
        "accelerate.commands.launch",
        "--config_file",
        str(recipe_folder() / "accelerate" / "cpu_2.yaml"),
    ]
    assert accelerate_command("ddp", num_processes=4)[-2:] == ["--num_processes", "4"]
    with pytest.raises(RecipeError, match="Did you mean `fsdp2`"):
        accelerate_command("fsdp")
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr("trl_reasoning.config.environment._cores", lambda: 6)
    assert accelerate_command("cpu_2")[-2:] == ["--num_cpu_threads_per_process", "3"]
    assert accelerate_command("cpu_2", num_processes=12)[-2:] == ["--num_cpu_threads_per_process", "1"]
    recipe = load()
    recipe.values["num_generations"] = 8
    accelerate_command("cpu_2", recipe=recipe)  # 4 x 1 x 2 processes
    with pytest.raises(RecipeError, match="= 4 completions"):
        accelerate_command("cpu_2", num_processes=1, recipe=recipe)
    file = tmp_path / "mine.yaml"
    file.write_text("distributed_type: 'NO'\nmixed_precision: fp16\n")
    with pytest.raises(RecipeError, match=r"mine.yaml says mixed_precision fp16"):
        accelerate_command(str(file), recipe=load(bf16=True))
    file.write_text("distributed_type: 'NO'\nmixed_precision: 'no'\n")
    with pytest.raises(RecipeError, match=r"bf16: .*mine.yaml says mixed_precision no"):
        accelerate_command(str(file), recipe=load(bf16=True))
    accelerate_command(str(file), recipe=load(bf16=False))
    accelerate_command(str(file), recipe=load())


def test_accelerate_files_are_read_by_accelerate(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("distributed_type: 'NO'\nnum_procceses: 2\n")
    with pytest.raises(RecipeError, match="num_procceses") as caught:
        check_accelerate_file(file)
    assert caught.value.path == file
