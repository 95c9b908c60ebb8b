"""`step_reward:` of a recipe: what it becomes, which columns it needs, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from trl_reasoning.config import RecipeError, load_recipe, prepare
from trl_reasoning.config.offline import check_offline
from trl_reasoning.config.step_rewards import make_step_reward
from trl_reasoning.generation.process_scorer import ProcessScorer


MODULE = """
def steps(texts, target, *, completion_ids, **kwargs):
    return [[(len(text), float(value)) ] for text, value in zip(texts, target)]
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch):
    """A recipe file of `grpo_ps` with changes; it lies in the current directory."""
    monkeypatch.chdir(tmp_path)

    def make(**changes: Any) -> str:
        import yaml

        recipe: dict[str, Any] = {
            "method": "grpo_ps",
            "model_name_or_path": "builtin:tiny",
            "datasets": [{"path": "builtin:chain", "size": 8}],
            "reward_funcs": ["accuracy"],
            "step_reward": "chain_steps",
            "per_device_train_batch_size": 4,
            "num_generations": 4,
            "max_completion_length": 16,
            "report_to": "none",
            **changes,
        }
        file = tmp_path / "recipe.yaml"
        file.write_text(yaml.safe_dump({key: value for key, value in recipe.items() if value is not None}))
        return str(file)

    return make


def test_a_name(write) -> None:
    prepared = prepare(load_recipe(write()))
    assert prepared.step_reward.__name__ == "chain_step_reward"
    assert len(prepared.reward_funcs) == 1


def test_parameters(write) -> None:
    reward = make_step_reward(load_recipe(write(step_reward={"name": "chain_steps", "answer": False})))
    assert reward is not None and reward.function.answer is False  # type: ignore[attr-defined]
    assert reward.columns == ("question",)


def test_a_dotted_path_and_its_columns(write, tmp_path) -> None:
    (tmp_path / "my_steps.py").write_text(MODULE)
    reward = make_step_reward(load_recipe(write(step_reward="my_steps.steps")))
    assert reward is not None and reward.columns == ("target",)
    with pytest.raises(RecipeError, match="target"):
        prepare(load_recipe(write(step_reward="my_steps.steps")))


def test_a_process_model(write, tmp_path) -> None:
    (tmp_path / "model").mkdir()
    given = {"name": "process_model", "model": "./model", "by": "paragraph", "separator": "\n\n"}
    reward = make_step_reward(load_recipe(write(step_reward=given)))
    assert reward is not None and isinstance(reward.function, ProcessScorer)
    assert (reward.function.path, reward.function.by, reward.function.separator) == ("./model", "paragraph", "\n\n")


def test_a_process_model_of_the_hub_is_named_as_unchecked(write) -> None:
    recipe = load_recipe(write(step_reward={"name": "process_model", "model": "someone/prm"}), check_env=False)
    assert check_offline(recipe) == ["someone/prm"]


@pytest.mark.parametrize(
    ("value", "key", "text"),
    [
        (None, "step_reward", "missing; .*chain_steps, process_model"),
        ("chain_step", "step_reward", "not a known reward .*chain_steps"),
        ({"name": "chain_steps", "anwser": True}, "step_reward", "no parameter `anwser`"),
        ({"name": "chain_steps", "weight": 2.0}, "step_reward", "neither `weight` nor `for`"),
        ({"name": "process_model", "model": "./nowhere"}, "step_reward.model", "no folder './nowhere'"),
        ({"name": "process_model", "model": "a/b", "by": "word"}, "step_reward", "by: expected one of"),
        (3, "step_reward", "3"),
    ],
)
def test_refused(write, value, key, text) -> None:
    with pytest.raises(RecipeError, match=text) as caught:
        load_recipe(write(step_reward=value))
    assert caught.value.key == key


def test_other_methods_do_not_have_the_key(write) -> None:
    with pytest.raises(RecipeError, match="belongs to: grpo_ps"):
        load_recipe(write(method="grpo"))
    assert make_step_reward(load_recipe(write(method="grpo", step_reward=None))) is None
