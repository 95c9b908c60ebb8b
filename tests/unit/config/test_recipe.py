"""Reading a recipe file: YAML, overrides, names, choices, and the way back to YAML."""

from pathlib import Path

import pytest
import yaml

from trl_reasoning.config import METHODS, RecipeError, load_recipe, make_recipe, recipe_names
from trl_reasoning.config.overrides import apply_override, parse_overrides


def test_values_are_typed_and_the_file_is_named(write_recipe) -> None:
    path = write_recipe(learning_rate="1e-6", lr_scheduler_type="cosine", save_steps=20, max_steps=5.0)
    recipe = load_recipe(path)
    assert recipe.method == "dr_grpo"
    assert recipe.spec is METHODS["dr_grpo"]
    assert recipe.path == path
    assert recipe.values["learning_rate"] == 1e-6
    assert recipe.values["max_steps"] == 5
    assert type(recipe.values["max_steps"]) is int
    assert "method" not in recipe.values
    assert recipe.get("beta") is None
    assert recipe.setting("beta") == 0.0
    assert load_recipe(path, ["--method", "grpo"]).setting("beta") == 0.04


def test_errors_name_the_file(write_recipe) -> None:
    path = write_recipe(learning_rte=1)
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    assert caught.value.path == path
    assert caught.value.key == "learning_rte"
    assert str(caught.value).startswith(f"{path}: learning_rte: ")
    assert "Did you mean `learning_rate`?" in str(caught.value)


@pytest.mark.parametrize(
    ("base", "changes", "mentions"),
    [
        ("sft", {"beta": 0.1}, ["beta", "`method: sft` does not read this key", "grpo, dr_grpo"]),
        ("sft", {"reward_funcs": ["accuracy"]}, ["reward_funcs", "belongs to: grpo, dr_grpo"]),
        ("grpo", {"packing": True}, ["packing", "belongs to: sft"]),
        ("grpo", {"max_seq_length": 5}, ["max_seq_length", "max_length"]),
        ("grpo", {"warmup_ratio": 0.1}, ["warmup_ratio", "warmup_steps: 0.1"]),
        ("grpo", {"vllm_mode": "colocated"}, ["vllm_mode", "colocate, server"]),
        ("grpo", {"loss_type": "drgrpo"}, ["loss_type", "dr_grpo"]),
        ("grpo", {"scale_rewards": "std"}, ["scale_rewards", "group, batch, none"]),
        ("grpo", {"lr_scheduler_type": "cosin"}, ["lr_scheduler_type", "Did you mean `cosine`"]),
        ("grpo", {"optim": "adamw8bit"}, ["optim", "adamw_8bit"]),
        ("grpo", {"report_to": ["tensorbord"]}, ["report_to", "Did you mean `tensorboard`"]),
        ("grpo", {"attn_implementation": "flash_attention2"}, ["attn_implementation", "flash_attention_2"]),
        ("grpo", {"save_strategy": "step"}, ["save_strategy", "steps"]),
        ("grpo", {"dtype": "float16x"}, ["dtype", "Did you mean `float16`"]),
        ("grpo", {"prompt_template": "r1zero"}, ["prompt_template", "Did you mean `r1_zero`"]),
        ("sft", {"answer_form": "box"}, ["answer_form", "Did you mean `boxed`"]),
        ("grpo", {"parallelism_config": {"cp_size": 2}}, ["parallelism_config", "cannot be written"]),
        ("grpo", {"lora_target_modules": 5.5}, []),
    ],
)
def test_wrong_keys_and_choices(base: str, changes: dict, mentions: list[str], load) -> None:
    if not mentions:
        assert load(base, **changes).values["lora_target_modules"] == "5.5"
        return
    with pytest.raises(RecipeError) as caught:
        load(base, **changes)
    for mention in mentions:
        assert mention in str(caught.value)


