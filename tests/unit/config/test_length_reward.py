"""A recipe's length reward is checked before a model is loaded."""

import pytest
import yaml

from trl_reasoning.config import RecipeError, load_recipe, prepare


BASE = {
    "method": "kimi",
    "model_name_or_path": "builtin:tiny",
    "datasets": [{"path": "builtin:chain", "size": 8}],
    "reward_funcs": ["accuracy", {"name": "kimi_length", "weight": 0.5}],
    "per_device_train_batch_size": 4,
    "num_generations": 4,
    "num_iterations": 2,
}
HELDOUT = {"task": "builtin:chain", "every": 2, "limit": 2}


def prepared(tmp_path, **changes):
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump({**BASE, "output_dir": str(tmp_path / "out"), **changes}))
    return prepare(load_recipe(path))


def test_weight_and_schedule_reach_the_trainer(tmp_path):
    args = prepared(tmp_path, heldout=HELDOUT, length_reward_patience=3, length_reward_min_gain=0.01).args
    assert args.reward_weights == [1.0, 0.5]
    assert (args.length_reward_patience, args.length_reward_min_gain) == (3, 0.01)
    assert prepared(tmp_path, length_reward_start_step=5).args.length_reward_start_step == 5


def test_the_weight_may_grow_with_the_values_of_accuracy(tmp_path):
    accuracy = {"name": "accuracy", "right": 10, "weight": 0.5}
    run = prepared(tmp_path, reward_funcs=[accuracy, {"name": "kimi_length", "weight": 9}])
    assert run.args.reward_weights == [0.5, 9.0]


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        (
            {"reward_funcs": [{"name": "accuracy", "right": 0.5}, {"name": "kimi_length", "weight": 1}]},
            "reward_funcs",
            "below 1 ",
        ),
        ({"reward_funcs": ["accuracy", {"name": "kimi_length", "weight": 2}]}, "reward_funcs", "below 2 "),
        ({"reward_funcs": ["accuracy", "kimi_length"], "reward_weights": [0.5, 1.0]}, "reward_weights", "below 1 "),
        ({"reward_funcs": ["accuracy"], "length_reward_start_step": 5}, "length_reward_start_step", "`kimi_length`"),
        (
            {"reward_funcs": ["accuracy", {"name": "soft_overlong", "max_length": 1000, "cache": 100}]},
            "reward_funcs[1].max_length",
            "start above 900 tokens, where no completion gets (`max_completion_length` is 512)",
        ),
        ({"length_reward_patience": 2}, "length_reward_patience", "no `heldout`"),
        ({"length_reward_start_step": 0}, "length_reward_start_step", "at least 1"),
        ({"steps_per_generation": 3, "gradient_accumulation_steps": 4}, "steps_per_generation", "write 4"),
        ({"tau": 0}, "tau", "more than 0"),
        ({"baseline": "median"}, "baseline", "log_mean_exp"),
    ],
)
def test_what_cannot_work_stops(tmp_path, changes, key, words):
    with pytest.raises(RecipeError) as error:
        prepared(tmp_path, **changes)
    assert error.value.key == key
    assert words in str(error.value)
