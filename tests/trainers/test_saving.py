"""A saved folder holds the trained adapter alone; a reference is where the run started."""

import pytest
from peft import LoraConfig, PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from trl_reasoning.trainers import ReasoningGRPOConfig, ReasoningGRPOTrainer, ReasoningSFTConfig, ReasoningSFTTrainer


@pytest.fixture
def sft_adapter(tiny, chain, common, tmp_path) -> str:
    config = ReasoningSFTConfig(**{**common, "output_dir": str(tmp_path / "sft")}, max_steps=3, learning_rate=1e-2)
    trainer = ReasoningSFTTrainer(
        model=tiny,
        args=config,
        train_dataset=chain.select_columns(["prompt", "completion"]),
        peft_config=LoraConfig(r=4, target_modules="all-linear", lora_dropout=0.1, task_type="CAUSAL_LM"),
    )
    trainer.train()
    trainer.save_model(str(tmp_path / "sft"))
    return str(tmp_path / "sft")


def grpo(model, chain, common, reward, **kwargs):
    config = ReasoningGRPOConfig(
        **common,
        num_generations=4,
        per_device_train_batch_size=4,
        max_completion_length=12,
        max_steps=3,
        temperature=1.5,
        learning_rate=1e-2,
        lr_scheduler_type="constant",
    )
    return ReasoningGRPOTrainer(model=model, args=config, reward_funcs=[reward], train_dataset=chain, **kwargs)


def kl_of_steps(trainer) -> list[float]:
    return [log["kl"] for log in trainer.state.log_history if "kl" in log]


def test_kl_starts_at_zero_from_a_fresh_adapter(tiny, chain, common, length_reward):
    peft_config = LoraConfig(r=4, target_modules="all-linear", lora_dropout=0.1, task_type="CAUSAL_LM")
    trainer = grpo(tiny, chain, common, length_reward, peft_config=peft_config)
    trainer.train()
    first, *later = kl_of_steps(trainer)
    assert first == 0.0
    assert max(later) > 0.0


def test_from_a_saved_adapter_kl_starts_at_zero_and_only_the_trained_one_is_saved(
    tiny, chain, common, length_reward, sft_adapter, tmp_path
):
    model = AutoModelForCausalLM.from_pretrained(tiny, dtype="float32")
    model = PeftModel.from_pretrained(model, sft_adapter, is_trainable=True)
    trainer = grpo(model, chain, common, length_reward)
    trainer.train()
    first, *later = kl_of_steps(trainer)
    assert first == pytest.approx(0.0, abs=1e-9)
    assert max(later) > 0.0

    saved = tmp_path / "saved"
    trainer.save_model(str(saved))
    assert not (saved / "ref").exists()
    assert "ref" in trainer.model.peft_config  # still there for the steps that follow
    weights, start = (
        load_file(saved / "adapter_model.safetensors"),
        load_file(f"{sft_adapter}/adapter_model.safetensors"),
    )
    assert weights.keys() == start.keys()
    assert all("lora_" in name for name in weights)
    assert any(not weights[name].equal(start[name]) for name in weights)
