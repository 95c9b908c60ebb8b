"""Distillation from stored log-probs: its keys, adapters, 4 bits and exact resume."""

import pytest
import torch
from distillation_tools import TINY, UNTRAINED, losses
from peft import LoraConfig
from safetensors.torch import load_file
from transformers import BitsAndBytesConfig

from trl_reasoning.builtin import make_chain_dataset
from trl_reasoning.trainers import LogitDistillationConfig, LogitDistillationTrainer


DATA = make_chain_dataset(size=10, operands=(2, 3))


@pytest.fixture
def build(tiny, common, tmp_path):
    def build(folder="out", peft_config=None, quantization_config=None, **changes):
        config = LogitDistillationConfig(
            **{
                **common,
                "output_dir": str(tmp_path / folder),
                "teacher_logits": str(tmp_path / "store"),
                "teacher_model_name_or_path": UNTRAINED,
                "teacher_top_k": 4,
                "per_device_train_batch_size": 2,
                "learning_rate": 1e-3,
                "lr_scheduler_type": "constant",
                "max_steps": 2,
                **changes,
            }
        )
        return LogitDistillationTrainer(
            model=tiny,
            args=config,
            train_dataset=DATA,
            peft_config=peft_config,
            quantization_config=quantization_config,
        )

    return build


def lora(dropout: float = 0.0) -> LoraConfig:
    return LoraConfig(r=4, target_modules="all-linear", lora_dropout=dropout, task_type="CAUSAL_LM")


@pytest.mark.parametrize("peft", [False, True], ids=["full", "lora"])
def test_resume(build, tmp_path, peft):
    """An epoch has three steps of two micro-batches, the last one of one; adapters have dropout."""
    settings = {"max_steps": 5, "save_strategy": "steps", "save_steps": 1, "gradient_accumulation_steps": 2}
    settings |= {"peft_config": lora(dropout=0.1)} if peft else {}
    straight = build("straight", **settings)
    straight.train()
    stop = 4 if peft else 2
    resumed = build("resumed", **settings)
    resumed.train(resume_from_checkpoint=str(tmp_path / "straight" / f"checkpoint-{stop}"))
    assert len(set(losses(straight).values())) == 5
    assert losses(resumed) == pytest.approx(losses(straight), abs=1e-5)


def test_four_bits_for_student_and_teacher(build, tmp_path):
    pytest.importorskip("bitsandbytes", reason="bitsandbytes (extra `quantization`) is not installed")
    four_bit = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32)
    trainer = build(
        peft_config=lora(), quantization_config=four_bit, teacher_load_in_4bit=True, teacher_model_name_or_path=TINY
    )
    trainer.train()
    trainer.save_model()
    weights = load_file(tmp_path / "out" / "adapter_model.safetensors")
    assert all(weight.dtype == torch.float32 for weight in weights.values())
    assert any(weight.abs().sum() > 0 for name, weight in weights.items() if "lora_B" in name)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ce_weight": 1.5}, r"^ce_weight: expected a share in \[0, 1\], got 1.5"),
        ({"temperature": 0.0}, "^temperature: expected a number above 0, got 0.0"),
        ({"teacher_top_k": 0}, "^teacher_top_k: expected at least 1, got 0"),
        ({"teacher_batch_size": 0}, "^teacher_batch_size: expected at least 1, got 0"),
        ({"packing": True}, "^packing: logit_distillation needs False, got True"),
        ({"loss_type": "dft"}, "^loss_type: logit_distillation needs 'nll'"),
        ({"label_smoothing_factor": 0.1}, "^label_smoothing_factor: logit_distillation needs 0.0"),
        ({"truncation_mode": "keep_end"}, "^truncation_mode: logit_distillation needs 'keep_start'"),
    ],
)
def test_refused(common, given, message):
    with pytest.raises(ValueError, match=message):
        LogitDistillationConfig(**common, **given)
