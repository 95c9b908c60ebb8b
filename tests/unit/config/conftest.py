"""A small right recipe for each method, and ways to change it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml


_POLICY: dict[str, Any] = {
    "model_name_or_path": "builtin:tiny",
    "datasets": [{"path": "builtin:chain", "size": 8}],
    "reward_funcs": ["accuracy"],
    "per_device_train_batch_size": 4,
    "num_generations": 4,
    "max_completion_length": 16,
    "report_to": "none",
}
_PAIRS: dict[str, Any] = {
    "model_name_or_path": "builtin:tiny",
    "datasets": [{"path": "builtin:chain_pairs", "size": 8}],
    "report_to": "none",
}
BASES: dict[str, dict[str, Any]] = {
    "sft": {
        "method": "sft",
        "model_name_or_path": "builtin:tiny",
        "datasets": [{"path": "builtin:chain", "size": 8}],
        "report_to": "none",
    },
    "dr_grpo": {"method": "dr_grpo", **_POLICY},
    "grpo": {"method": "grpo", **_POLICY},
    "dpo": {"method": "dpo", **_PAIRS},
    "simpo": {"method": "simpo", **_PAIRS},
    "reward": {"method": "reward", **_PAIRS},
}


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests start as a person's shell does: no launcher's variables, and what a recipe's `env` sets is undone."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "ACCELERATE_MIXED_PRECISION", "ACCELERATE_USE_CPU"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def write_recipe(tmp_path: Path) -> Callable[..., Path]:
    """`write_recipe(method, **changes)`: the base recipe with these changes as a file; a change to `...` removes."""

    def write(base: str = "dr_grpo", /, **changes: Any) -> Path:
        values = {**BASES[base], "output_dir": str(tmp_path / "out"), **changes}
        path = tmp_path / "recipe.yaml"
        path.write_text(yaml.safe_dump({key: value for key, value in values.items() if value is not ...}))
        return path

    return write


@pytest.fixture
def write_rows(tmp_path: Path) -> Callable[..., list[dict[str, str]]]:
    """`write_rows(rows)`: the rows as a JSONL file; returns the recipe's `datasets`."""

    def write(rows: list[dict[str, Any]], name: str = "rows.jsonl") -> list[dict[str, str]]:
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return [{"path": str(tmp_path / name)}]

    return write


@pytest.fixture
def load(write_recipe: Callable[..., Path]) -> Callable[..., Any]:
    """`load(method, **changes)`: the changed base recipe, loaded."""
    from trl_reasoning.config import load_recipe

    return lambda base="dr_grpo", /, **changes: load_recipe(write_recipe(base, **changes))


@pytest.fixture
def prepared(load: Callable[..., Any]) -> Callable[..., Any]:
    """`prepared(method, **changes)`: the changed base recipe, prepared."""
    from trl_reasoning.config import prepare

    return lambda base="dr_grpo", /, **changes: prepare(load(base, **changes))


@pytest.fixture
def tiny_copy(tmp_path: Path) -> Path:
    """A folder with the shipped tiny model, to be changed."""
    import shutil

    from trl_reasoning.builtin import resolve_model

    return Path(shutil.copytree(resolve_model("builtin:tiny"), tmp_path / "model"))
