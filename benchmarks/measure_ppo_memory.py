"""Measure what PPO's models need: all on one base with adapters, against models of their own."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from trl_reasoning import PPOConfig, PPOTrainer
from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.evaluation import peak_memory_mb


# Each in a process of its own, since a peak cannot be reset.
SETUPS = {
    "full": "full fine-tuning: policy, value, reference and reward model, each its own weights",
    "lora_apart": "LoRA, with three more copies of the base, which value, reference and reward model would bring",
    "lora_shared": "LoRA: one base with an adapter for the policy, the value and the reward model",
    "lora_head": "LoRA: one base, the value a head on the policy's hidden states (value_model: shared)",
}


def measure(name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Train a few steps in each setup.

    Args:
        name (`str`):
            Name of the experiment.
        settings (`dict[str, Any]`):
            `model` (`env:NAME` is read from the environment), `rows`, `steps`, `max_completion_length`, `lora_r`,
            `seeds`.

    Returns:
        `tuple[dict[str, Any], str]`: for each setup the bytes of all parameters and of the trained ones, those of the
        optimizer, and the peak memory in MB above that of the process before any model was loaded; and a summary.
    """
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        _save_reward_models(_model_path(settings["model"]), folder, settings)
        for setup in SETUPS:
            command = [sys.executable, __file__, setup, folder, json.dumps(settings)]
            done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
            if done.returncode != 0:
                raise RuntimeError(f"{setup}: {done.stderr[-2000:]}")
            figures[setup] = {"what": SETUPS[setup], **json.loads(done.stdout.splitlines()[-1])}
    order = ("lora_shared", "lora_apart", "full")
    shared, apart, full = (figures[setup]["parameter_bytes"] / 2**20 for setup in order)
    peaks = ", ".join(f"{figures[setup]['peak_mb']:.0f} MB" for setup in order)
    summary = (
        f"parameters {shared:.1f} MB on one base, {apart:.1f} MB with a base each ({apart / shared:.2f}x), "
        f"{full:.1f} MB with full fine-tuning; peak above the empty process {peaks}"
    )
    return figures, summary


def _save_reward_models(model: str, folder: str, settings: dict[str, Any]) -> None:
    """A reward model, and one that is an adapter on the policy's base; what they say does not matter here."""
    torch.manual_seed(settings["seeds"][0])
    whole: Any = AutoModelForSequenceClassification.from_pretrained(model, num_labels=1, dtype="float32")
    whole.save_pretrained(f"{folder}/reward_model")
    config = LoraConfig(r=settings["lora_r"], target_modules="all-linear", task_type="SEQ_CLS")
    get_peft_model(whole, config).save_pretrained(f"{folder}/reward_adapter")


def _train(setup: str, folder: str, settings: dict[str, Any]) -> dict[str, float]:
    path = _model_path(settings["model"])
    before = _resident_mb()
    copies: list[Any] = []
    rewards: list[Any] = [_length]
    if setup == "full":
        from transformers import AutoTokenizer

        rewards = [AutoModelForSequenceClassification.from_pretrained(f"{folder}/reward_model", dtype="float32")]
        tokenizers = [AutoTokenizer.from_pretrained(path)]
    elif setup == "lora_apart":
        copies = [AutoModelForCausalLM.from_pretrained(path, dtype="float32") for _ in range(3)]
    is_lora = setup != "full"
    args = PPOConfig(
        output_dir=f"{folder}/{setup}",
        model_init_kwargs={"dtype": "float32"},
        max_steps=settings["steps"],
        per_device_train_batch_size=settings["rows"],
        max_completion_length=settings["max_completion_length"],
        num_iterations=settings["steps"],
        reward_adapter=f"{folder}/reward_adapter" if is_lora else None,
        value_model="shared" if setup == "lora_head" else "reward",
        seed=settings["seeds"][0],
        report_to=[],
        disable_tqdm=True,
        save_strategy="no",
        bf16=False,
        activation_checkpointing=False,
        dataloader_pin_memory=False,
        use_cpu=not torch.cuda.is_available(),
    )
    trainer = PPOTrainer(
        model=path,
        args=args,
        reward_funcs=rewards,
        reward_processing_classes=None if is_lora else tokenizers,
        train_dataset=make_chain_dataset(size=64),
        peft_config=LoraConfig(r=settings["lora_r"], target_modules="all-linear", task_type="CAUSAL_LM")
        if is_lora
        else None,
    )
    trainer.train()
    modules: list[Any] = [trainer.model, trainer._reference_model, *copies, *rewards]
    parameters = {p.data_ptr(): p for m in modules if isinstance(m, torch.nn.Module) for p in m.parameters()}
    states = [value for state in trainer.optimizer.state.values() for value in state.values()]  # type: ignore[union-attr]
    return {
        "parameter_bytes": sum(p.nbytes for p in parameters.values()),
        "trained_bytes": sum(p.nbytes for p in parameters.values() if p.requires_grad),
        "optimizer_bytes": sum(value.nbytes for value in states if isinstance(value, torch.Tensor)),
        "peak_mb": peak_memory_mb() - before,
    }


def _length(completion_ids: list[list[int]], **kwargs: Any) -> list[float]:
    return [float(len(ids)) for ids in completion_ids]


def _resident_mb() -> float:
    """Memory of the process so far; on an accelerator its own is counted, and nothing is there yet."""
    if torch.cuda.is_available():
        return 0.0
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _model_path(name: str) -> str:
    """A hub id, a folder, a builtin model, or what an environment variable says."""
    return os.environ[name.removeprefix("env:")] if name.startswith("env:") else resolve_model(name)


if __name__ == "__main__":
    print(json.dumps(_train(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))))
