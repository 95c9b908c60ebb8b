"""
A real model on real problems: SmolLM2-135M-Instruct on GSM8K and SVAMP, from the shipped recipes.

`TRL_REASONING_SMOLLM2` names the folder of the model; `trl-reasoning export --help` tells how it is made from a GGUF
file.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file


pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]
RECIPES = Path(__file__).resolve().parents[2] / "recipes"
SMALL = ["--heldout", "null", "--max_steps", "5", '--save_strategy="no"', "--warmup_steps", "0", "--report_to", "[]"]
LORA_BATCH = ["--per_device_train_batch_size", "8", "--num_generations", "4", "--max_completion_length", "48"]
FOUR_BIT_BATCH = ["--per_device_train_batch_size", "4", "--num_generations", "4", "--max_completion_length", "24"]
# So few tokens end no worked answer: without this every reward would be 0.
GRADE_CUT = ["--zero_truncated_reward", "false"]


@pytest.fixture(scope="session")
def model() -> str:
    folder = os.environ.get("TRL_REASONING_SMOLLM2")
    if folder is None:
        pytest.skip("TRL_REASONING_SMOLLM2 does not name a folder with SmolLM2-135M-Instruct (CONTRIBUTING.md)")
    return folder


@pytest.fixture(scope="session")
def gsm8k(shared_dir) -> str:
    return f"[{{path: {shared_dir}/data/gsm8k_train.jsonl, adapter: gsm8k, size: 64}}]"


@pytest.fixture(scope="session")
def svamp(shared_dir) -> str:
    return f"[{{path: {shared_dir}/data/svamp.jsonl, adapter: svamp, size: 64}}]"


class Run:
    """A finished training run."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.record = json.loads((folder / "run.json").read_text())
        log = [json.loads(line) for line in (folder / "train_log.jsonl").read_text().splitlines()]
        self.steps = [row for row in log if "loss" in row]
        self.weights = load_file(folder / "adapter_model.safetensors")


def command(*words: str) -> str:
    result = subprocess.run([sys.executable, "-m", "trl_reasoning", *words], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def train(recipe: str, folder: Path, model: str, datasets: str, *words: str) -> Run:
    base = ["--model_name_or_path", model, "--datasets", datasets, "--output_dir", str(folder)]
    command("train", str(RECIPES / recipe), *base, *SMALL, *words)
    return Run(folder)


@pytest.fixture(scope="module")
def lora(model, gsm8k, tmp_path_factory) -> Run:
    return train("rl/dr_grpo_smollm2.yaml", tmp_path_factory.mktemp("lora"), model, gsm8k, *LORA_BATCH, *GRADE_CUT)


@pytest.fixture(scope="module")
def lora_svamp(model, svamp, tmp_path_factory) -> Run:
    return train("rl/dr_grpo_smollm2.yaml", tmp_path_factory.mktemp("svamp"), model, svamp, *LORA_BATCH, *GRADE_CUT)


@pytest.fixture(scope="module")
def four_bit(model, gsm8k, tmp_path_factory) -> Run:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes (extra `quantization`) is not installed")
    return train(
        "rl/dr_grpo_smollm2_4bit.yaml", tmp_path_factory.mktemp("four_bit"), model, gsm8k, *FOUR_BIT_BATCH, *GRADE_CUT
    )


@pytest.mark.parametrize("name", ["lora", "lora_svamp", "four_bit"])
def test_five_steps_teach_the_adapter(name, request):
    run = request.getfixturevalue(name)
    assert (run.record["status"], run.record["steps"]) == ("finished", 5)
    # Accuracy alone is 0 in most groups; the graded reward gives them a spread.
    assert max(row["reward_std"] for row in run.steps) > 0
    assert max(row["grad_norm"] for row in run.steps) > 0
    changed = {key: weight.abs().max().item() for key, weight in run.weights.items() if "lora_B" in key}
    assert len(changed) == 30 * 7  # every linear layer of 30 blocks
    assert min(changed.values()) > 0


@pytest.mark.parametrize("name", ["lora", "four_bit"])
def test_the_saved_folder_holds_the_adapter_alone(name, request):
    run = request.getfixturevalue(name)
    assert all("lora_" in key for key in run.weights)
    files = [path for path in run.folder.rglob("*") if path.is_file()]
    assert [path.name for path in files if path.suffix in (".safetensors", ".pt", ".pth")] == [
        "adapter_model.safetensors"
    ]
    assert sum(path.stat().st_size for path in files) < 30e6


def test_kl_starts_at_zero_from_a_fresh_adapter(model, gsm8k, tmp_path):
    run = train("rl/grpo_smollm2.yaml", tmp_path, model, gsm8k, *LORA_BATCH, "--max_steps", "2")
    first, second = [row["kl"] for row in run.steps]
    assert first == 0.0 and second > 0.0


def test_kl_starts_at_zero_from_a_saved_sft_adapter(model, gsm8k, tmp_path):
    sft = ["--learning_rate", "1e-3", "--max_steps", "2", "--per_device_train_batch_size", "2", "--max_length", "192"]
    lora = ["--use_peft", "true", "--lora_r", "16", "--dtype", "bfloat16", "--prompt_template", "qwen_boxed"]
    start = train("sft/sft_tiny.yaml", tmp_path / "sft", model, gsm8k, *sft, *lora)
    assert max(weight.abs().max().item() for key, weight in start.weights.items() if "lora_B" in key) > 0
    words = ["--adapter_name_or_path", str(start.folder), "--max_steps", "2"]
    run = train("rl/grpo_smollm2.yaml", tmp_path / "grpo", model, gsm8k, *LORA_BATCH, *words)
    first, second = [row["kl"] for row in run.steps]
    assert first == 0.0 and second > 0.0
    assert run.weights.keys() == start.weights.keys()


def test_the_exported_lora_model_is_base_plus_adapter(lora, model, tmp_path):
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    words = ["--model", str(lora.folder), "--output_dir", str(tmp_path), "--dtype", "float32"]
    assert "merged against base plus adapter, in float32" in command("export", *words)
    ids = AutoTokenizer.from_pretrained(tmp_path)("Half of 12 apples are 6 apples.", return_tensors="pt").input_ids
    base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    expected = PeftModel.from_pretrained(base, lora.folder).eval()
    with torch.no_grad():
        difference = AutoModelForCausalLM.from_pretrained(tmp_path)(ids).logits - expected(ids).logits
    assert difference.abs().max() < 1e-4


def test_a_4_bit_adapter_is_exact_in_the_dequantized_base_and_measured_in_the_original(four_bit, tmp_path):
    exact = command(
        "export", "--model", str(four_bit.folder), "--base", "dequantized", "--output_dir", str(tmp_path / "exact")
    )
    assert "merged against the 4-bit base plus adapter, in float32" in exact
    record = json.loads((tmp_path / "exact" / "export.json").read_text())
    # 1e-5 of SmolLM2's largest logit, about 30: what is left is float32 rounding.
    assert record["differences"]["merge"]["max"] < 3e-4
    shown = command("export", "--model", str(four_bit.folder), "--output_dir", str(tmp_path / "near"))
    assert "saved model against the 4-bit base plus adapter that was trained: logit difference mean" in shown
    difference = json.loads((tmp_path / "near" / "export.json").read_text())["differences"]["four_bit"]
    assert difference["max"] > 0.1 and difference["kl"] > 0
