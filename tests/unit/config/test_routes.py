"""`for:` of a reward and `from_step:` of a source: what they become, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from trl_reasoning.config import RecipeError, make_rewards


MATH = {"path": "builtin:chain", "size": 6, "constants": {"scenario": "math"}}
FOR_MATH = {"name": "accuracy", "for": {"scenario": ["math"]}}


@pytest.fixture
def chats(tmp_path: Path) -> dict[str, Any]:
    """A source of two prompts without a gold answer."""
    rows = [{"prompt": [{"role": "user", "content": f"Say {word}."}], "kind": word} for word in ("yes", "no")]
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"path": str(tmp_path / "chats.jsonl"), "constants": {"scenario": "chat"}}


def test_a_reward_for_some_values() -> None:
    plain, math, scaled = make_rewards(
        ["accuracy", {"name": "format", "for": {"scenario": ["math", "code"]}, "weight": 0.5},
         {"name": "closeness", "near": 0.1, "for": {"level": 3}}]
    )  # fmt: skip
    assert plain.route is None
    assert math.route is not None and scaled.route is not None
    assert (math.route.column, math.route.values, math.weight) == ("scenario", ("math", "code"), 0.5)
    assert (scaled.route.column, scaled.route.values) == ("level", (3,))
    assert scaled.columns == ("solution",)
    batch = {"prompts": ["?"] * 2, "completions": ["<think>a</think>4"] * 2, "completion_ids": [[1]] * 2}
    assert math.function(**batch, scenario=["chat", "code"]) == [None, 1.0]
    assert math.function.__name__ == "format_reward"


def test_one_reward_for_two_kinds_of_rows_has_two_names() -> None:
    rewards = make_rewards([{"name": "format", "for": {"a": "x"}}, {"name": "format", "for": {"a": ["y", "z"]}}])
    assert [reward.function.__name__ for reward in rewards] == ["format_reward_x", "format_reward_y_z"]
    with pytest.raises(RecipeError, match="`format_reward_x` is named twice"):
        make_rewards([{"name": "format", "for": {"a": "x"}}] * 2)


@pytest.mark.parametrize(
    ("value", "mentions"),
    [
        ("math", ["reward_funcs[0].for", "{scenario: [math, code]}", "'math'"]),
        ({"a": "x", "b": "y"}, ["reward_funcs[0].for", "one column"]),
        ({"a": []}, ["reward_funcs[0].for", "at least one value of `a`"]),
        ({"a": [None]}, ["reward_funcs[0].for", "texts or numbers", "None"]),
    ],
)
def test_for_in_another_form(value: Any, mentions: list[str]) -> None:
    with pytest.raises(RecipeError) as caught:
        make_rewards([{"name": "format", "for": value}])
    for mention in mentions:
        assert mention in str(caught.value)


def test_sources_without_a_gold_join_those_with_one(chats, prepared) -> None:
    run = prepared(datasets=[MATH, chats], reward_funcs=[FOR_MATH, "format"])
    rows = run.train_dataset
    assert rows["scenario"][:] == ["math"] * 6 + ["chat"] * 2
    assert [gold is None for gold in rows["solution"]] == [False] * 6 + [True] * 2
    accuracy, form = run.reward_funcs
    batch = {"prompts": rows["prompt"][:], "completions": ["4"] * 8, "completion_ids": [[1]] * 8}
    columns = {name: rows[name][:] for name in ("scenario", "solution", "thought_opened")}
    assert [value is None for value in accuracy(**batch, **columns)] == [False] * 6 + [True] * 2
    assert None not in form(**batch, **columns)


def test_golds_of_one_source_are_checked_where_they_are_read(chats, prepared, tmp_path: Path) -> None:
    rows = [
        {"question": "1+1?", "solution": "2", "scenario": "math"},
        {"question": "Hello", "solution": None, "scenario": "chat"},
    ]
    path = tmp_path / "both.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sources = {"datasets": [{"path": str(path)}], "prompt_template": "none"}
    prepared(**sources, reward_funcs=[FOR_MATH, "format"])
    with pytest.raises(RecipeError, match="1 of 2 golds do not verify"):
        prepared(**sources, reward_funcs=["accuracy"])


@pytest.mark.parametrize(
    ("rewards", "mentions"),
    [
        ([FOR_MATH], ["no reward is for 2 of 8 rows", "the first is row 6", "scenario 'chat' (2 rows)"]),
        (
            [{"name": "accuracy", "for": {"scenario": "maths"}}, "format"],
            ["reward_funcs[0].for", "no row has 'maths'", "'math' (6), 'chat' (2)", "Did you mean `math`"],
        ),
        ([{"name": "format", "for": {"kind": "yes"}}], ["datasets[0]", "no column `kind`", "`for` of reward format"]),
        (["accuracy"], ["datasets[1]", "no column `solution`", "reward accuracy"]),
    ],
)
def test_rows_without_a_reward(rewards: list, mentions: list[str], chats, prepared) -> None:
    with pytest.raises(RecipeError) as caught:
        prepared(datasets=[MATH, chats], reward_funcs=rewards)
    for mention in mentions:
        assert mention in str(caught.value)


def test_from_step_is_a_column(chats, prepared) -> None:
    rewards = [FOR_MATH, "format"]
    rows = prepared(datasets=[MATH, {**chats, "from_step": 3}], reward_funcs=rewards, max_steps=4).train_dataset
    assert rows["from_step"][:] == [0] * 6 + [3] * 2
    assert "from_step" not in prepared(datasets=[MATH, chats], reward_funcs=rewards).train_dataset.column_names


@pytest.mark.parametrize(
    ("base", "changes", "mentions"),
    [
        ("dr_grpo", {"datasets": [MATH, {**MATH, "from_step": 4}], "max_steps": 4}, ["datasets[1].from_step", "4"]),
        (
            "dr_grpo",
            {"datasets": [{**MATH, "from_step": 4}]},
            ["datasets[0].from_step", "no source is there at step 0"],
        ),
        ("sft", {"datasets": [MATH, {**MATH, "from_step": 4}]}, ["datasets[1].from_step", "every epoch"]),
        (
            "dr_grpo",
            {"heldout": {"datasets": [{"path": "x.jsonl", "from_step": 1}]}},
            ["heldout.datasets[0].from_step", "measured always"],
        ),
    ],
)
def test_from_step_without_effect(base: str, changes: dict, mentions: list[str], load) -> None:
    with pytest.raises(RecipeError) as caught:
        load(base, **changes)
    for mention in mentions:
        assert mention in str(caught.value)


def test_a_reward_model_that_is_not_there(prepared, load) -> None:
    entry = {"name": "reward_model", "model": "out/no/model", "sees": "answer", "for": {"scenario": "math"}}
    with pytest.raises(RecipeError, match=r"reward_funcs\[0\].model: no folder 'out/no/model'"):
        prepared(datasets=[MATH], reward_funcs=[entry])
    for changes, message in (({"sees": "all"}, "sees"), ({"model": "builtin:tiny"}, "Qwen3ForCausalLM")):
        with pytest.raises(RecipeError, match=rf"reward_funcs\[0\].*{message}"):
            load(reward_funcs=[{**entry, **changes}])


def test_a_reward_model_on_the_hub_is_named_as_unchecked(load) -> None:
    from trl_reasoning.config.offline import check_offline

    recipe = load(reward_funcs=["accuracy", {"name": "reward_model", "model": "some-owner/some-reward"}])
    assert check_offline(recipe) == ["some-owner/some-reward"]
