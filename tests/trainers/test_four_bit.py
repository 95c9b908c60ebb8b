"""Reinforcement learning on a 4-bit base, from a saved adapter and with a held-out evaluation in between."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from trl_reasoning.cli import main


SMOKE = Path(__file__).resolve().parents[2] / "recipes" / "smoke"
FOUR_BIT = ["--load_in_4bit", "true", "--use_bnb_nested_quant", "true"]


@pytest.fixture(scope="module")
def sft_adapter(tmp_path_factory) -> Path:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes (extra `quantization`) is not installed")
    folder = tmp_path_factory.mktemp("sft")
    words = ["--use_peft", "true", "--lora_r", "4", "--learning_rate", "1e-2", "--output_dir", str(folder)]
    assert main(["train", str(SMOKE / "sft_tiny.yaml"), *FOUR_BIT, *words]) == 0
    return folder


def test_kl_starts_at_zero_from_a_saved_adapter(sft_adapter, tmp_path):
    """The trained adapter and its frozen copy are both float32 on a 4-bit base."""
    words = ["--adapter_name_or_path", str(sft_adapter), "--learning_rate", "1e-2", "--output_dir", str(tmp_path)]
    assert main(["train", str(SMOKE / "grpo_tiny.yaml"), *FOUR_BIT, *words]) == 0
    log = [json.loads(line) for line in (tmp_path / "train_log.jsonl").read_text().splitlines()]
    first, second = [row["kl"] for row in log if "kl" in row]
    assert first == 0.0 and second > 0.0
    weights, start = (load_file(folder / "adapter_model.safetensors") for folder in (tmp_path, sft_adapter))
    assert weights.keys() == start.keys()
    assert all(weight.dtype == torch.float32 for weight in weights.values())
    assert any(not weights[name].equal(start[name]) for name in weights)


def test_a_held_out_evaluation_does_not_stop_the_gradients(sft_adapter, tmp_path):
    """A warning of a missing backward pass would be an error here, and both runs learn the same."""
    words = ["--adapter_name_or_path", str(sft_adapter), "--learning_rate", "1e-3"]
    heldout = "{task: builtin:chain, params: {operands: [2, 2], size: 2}, limit: 2, every: 1, samples: 1}"
    weights = []
    for name, more in (("without", []), ("with", ["--heldout", heldout])):
        command = ["train", str(SMOKE / "dr_grpo_tiny.yaml"), *FOUR_BIT, *words, *more]
        assert main([*command, "--output_dir", str(tmp_path / name)]) == 0
        weights.append(load_file(tmp_path / name / "adapter_model.safetensors"))
    assert all(weights[0][name].equal(weights[1][name]) for name in weights[0])
