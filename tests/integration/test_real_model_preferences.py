"""
Preferences, reward models and distillation on a real model: SmolLM2-135M-Instruct with LoRA, a few updates.

`TRL_REASONING_SMOLLM2` names the folder of the model, `TRL_REASONING_SHARED` that of real preference pairs
(CONTRIBUTING.md).
"""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file


pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
SMOKE = Path(__file__).resolve().parents[2] / "recipes" / "smoke"
STEPS = 3
SMALL = {
    "use_peft": "true",
    "lora_r": "8",
    "lora_target_modules": "all-linear",
    "learning_rate": "2e-4",
    "max_steps": str(STEPS),
    "per_device_train_batch_size": "4",
    "gradient_accumulation_steps": "1",
    "logging_steps": "1",
    "save_strategy": "no",
    "report_to": "[]",
    "dtype": "bfloat16",
}
PAIR_METHODS = ("dpo", "ln_dpo", "simpo", "reward")


@pytest.fixture
def smollm2() -> str:
    folder = os.environ.get("TRL_REASONING_SMOLLM2")
    if folder is None:
        pytest.skip("TRL_REASONING_SMOLLM2 does not name a folder with SmolLM2-135M-Instruct (CONTRIBUTING.md)")
    return folder


@pytest.fixture
def train(tmp_path, smollm2):
    """Train a smoke recipe with other settings; gives the rows of its log and the weights of its adapter."""

    def run(method: str, **own: str) -> tuple[list[dict], dict]:
        settings = {**SMALL, **own, "model_name_or_path": smollm2, "output_dir": str(tmp_path / method)}
        words = [f"--{key}={value}" for key, value in settings.items()]
        command = [sys.executable, "-m", "trl_reasoning", "train", str(SMOKE / f"{method}_tiny.yaml"), *words]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        log = [json.loads(line) for line in (tmp_path / method / "train_log.jsonl").read_text().splitlines()]
        steps = [row for row in log if "loss" in row]
        assert len(steps) == STEPS
        assert max(row["grad_norm"] for row in steps) > 0
        weights = load_file(tmp_path / method / "adapter_model.safetensors")
        moved = [weight.abs().max().item() for name, weight in weights.items() if "lora_B" in name]
        assert len(moved) == 30 * 7 and min(moved) > 0  # every linear layer of 30 blocks
        return steps, weights

    return run


@pytest.mark.parametrize("method", PAIR_METHODS)
def test_real_pairs(train, method):
    shared = os.environ.get("TRL_REASONING_SHARED")
    if shared is None:
        pytest.skip("TRL_REASONING_SHARED does not name a folder with data/hh_harmless_test.jsonl.gz")
    pairs = f"{shared}/data/hh_harmless_test.jsonl.gz"
    steps, weights = train(method, datasets=f"[{{path: {pairs}, adapter: hh_rlhf, size: 64}}]", max_length="256")
    if method in ("dpo", "ln_dpo"):  # the policy is its reference
        assert steps[0]["loss"] == pytest.approx(math.log(2), abs=1e-3)
        assert steps[0]["rewards/margins"] == pytest.approx(0, abs=1e-3)
    if method == "reward":
        assert [name for name in weights if "score" in name]


def test_steps_of_sums(train, tmp_path):
    rows = [
        {
            "prompt": [{"role": "user", "content": f"Add {a}, {b} and {c}."}],
            "steps": [f"{a} + {b} = {a + b}", f"{a + b} + {c} = {a + b + c + slip}"],
            "labels": [1.0, float(slip == 0)],
        }
        for a in range(2, 6)
        for b in range(2, 6)
        for c, slip in ((3, 0), (4, 1))
    ]
    path = tmp_path / "steps.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, weights = train("prm", datasets=f"[{{path: {path}}}]")
    assert [name for name in weights if "score" in name]


def test_a_teacher_that_is_the_student(train, smollm2):
    steps, _ = train(
        "distillation",
        teacher_model_name_or_path=smollm2,
        datasets="[{path: 'builtin:sums', params: {low: 2, high: 20}, size: 64}]",
        max_completion_length="12",
        thinking_share="null",  # its template has no switch
        heldout="null",
    )
    assert steps[0]["loss"] == pytest.approx(0, abs=1e-3)  # a new adapter changes nothing: both say the same
