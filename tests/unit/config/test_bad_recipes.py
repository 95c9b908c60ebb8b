"""The shared bad recipes: each stops before a model is loaded, with an error that names what has to change."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from trl_reasoning.config import RecipeError, load_recipe, prepare


LATER = "comes with its method"
CONVERTED = "converted: test_convert.py"
# How each row was mapped: the changes to our recipe beside the row's own keys. The base is a right recipe of the row's
# method, dr_grpo where it names none; `__rows__` becomes a JSONL file.
MAPPED: dict[str, dict[str, Any] | str] = {
    "b002": {},
    "b003": {},
    "b004": {},
    "b006": {},
    "b007": CONVERTED,
    "b009": {},
    "b010": {},
    "b012": {},
    "b013": {},
    "b014": {},
    "b015": {},
    "b016": {},
    "b017": {"reward_funcs": ["accuracy", "format", "closeness"]},  # the reward `length` comes with its method
    "b019": {},  # the file is the list alone
    "b024": {},
    "b027": {},
    "b028": {},
    "b029": {},
    "b030": {},
    "b031": {},
    "b032": {},
    "b034": {},
    "b037": {"per_device_train_batch_size": 8},  # `__checkpoint__` is the resolved.yaml of the checkpoint's run
    "b038": {},
    "b039": {},
    "b040": {},
    "b042": {},
    "b043": {},
    "b044": {},
    "b045": {},
    "b046": {},
    "b047": {},
    "b049": {"chat_template": "no_generation_marks.jinja"},  # templates are names of files
    "b051": {},
    "b052": LATER,
    "b054": {},
    "b056": {},  # the test takes the port
}
# The right recipe that a row's keys change, by the row's method.
_BASES = {"sft": "sft", "grpo": "grpo", "dpo": "dpo", "simpo": "simpo", "reward_model": "reward"}
NO_MARKS = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"


@pytest.fixture(scope="module")
def rows(shared_dir: Path) -> dict[str, dict[str, Any]]:
    lines = (shared_dir / "cases" / "bad_config_cases.jsonl").read_text().splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoModelForCausalLM

    def fail(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", fail)


def test_every_row_is_mapped(rows: dict[str, dict[str, Any]]) -> None:
    assert sorted(MAPPED) == sorted(rows)


@pytest.mark.parametrize("case", [case for case, mapping in MAPPED.items() if isinstance(mapping, dict)])
def test_bad_recipe(
    case: str, rows: dict[str, dict[str, Any]], write_recipe, write_rows, tmp_path: Path, monkeypatch
) -> None:
    fragment: Any = yaml.safe_load(rows[case]["recipe_fragment"])
    path = tmp_path / "recipe.yaml"
    monkeypatch.chdir(tmp_path)
    if isinstance(fragment, dict):
        changes = fragment | dict(MAPPED[case])
        if "__rows__" in changes:
            changes["datasets"] = write_rows(changes.pop("__rows__"))
        if "__checkpoint__" in changes:
            (tmp_path / changes["resume_from_checkpoint"]).mkdir(parents=True)
            resolved = yaml.safe_dump({"per_device_train_batch_size": 8, **changes.pop("__checkpoint__")})
            (tmp_path / "out" / "resolved.yaml").write_text(resolved)
        (tmp_path / "no_generation_marks.jinja").write_text(NO_MARKS)
        method = changes.get("method", "dr_grpo")
        write_recipe(_BASES.get(method, "dr_grpo"), **changes)
    else:
        path.write_text(rows[case]["recipe_fragment"])
    with socket.socket() as taken:
        if case == "b056":
            _take_port(taken, 12345)
        with pytest.raises(RecipeError) as caught:
            prepare(load_recipe(path))
    message = f"{caught.value.key}: {caught.value.message}"  # without the file's name
    for expected in rows[case]["error_should_mention"]:
        assert expected in message


def _take_port(taken: socket.socket, port: int) -> None:
    try:
        taken.bind(("", port))
        taken.listen()
    except OSError:
        pass  # another program has it, which is as good
