"""References between stages and the fingerprints that decide whether a stage is done."""

from pathlib import Path

import pytest

from trl_reasoning.stages import Pipeline, Stage, definition, references


def make_pipeline(recipe: Path, **changes) -> Pipeline:
    settings = {"learning_rate": 1e-5, "note": "${name} in ${output_dir}"}
    return Pipeline(
        name="demo",
        stages=[
            Stage("rl", "train", "rl", recipe, {**settings, **changes.pop("rl", {})}),
            Stage("rl_eval", "evaluate", "eval", None, {"task": "builtin:chain"}, of="rl"),
            Stage("next", "train", "rl", recipe, {"model_name_or_path": "${stages.rl.model}"}),
        ],
        output_dir="outputs/demo",
        **changes,
    )


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "rl.yaml"
    path.write_text("method: dr_grpo\n")
    return path


def fingerprints(pipeline: Pipeline) -> list[str]:
    found: dict[str, str] = {}
    for stage in pipeline.stages:
        found[stage.name] = pipeline.fingerprint(stage, found)
    return list(found.values())


def test_references_are_filled_in_with_folders_of_the_output_folder(recipe):
    pipeline = make_pipeline(recipe, seed=3)
    rl, rl_eval, following = (pipeline.resolve(stage, Path("out")) for stage in pipeline.stages)
    assert rl == {"learning_rate": 1e-5, "note": "demo in out", "seed": 3}
    assert rl_eval == {"task": "builtin:chain", "model": "out/stages/rl", "seed": 3}
    assert following == {"model_name_or_path": "out/stages/rl", "seed": 3}


def test_references_are_found_in_nested_settings():
    settings = {
        "a": ["x", "${stages.rl.model}/y"],
        "b": {"c": "${ stages.base.records }"},
        "d": "${stages.odd}",
        "e": 1,
    }
    assert list(references(settings)) == [("rl", "model"), ("base", "records"), ("odd", None)]


def test_a_changed_setting_changes_the_stage_and_what_refers_to_it(recipe):
    before = fingerprints(make_pipeline(recipe))
    after = fingerprints(make_pipeline(recipe, rl={"learning_rate": 2e-5}))
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, False, False]


def test_a_later_stage_does_not_change_an_earlier_one(recipe):
    changed = make_pipeline(recipe)
    changed.stages[2].settings["beta"] = 0.0
    same = [old == new for old, new in zip(fingerprints(make_pipeline(recipe)), fingerprints(changed), strict=True)]
    assert same == [True, True, False]


def test_the_recipe_counts_by_what_it_says(recipe):
    before = fingerprints(make_pipeline(recipe))
    recipe.write_text("# A comment\nmethod:   dr_grpo\n")
    assert fingerprints(make_pipeline(recipe)) == before
    recipe.write_text("method: grpo\n")
    assert fingerprints(make_pipeline(recipe))[0] != before[0]


def test_seed_and_package_version_count(recipe, monkeypatch):
    before = fingerprints(make_pipeline(recipe))
    assert fingerprints(make_pipeline(recipe, seed=1))[0] != before[0]
    monkeypatch.setattr(definition, "__version__", "999")
    assert fingerprints(make_pipeline(recipe))[0] != before[0]
