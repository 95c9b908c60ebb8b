"""`trl-reasoning evaluate --load_in_4bit`: a run's base is quantised as the run did it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from trl_reasoning.builtin import resolve_model
from trl_reasoning.cli import main
from trl_reasoning.generation import load_backend


pytest.importorskip("bitsandbytes", reason="bitsandbytes (extra `quantization`) is not installed")

SMALL = ["--task", "builtin:chain", "--task_params", "{operands: [3, 3], size: 2}", "--samples", "1"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's folder: an adapter, and the settings of its base."""
    model = AutoModelForCausalLM.from_pretrained(resolve_model("builtin:tiny"))
    adapter = get_peft_model(model, LoraConfig(r=2, target_modules="all-linear"))
    adapter.save_pretrained(str(tmp_path / "run"))
    recipe = {
        "method": "sft", "load_in_4bit": True, "bnb_4bit_quant_type": "fp4", "use_bnb_nested_quant": True,
        "dtype": "bfloat16",
    }  # fmt: skip
    (tmp_path / "run" / "resolved.yaml").write_text(yaml.safe_dump(recipe))
    return tmp_path / "run"


def evaluated(model: Path | str, folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[dict, dict]:
    """What `load_backend` was asked for, and what `metrics.json` says."""
    asked: dict = {}

    def load(*args, **kwargs):
        asked.update(kwargs)
        return load_backend(*args, **kwargs)

    monkeypatch.setattr("trl_reasoning.generation.load_backend", load)
    command = ["evaluate", "--model", str(model), "--output_dir", str(folder), "--load_in_4bit", *SMALL]
    assert main([*command, "--max_new_tokens", "4", *words]) == 0
    return asked, json.loads((folder / "metrics.json").read_text())["settings"]


def test_the_settings_of_the_run(run, tmp_path, monkeypatch) -> None:
    as_the_run = {"bnb_4bit_quant_type": "fp4", "use_bnb_nested_quant": True, "dtype": "bfloat16"}
    asked, said = evaluated(run, tmp_path / "a", monkeypatch)
    assert {key: asked[key] for key in as_the_run} == as_the_run
    assert {key: said[key] for key in as_the_run} == as_the_run
    adapter = ("--adapter", str(run))
    asked, _ = evaluated(resolve_model("builtin:tiny"), tmp_path / "b", monkeypatch, *adapter)
    assert {key: asked[key] for key in as_the_run} == as_the_run
    other = ("--bnb_4bit_quant_type", "nf4", "--use_bnb_nested_quant", "false", "--dtype", "float32")
    asked, _ = evaluated(run, tmp_path / "c", monkeypatch, *other)
    assert [asked[key] for key in as_the_run] == ["nf4", False, "float32"]


def test_a_model_without_a_run_takes_the_recipes_keys(tmp_path, monkeypatch) -> None:
    asked, _ = evaluated("builtin:tiny", tmp_path / "a", monkeypatch)
    assert (asked["bnb_4bit_quant_type"], asked["use_bnb_nested_quant"]) == ("nf4", False)
    asked, _ = evaluated("builtin:tiny", tmp_path / "b", monkeypatch, "--use_bnb_nested_quant")
    assert (asked["bnb_4bit_quant_type"], asked["use_bnb_nested_quant"]) == ("nf4", True)


@pytest.mark.parametrize(("quant_type", "nested"), [("nf4", False), ("nf4", True), ("fp4", False)])
def test_the_numbers_are_those_of_these_settings(quant_type, nested) -> None:
    """The loaded model computes as one that transformers quantised with these settings."""
    path = resolve_model("builtin:tiny")
    backend = load_backend(
        path, load_in_4bit=True, bnb_4bit_quant_type=quant_type, use_bnb_nested_quant=nested, device="cpu"
    )
    config = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type=quant_type, bnb_4bit_use_double_quant=nested,
        bnb_4bit_compute_dtype=torch.float32,
    )  # fmt: skip
    other = AutoModelForCausalLM.from_pretrained(
        path, dtype=torch.float32, quantization_config=config, device_map="cpu"
    )
    ids = torch.arange(5, 15)[None]
    with torch.no_grad():
        assert torch.equal(backend.model(ids).logits, other.eval()(ids).logits)
    assert backend.name.endswith(f"(4-bit {quant_type}{', nested' if nested else ''})")


def test_a_key_without_effect_is_refused(tmp_path, capsys) -> None:
    words = ["evaluate", "--model", "builtin:tiny", "--output_dir", str(tmp_path), *SMALL]
    assert main([*words, "--bnb_4bit_quant_type", "fp4"]) == 2
    assert "bnb_4bit_quant_type: has no effect without `load_in_4bit: true`" in capsys.readouterr().err


def test_importing_trl_says_nothing_of_a_missing_kernel() -> None:
    code = "import trl_reasoning.exporting.merging, trl_reasoning.trainers, bitsandbytes"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "gemm_4bit" not in done.stderr
