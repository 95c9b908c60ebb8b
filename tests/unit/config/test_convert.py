"""Values are converted to their declared types, or refused with the key and what was expected."""

import json
import math
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trl_reasoning.config import RecipeError
from trl_reasoning.config.convert import check_choice, convert


class Color(Enum):
    RED = "red"
    GREEN = "green"


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        ("1e-6", float, 1e-6),
        ("1e-1", float | None, 0.1),
        (["1e-1", 1.0, 2], list[float], [0.1, 1.0, 2]),
        (["1e-1"], list[float] | None, [0.1]),
        ({"a": "3"}, dict[str, int], {"a": 3}),
        ([{"a": ["2"]}], list[dict[str, list[int]]], [{"a": [2]}]),
        (16.0, int, 16),
        ("16", int | None, 16),
        (5, float, 5),
        (None, int | None, None),
        ("yes", bool, True),
        ("False", bool | None, False),
        (2024, str, "2024"),
        ("auto", int | str | None, "auto"),
        (8, int | str | None, 8),
        ("q_proj", str | list[str] | None, "q_proj"),
        (["q_proj"], str | list[str] | None, ["q_proj"]),
        ("red", Color | str, "red"),
        (False, Literal[False] | str, False),
        ({"x": [1]}, dict | str | None, {"x": [1]}),
        ({"x": object}, Any, {"x": object}),
    ],
)
def test_converts(value: Any, hint: Any, expected: Any) -> None:
    converted = convert(value, hint, "key")
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(
    ("value", "hint", "mentions"),
    [
        ("1e-6x", float, ["key", "a number", "1e-6x"]),
        (True, float, ["key", "a number", "True"]),
        (".nan", float, ["key", ".nan"]),
        (math.inf, float, ["key", "inf"]),
        (2.5, int, ["key", "whole number", "2.5", "2 and 3"]),
        ("2.5", int | None, ["key", "whole number", "2.5"]),
        ("maybe", bool, ["key", "true or false", "maybe"]),
        (1, bool, ["key", "true or false", "1"]),
        (True, str, ["key", "text", "quote"]),
        (None, int, ["key", "nothing (null)"]),
        ("accuracy", list[str], ["key", "a list", "[accuracy]"]),
        ("accuracy", list[str] | None, ["key", "a list", "[accuracy]"]),
        (["1e-1", "x"], list[float], ["key[1]", "a number", "'x'"]),
        ([1], dict[str, int], ["key", "a mapping"]),
        ({"a": "b"}, dict[str, int], ["key.a", "whole number"]),
        ("rde", Color | str, ["key", "red, green", "Did you mean `red`"]),
        ("b", Literal["a"], ["key", "'b'", "a"]),
        (object(), int | str, ["key", "whole number or text"]),
    ],
)
def test_refuses(value: Any, hint: Any, mentions: list[str]) -> None:
    with pytest.raises(RecipeError) as caught:
        convert(value, hint, "key")
    for mention in mentions:
        assert mention in str(caught.value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_as_text_is_the_same_number(number: float) -> None:
    assert convert(repr(number), float, "key") == number


def test_check_choice_names_the_nearest() -> None:
    assert check_choice("server", ("colocate", "server"), "vllm_mode") == "server"
    with pytest.raises(RecipeError, match=r"colocate, server. Did you mean `colocate`"):
        check_choice("colocated", ("colocate", "server"), "vllm_mode")


def test_an_unquoted_no_is_the_choice_no(write_recipe) -> None:
    """YAML reads `no` as false."""
    from trl_reasoning.config import load_recipe

    assert check_choice(False, ("no", "steps"), "save_strategy") == "no"
    assert check_choice(False, (False, "no"), "key") is False
    with pytest.raises(RecipeError, match="False is not one of: group, batch"):
        check_choice(False, ("group", "batch"), "key")
    path = write_recipe(eval_strategy=False, report_to="none")
    assert "eval_strategy: false" in path.read_text()
    recipe = load_recipe(path, ["--save_strategy", "no", "--logging_strategy=no"])
    assert [recipe.values[f"{name}_strategy"] for name in ("eval", "save", "logging")] == ["no"] * 3


def test_shared_row_of_weights_as_text(shared_dir: Path, load) -> None:
    """b007: YAML reads 1e-1 as text; the weights arrive as numbers."""
    lines = (shared_dir / "cases" / "bad_config_cases.jsonl").read_text().splitlines()
    assert any(json.loads(line)["id"] == "b007" for line in lines)
    recipe = load(reward_weights=["1e-1", 1.0], reward_funcs=["accuracy", "format"])
    assert recipe.values["reward_weights"] == [0.1, 1.0]
