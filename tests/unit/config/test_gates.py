"""A recipe's gates and its watch are checked before a model is loaded."""

import pytest

from trl_reasoning.config import RecipeError
from trl_reasoning.config.recipe import make_recipe


BASE = {
    "method": "grpo",
    "model_name_or_path": "builtin:tiny",
    "datasets": [{"path": "builtin:chain", "size": 8}],
    "reward_funcs": ["accuracy", {"name": "format", "weight": 0.5}],
    "per_device_train_batch_size": 4,
    "num_generations": 4,
}
ROUTED = [{"name": name, "for": {"kind": kind}} for name, kind in (("accuracy", "math"), ("format", "general"))]


@pytest.mark.parametrize("method", ["grpo", "dr_grpo", "grpo_ps", "kimi", "online_rft", "ppo"])
def test_every_method_that_rewards_takes_gates_and_the_watch(method):
    keys = {"method": method, "reward_gates": {"format": "accuracy"}, "reward_watch": "stop"}
    recipe = make_recipe({**BASE, **keys, **({"step_reward": "chain_steps"} if method == "grpo_ps" else {})})
    assert recipe.get("reward_gates") == {"format": "accuracy"}
    assert recipe.get("reward_watch") == "stop"


def test_off_without_quotes_is_what_yaml_reads_as_false():
    assert make_recipe({**BASE, "reward_watch": False}).get("reward_watch") == "off"


def test_a_reward_adapter_may_have_a_gate():
    keys = {"method": "ppo", "reward_adapter": "somewhere", "use_peft": True}
    make_recipe({**BASE, **keys, "reward_gates": {"reward_adapter": "accuracy"}})


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"reward_gates": {"formt": "accuracy"}}, "reward_gates.formt", "is not one of the rewards"),
        ({"reward_gates": {"format": "format"}}, "reward_gates", "would wait for itself"),
        ({"reward_gates": "accuracy"}, "reward_gates", "expected"),
        ({"reward_gates": {"format": "accuracy"}, "reward_funcs": ROUTED}, "reward_gates", "for different rows"),
        ({"reward_watch": "halt"}, "reward_watch", "off, warn, stop"),
        ({"reward_watch": True}, "reward_watch", "expected text, got True"),
        (
            {
                "reward_funcs": ["accuracy", {"name": "kimi_length", "weight": 0.5}],
                "multi_objective_aggregation": "normalize_then_sum",
            },
            "multi_objective_aggregation",
            "the same spread as accuracy",
        ),
    ],
)
def test_what_cannot_work_stops(changes, key, words):
    with pytest.raises(RecipeError) as error:
        make_recipe({**BASE, **changes})
    assert error.value.key == key
    assert words in str(error.value)


def test_the_watch_reads_no_keys_of_other_methods():
    with pytest.raises(RecipeError, match="does not read this key"):
        make_recipe({**BASE, "method": "sft", "reward_watch": "stop"})
