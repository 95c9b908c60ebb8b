"""`method: ppo` in a recipe: one completion a prompt, and the text of PPO-ptx."""

from typing import Any

import pytest
import yaml

from trl_reasoning.config import RecipeError, load_recipe, prepare


@pytest.fixture
def write(tmp_path):
    def make(**changes: Any) -> str:
        recipe: dict[str, Any] = {
            "method": "ppo",
            "model_name_or_path": "builtin:tiny",
            "datasets": [{"path": "builtin:chain", "size": 8}],
            "reward_funcs": ["accuracy"],
            "per_device_train_batch_size": 4,
            "max_completion_length": 16,
            "report_to": "none",
            "output_dir": str(tmp_path / "out"),
            **changes,
        }
        (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
        return str(tmp_path / "recipe.yaml")

    return make


def rows(tmp_path, *entries: dict[str, Any]) -> dict[str, str]:
    import json

    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return {"path": str(tmp_path / "rows.jsonl")}


def test_one_completion_a_prompt_is_the_default(write):
    prepared = prepare(load_recipe(write()))
    assert (prepared.args.num_generations, prepared.args.generation_batch_size) == (1, 4)
    assert prepared.ptx_dataset is None
    with pytest.raises(RecipeError, match=r"num_generations: expected at least 1 completion a prompt, got 0"):
        load_recipe(write(num_generations=0))


@pytest.mark.parametrize(
    ("entry", "columns"),
    [
        ({"text": "1+2=3", "source": "book"}, ["text"]),
        ({"messages": [{"role": "user", "content": "1+2?"}, {"role": "assistant", "content": "3"}]}, ["messages"]),
        ({"prompt": "1+2=", "completion": "3", "id": 4}, ["prompt", "completion"]),
        ({"question": "1+2?", "rationale": "one and two", "solution": "3"}, ["prompt", "completion"]),
    ],
)
def test_the_rows_of_the_mix(write, tmp_path, entry, columns):
    prepared = prepare(load_recipe(write(ptx_dataset=rows(tmp_path, entry), ptx_coef=27.8)))
    assert prepared.ptx_dataset is not None
    assert prepared.ptx_dataset.column_names == columns


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ptx_coef": 1.0}, "ptx_coef: needs the text"),
        ({"ptx_dataset": {"path": "builtin:chain"}}, "ptx_dataset: is not used without `ptx_coef`"),
        ({"ptx_dataset": {"pth": "x"}, "ptx_coef": 1.0}, "ptx_dataset: .*pth"),
        ({"ptx_dataset": ["x"], "ptx_coef": 1.0}, "ptx_dataset: expected a mapping"),
        ({"ptx_coef": 1.0, "method": "grpo", "num_generations": 4}, "ptx_coef: .*belongs to: ppo"),
    ],
)
def test_refused(write, changes, message):
    with pytest.raises(RecipeError, match=message):
        load_recipe(write(**changes))


def test_rows_without_a_text_are_refused(write, tmp_path):
    recipe = load_recipe(write(ptx_dataset=rows(tmp_path, {"question": "1+2?"}), ptx_coef=1.0))
    with pytest.raises(RecipeError, match=r"ptx_dataset .*expected the column text, messages"):
        prepare(recipe)