@pytest.mark.parametrize(
    ("base", "changes"),
    [
        ("grpo", {"scale_rewards": False}),
        ("grpo", {"scale_rewards": "batch"}),
        ("grpo", {"attn_implementation": "kernels-community/flash-attn"}),
        ("grpo", {"report_to": "none"}),
        ("grpo", {"lora_target_modules": "all-linear", "use_peft": True}),
        ("sft", {"assistant_only_loss": None}),
    ],
)
def test_right_values_pass(base: str, changes: dict, load) -> None:
    load(base, **changes)


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("- method: grpo\n", ["mapping", "a list"]),
        ("", ["mapping", "nothing"]),
        ("method: grpo\nseed: 1\nseed: 2\n", ["seed", "written twice", "line 3"]),
        ("method: sft\nheldout: {every: 1, every: 2}\n", ["every", "written twice"]),
        ("method: [grpo\n", ["not valid YAML"]),
        ("seed: 1\n", ["method", "sft, grpo, dr_grpo"]),
        ("method: [grpo]\n", ["method", "sft, grpo, dr_grpo"]),
        ("method: sft\nseed: ${missing}\n", ["seed", "missing"]),
    ],
)
def test_wrong_files(text: str, mentions: list[str], tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    for mention in mentions:
        assert mention in str(caught.value)


def test_interpolation(write_recipe, monkeypatch) -> None:
    monkeypatch.setenv("RUN_NAME", "first")
    path = write_recipe(num_generations="${per_device_train_batch_size}", run_name="${oc.env:RUN_NAME}")
    recipe = load_recipe(path, ["--per_device_train_batch_size", "6"])
    assert recipe.values["num_generations"] == 6
    assert recipe.values["run_name"] == "first"


def test_overrides_are_checked_as_the_file_is(write_recipe) -> None:
    words = ["--learning_rate", "2e-6", "--heldout.task=builtin:chain", "--heldout.every", "5"]
    recipe = load_recipe(write_recipe(), [*words, "--datasets.0.size", "4", "--use_peft"])
    assert recipe.values["learning_rate"] == 2e-6
    assert recipe.values["heldout"] == {"task": "builtin:chain", "every": 5}
    assert recipe.values["datasets"] == [{"path": "builtin:chain", "size": 4}]
    assert recipe.values["use_peft"] is True
    for words, mention in (
        (["--learning-rate", "1"], "learning_rate"),
        (["--learning_rate", "fast"], "expected a number"),
        (["--learning_rate"], "expected a number"),
        (["--reward_funcs", "accuracy"], "[accuracy]"),
        (["--reward_weights", "1.0", "0.5"], "[a, b]"),
        (["learning_rate", "1"], "--key value"),
        (["--datasets.1.size", "4"], "1 entries"),
        (["--seed.x", "4"], "seed"),
    ):
        with pytest.raises(RecipeError, match=mention.replace("[", r"\[")):
            load_recipe(write_recipe(seed=3), words)


def test_override_values_are_yaml_or_text_as_typed() -> None:
    words = [
        "--a",
        "[1, x]",
        "--b",
        "{k: 1}",
        "--c",
        "Answer: yes",
        "--d",
        "# no",
        "--e",
        "null",
        "--f",
        "-1",
        "--g",
        "",
    ]
    words += ["--h", "[a"]
    assert parse_overrides(words) == [
        ("a", [1, "x"]),
        ("b", {"k": 1}),
        ("c", "Answer: yes"),
        ("d", "# no"),
        ("e", None),
        ("f", -1),
        ("g", ""),
        ("h", "[a"),
    ]


def test_apply_override_makes_missing_mappings() -> None:
    values: dict = {"env": None}
    apply_override(values, "env.A", "1")
    assert values == {"env": {"A": "1"}}


def test_yaml_round_trip(load, tmp_path: Path) -> None:
    recipe = load(learning_rate="1e-6", reward_funcs=["accuracy", {"name": "format", "weight": 0.5}], run_name="a: b")
    text = recipe.to_yaml()
    assert text.startswith("method: dr_grpo\n")
    assert yaml.safe_load(text) == {"method": "dr_grpo", **recipe.values}
    path = tmp_path / "again.yaml"
    path.write_text(text)
    assert load_recipe(path).values == recipe.values


def test_shipped_names(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "smoke/grpo_tiny" in recipe_names()
    assert load_recipe("smoke/grpo_tiny", check_env=False).name == "grpo_tiny"
    assert load_recipe("recipes/smoke/grpo_tiny.yaml", check_env=False).name == "grpo_tiny"
    with pytest.raises(RecipeError, match="Did you mean `smoke/grpo_tiny`"):
        load_recipe("smoke/grpo_tinny")


def test_a_recipe_as_a_mapping(tmp_path: Path) -> None:
    recipe = make_recipe({"method": "sft", "model_name_or_path": "m", "datasets": [{"path": "a/b"}]}, ["--seed", "3"])
    assert recipe.values["seed"] == 3
    assert recipe.name == "sft"
    assert recipe.base_dir is None
