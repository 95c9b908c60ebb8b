"""`reward_funcs`: names, dotted paths and mappings become callables with weights and needed columns."""

import pickle
from pathlib import Path

import pytest

from trl_reasoning.config import RecipeError, make_rewards


MODULE = """
def plain(prompts, completions, completion_ids, level, bonus=0.0, *, log_metric=None, **kwargs):
    return [float(value) for value in level]

def make(scale: float, names: list[str] | None = None):
    def scaled(completions, **kwargs):
        return [scale for _ in completions]
    scaled.names = names
    return scaled

class Fixed:
    columns = ("target",)

    def __init__(self, value: float = 1.0):
        self.value = value

    def __call__(self, completions, **kwargs):
        return [self.value for _ in completions]

constant = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch) -> str:
    """A module of rewards in the current directory, which is not on the path."""
    name = f"rewards_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.setattr("sys.path", [path for path in __import__("sys").path if path != ""])
    monkeypatch.chdir(tmp_path)
    return name


def test_names_weights_and_columns() -> None:
    rewards = make_rewards(["accuracy", {"name": "format", "weight": "2e-1"}])
    assert [(reward.name, reward.weight, reward.columns) for reward in rewards] == [
        ("accuracy", 1.0, ("solution",)),
        ("format", 0.2, ()),
    ]
    assert [reward.weight for reward in make_rewards(["accuracy", "format"], [1.0, 0.5])] == [1.0, 0.5]
    completions = [r"<think>a</think>\boxed{4}", "4 or 5"]
    assert pickle.loads(pickle.dumps(rewards[0].function))(["q"] * 2, completions, [[1]] * 2, solution=["4", "4"]) == [
        1.0,
        0.0,
    ]


def test_dotted_paths(module: str) -> None:
    plain, scaled, fixed = make_rewards(
        [f"{module}.plain", {"name": f"{module}.make", "scale": "5e-1", "names": ["a"]}, f"{module}.Fixed"]
    )
    assert plain.columns == ("level",)
    assert plain.function(["q"], ["a"], [[1]], level=["3"]) == [3.0]
    assert scaled.function(completions=["a", "b"]) == [0.5, 0.5]
    assert scaled.columns == ("completions",)[1:]
    assert fixed.columns == ("target",)
    assert make_rewards([{"name": f"{module}.Fixed", "value": 2}])[0].function(["a"]) == [2]


@pytest.mark.parametrize(
    ("entries", "weights", "mentions"),
    [
        ([], None, ["reward_funcs", "accuracy"]),
        (["acuracy"], None, ["reward_funcs[0]", "acuracy", "Did you mean `accuracy`", "closeness", "format"]),
        (["accuracy", {"weight": 1.0}], None, ["reward_funcs[1]", "`name`", "weight"]),
        ([{"name": "accuracy", "knd": "auto"}], None, ["`accuracy` has no parameter `knd`", "Did you mean `kind`"]),
        ([{"name": "accuracy", "kind": 5.0}], None, ["reward_funcs[0]", "`accuracy` cannot be made"]),
        ([{"name": "judge", "samples": 3}], None, ["reward_funcs[0]", "`judge` needs `model`"]),
        ([{"name": "soft_overlong", "cache": 5}], None, ["`soft_overlong` needs `max_length`"]),
        ([{"name": "accuracy", "weight": "much"}], None, ["reward_funcs[0].weight", "a number", "much"]),
        (["accuracy", "accuracy"], None, ["reward_funcs", "accuracy", "twice"]),
        (["accuracy", "format"], [1.0], ["reward_weights", "1 weights for 2 rewards"]),
        ([{"name": "accuracy", "weight": 1.0}], [1.0], ["reward_weights", "`weight`"]),
        (["no_such_module.score"], None, ["no_such_module", "import"]),
        (["json.lods"], None, ["cannot import `lods` from `json`", "Did you mean `loads`"]),
        (["math.pi"], None, ["`math.pi` is 3.14", "not a function"]),
    ],
)
def test_refused(entries: list, weights: list | None, mentions: list[str]) -> None:
    with pytest.raises(RecipeError) as caught:
        make_rewards(entries, weights)
    for mention in mentions:
        assert mention in str(caught.value)


def test_a_module_that_fails_is_named(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "broken_rewards.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError, match=r"cannot import `broken_rewards`.*ZeroDivisionError"):
        make_rewards(["broken_rewards.score"])
