"""
Methods with models or state of their own on a real model: SmolLM2-135M-Instruct with LoRA on sums, a few updates.

`TRL_REASONING_SMOLLM2` names the folder of the model (CONTRIBUTING.md).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file


pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
RECIPES = Path(__file__).resolve().parents[2] / "recipes" / "rl"
SMALL = {
    "datasets": "[{path: builtin:sums, params: {low: 2, high: 20}, size: 64}]",
    "reward_funcs": "[accuracy, {name: closeness, weight: 0.5}]",
    "heldout": "null",
    "per_device_train_batch_size": "8",
    "max_completion_length": "10",
    "logging_steps": "1",
    "save_strategy": "no",
    "report_to": "[]",
    "prompt_template": "null",
}
RECIPE = {
    "kimi": "kimi_smollm2.yaml",
    "ppo": "ppo_smollm2.yaml",
    "online_rft": "online_rft_qwen3-1.7b.yaml",
}
OWN = {
    "kimi": {"num_generations": "4", "steps_per_generation": "2", "max_steps": "4"},
    "ppo": {"steps_per_generation": "2", "num_iterations": "2", "max_steps": "4"},
    "online_rft": {
        "num_generations": "4",
        "gradient_accumulation_steps": "2",
        "steps_per_generation": "2",
        "correct_threshold": "0.1",
        "max_steps": "3",
        "chat_template_kwargs": "null",  # those are Qwen3's
    },
}


@pytest.mark.parametrize("method", OWN)
def test_a_few_updates_move_the_adapter(tmp_path, method):
    model = os.environ.get("TRL_REASONING_SMOLLM2")
    if model is None:
        pytest.skip("TRL_REASONING_SMOLLM2 does not name a folder with SmolLM2-135M-Instruct (CONTRIBUTING.md)")
    recipe = RECIPES / RECIPE[method]
    settings = {**SMALL, **OWN[method], "model_name_or_path": model, "output_dir": str(tmp_path)}
    words = [word for key, value in settings.items() for word in (f"--{key}", value)]
    command = [sys.executable, "-m", "trl_reasoning", "train", str(recipe), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "run.json").read_text())["status"] == "finished"
    log = [json.loads(line) for line in (tmp_path / "train_log.jsonl").read_text().splitlines()]
    steps = [row for row in log if "loss" in row]
    assert len(steps) == int(OWN[method]["max_steps"])
    assert max(row["grad_norm"] for row in steps) > 0
    weights = load_file(tmp_path / "adapter_model.safetensors")
    moved = [weight.abs().max().item() for name, weight in weights.items() if "lora_B" in name]
    assert len(moved) == 30 * 7 and min(moved) > 0  # every linear layer of 30 blocks, and no other adapter's
    assert not [path for path in tmp_path.rglob("*.safetensors") if path.parent != tmp_path]
    if method == "kimi":
        assert [row["kimi/log_ratio_abs_max"] == 0.0 for row in steps] == [True, False, True, False]
    if method == "ppo":
        assert all(row["value_loss"] > 0 for row in steps)
