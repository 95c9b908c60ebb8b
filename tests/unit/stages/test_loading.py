"""A pipeline file is checked whole before anything runs."""

import pytest

from trl_reasoning.config.errors import RecipeError
from trl_reasoning.stages import load_pipeline


GOOD = """
name: tiny
variables: {model: builtin:tiny}
defaults:
  evaluate: {samples: 2, temperature: 1.0}
stages:
  - {name: base, kind: evaluate, role: base, with: {model: "${variables.model}", task: builtin:chain}}
  - {name: rl, kind: train, role: rl, recipe: rl.yaml, with: {learning_rate: 5.0e-5}}
  - {name: rl_eval, kind: evaluate, of: rl, with: {task: builtin:chain, samples: 4}}
  - {name: control, kind: train, role: control, recipe: rl.yaml, time_limit_of: rl}
"""


@pytest.fixture
def write(tmp_path):
    (tmp_path / "rl.yaml").write_text("method: dr_grpo\n")

    def write_pipeline(text: str):
        path = tmp_path / "pipeline.yaml"
        path.write_text(text)
        return path

    return write_pipeline


def test_the_defaults_of_a_kind_are_merged_and_the_stage_wins(write):
    pipeline = load_pipeline(write(GOOD))
    base, rl, rl_eval, control = pipeline.stages
    assert base.settings == {
        "samples": 2,
        "temperature": 1.0,
        "model": "${variables.model}",
        "task": "builtin:chain",
    }
    assert rl_eval.settings["samples"] == 4
    assert rl.settings == {"learning_rate": 5.0e-5}
    assert (rl.recipe, rl.role) == (pipeline.stages[3].recipe, "rl")
    assert (rl_eval.role, control.time_limit_of) == ("eval", "rl")
    assert [stage.needs for stage in pipeline.stages] == [[], [], ["rl"], ["rl"]]


def test_overrides_change_settings_and_variables(write):
    words = ["--stages.rl.learning_rate", "1e-6", "--variables.model=Qwen/Qwen3-0.6B", "--stages.rl.heldout.every=5"]
    pipeline = load_pipeline(write(GOOD), words)
    assert pipeline.stages[1].settings == {"learning_rate": "1e-6", "heldout.every": 5}
    assert pipeline.variables == {"model": "Qwen/Qwen3-0.6B"}


@pytest.mark.parametrize(
    ("old", "new", "key", "words"),
    [
        ("name: tiny", "nmae: tiny", "nmae", ["unknown key", "`name`"]),
        ("kind: train, role: rl", "kind: trian, role: rl", "stages.rl.kind", ["'trian'", "`train`"]),
        ("time_limit_of: rl", "time_limit: rl", "stages[3].time_limit", ["unknown key", "`time_limit_of`"]),
        ("role: control", "role: controll", "stages.control.role", ["'controll'", "`control`"]),
        ("role: rl,", "", "stages.rl.role", ["None", "sft, rl, preference"]),
        ("recipe: rl.yaml, with", "with", "stages.rl.recipe", ["missing"]),
        ("recipe: rl.yaml, with", "recipe: lr.yaml, with", "stages.rl.recipe", ["lr.yaml"]),
        ("of: rl,", "of: lr,", "stages.rl_eval.of", ["'lr' is unknown", "base, rl"]),
        ("of: rl,", "of: control,", "stages.rl_eval.of", ["'control' comes later"]),
        ("of: rl,", "of: base,", "stages.rl_eval.of", ["'base' has no 'model'", "records"]),
        ("time_limit_of: rl", "time_limit_of: base", "stages.control.time_limit_of", ["'base'"]),
        ("{learning_rate: 5.0e-5}", "{output_dir: x}", "stages.rl.with.output_dir", ["set by the pipeline"]),
        ("samples: 4}", "model: x}", "stages.rl_eval.with.model", ["set by the pipeline"]),
        ("name: control", "name: rl", "stages.rl.name", ["two stages"]),
        ("name: control", "name: Control/x", "stages[3].name", ["small letters"]),
        ("evaluate: {samples", "evaluat: {samples", "defaults.evaluat", ["`evaluate`"]),
        ("${variables.model}", "${variables.mdoel}", "stages.base.with", ["mdoel", "variables.model"]),
        ("${variables.model}", "${stages.rl.model}", "stages.base.with", ["'rl' comes later"]),
        ("5.0e-5}", "5.0e-5, x: '${stages.base.model}'}", "stages.rl.with", ["has no 'model'"]),
        ("5.0e-5}", "5.0e-5, x: '${stages.base}'}", "stages.rl.with", ["has no None"]),
        ("5.0e-5}", "5.0e-5, x: '${stages[base].model}'}", "stages.rl.with", ["is unknown"]),
        ("kind: train, role: rl", "kind: [train], role: rl", "stages.rl.kind", ["['train']"]),
        ("recipe: rl.yaml, with", "recipe: 3, with", "stages.rl.recipe", ["text"]),
        ("of: rl,", "of: [rl],", "stages.rl_eval.of", ["text"]),
        ("{learning_rate: 5.0e-5}", "{3: 4}", "stages.rl.with", ["text"]),
        ("{learning_rate: 5.0e-5}", "[]", "stages.rl.with", ["a mapping"]),
        ("time_limit_of: rl", "num_processes: 0", "stages.control.num_processes", ["at least 1"]),
        ("name: tiny", "name: [tiny]", "name", ["text"]),
        ("of: rl, with", "of: rl, accelerate: cpu, with", "stages.rl_eval.accelerate", ["'train'"]),
    ],
)
def test_a_mistake_is_named_with_its_place_and_the_nearest_spelling(write, old, new, key, words):
    assert old in GOOD
    with pytest.raises(RecipeError) as caught:
        load_pipeline(write(GOOD.replace(old, new)))
    assert caught.value.key == key
    for word in words:
        assert word in str(caught.value)
    assert "pipeline.yaml" in str(caught.value)


def test_an_override_of_no_stage_is_an_error(write):
    with pytest.raises(RecipeError, match=r"--stages\.rl\.KEY"):
        load_pipeline(write(GOOD), ["--stages.lr.learning_rate", "1"])


def test_variables_cannot_hide_a_reference_to_a_stage(write):
    with pytest.raises(RecipeError, match="cannot refer to stages"):
        load_pipeline(write(GOOD.replace("{model: builtin:tiny}", '{model: "${stages.rl.model}"}')))
