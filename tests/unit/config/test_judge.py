"""A judge in a recipe: what is checked before a model is loaded, and golds that need not be answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from trl_reasoning.config import RecipeError
from trl_reasoning.config.offline import check_offline


MATH = {"path": "builtin:chain", "size": 6, "constants": {"scenario": "math"}}
FOR_MATH = {"name": "accuracy", "for": {"scenario": "math"}}
JUDGE = {"name": "judge", "model": "builtin:tiny", "for": {"scenario": "open"}}


@pytest.fixture
def essays(tmp_path: Path) -> dict[str, Any]:
    """Questions whose reference answers are no mathematics."""
    texts = ("Blue light is scattered most, so that the sky is blue.", "Because 2 < 3, and {so on.", "x = = 1?")
    rows = [{"question": f"Why {index}?", "solution": text} for index, text in enumerate(texts)]
    (tmp_path / "essays.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"path": str(tmp_path / "essays.jsonl"), "constants": {"scenario": "open"}}


def test_references_of_a_judge_are_not_checked_as_answers(essays, prepared) -> None:
    sources = {"datasets": [MATH, essays], "prompt_template": "none"}
    run = prepared(**sources, reward_funcs=[FOR_MATH, JUDGE])
    assert run.train_dataset["solution"][6].startswith("Blue light")
    assert [reward.columns for reward in run.reward_funcs] == [("solution", "scenario")] * 2
    with pytest.raises(RecipeError, match=r"datasets\[1\].*golds"):
        prepared(**sources, reward_funcs=["accuracy"])


def test_the_column_with_the_reference_must_be_there(essays, prepared) -> None:
    sources = {"datasets": [MATH, essays], "prompt_template": "none"}
    with pytest.raises(RecipeError, match=r"datasets\[1\].*no column `ideal`, which reward judge needs"):
        prepared(**sources, reward_funcs=[FOR_MATH, {**JUDGE, "reference": "ideal"}])
    prepared(**sources, reward_funcs=[FOR_MATH, {**JUDGE, "reference": None}])


def test_folders_must_be_there_and_hold_a_language_model(prepared, load, tiny_copy: Path) -> None:
    entry = {**JUDGE, "for": {"scenario": "math"}}
    with pytest.raises(RecipeError, match=r"reward_funcs\[0\]\.model: no folder 'out/no/model'"):
        prepared(datasets=[MATH], reward_funcs=[{**entry, "model": "out/no/model"}])
    with pytest.raises(RecipeError, match=r"reward_funcs\[0\]\.adapter: no folder 'out/no/adapter'"):
        prepared(datasets=[MATH], reward_funcs=[{**entry, "adapter": "out/no/adapter"}])
    settings = json.loads((tiny_copy / "config.json").read_text())
    settings["architectures"] = ["Qwen3ForSequenceClassification"]
    (tiny_copy / "config.json").write_text(json.dumps(settings))
    with pytest.raises(RecipeError, match=r"reward_funcs\[0\].*ForSequenceClassification, not a causal language"):
        load(reward_funcs=[{**entry, "model": str(tiny_copy)}])


def test_parameters_of_a_judge(load) -> None:
    for changes, message in (
        ({"modus": "grade"}, "Did you mean `mode`"),
        ({"mode": "grades"}, "is not one of: grade, probability"),
        ({"samples": 3}, "above 0 with several samples"),
        ({"scale": ["low", 5]}, r"scale\[0\]: expected a number"),
    ):
        with pytest.raises(RecipeError, match=rf"reward_funcs\[0\].*{message}"):
            load(reward_funcs=[{**JUDGE, **changes}])


def test_a_judge_on_the_hub_is_named_as_unchecked(load) -> None:
    entry = {"name": "judge", "model": "some-owner/some-judge", "adapter": "some-owner/some-adapter"}
    assert check_offline(load(reward_funcs=[entry])) == ["some-owner/some-judge", "some-owner/some-adapter"]
