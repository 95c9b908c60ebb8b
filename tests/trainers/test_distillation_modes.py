"""Thinking and non-thinking prompts in one run, teachers with adapters and in 4 bits, exact resume."""

import pytest
import torch
from datasets import Dataset
from distillation_tools import TINY, UNTRAINED, losses
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.errors import UserError
from trl_reasoning.trainers import ReasoningDistillationConfig, ReasoningDistillationTrainer


DATA = make_chain_dataset(size=10, operands=(2, 4))


@pytest.fixture
def build(tiny, common, tmp_path):
    def build(data=DATA, folder="out", **settings):
        extra = {key: settings.pop(key) for key in ("peft_config", "quantization_config") if key in settings}
        config = ReasoningDistillationConfig(
            **{
                **common,
                "output_dir": str(tmp_path / folder),
                "teacher_model_name_or_path": UNTRAINED,
                "per_device_train_batch_size": 4,
                "max_completion_length": 10,
                "learning_rate": 1e-3,
                "lr_scheduler_type": "constant",
                "max_steps": 1,
                **settings,
            }
        )
        return ReasoningDistillationTrainer(model=tiny, args=config, train_dataset=data, **extra)

    return build


def lora(dropout: float = 0.0) -> LoraConfig:
    return LoraConfig(r=4, target_modules="all-linear", lora_dropout=dropout, task_type="CAUSAL_LM")


def rendered(trainer, rows) -> list[str]:
    batch = trainer._generate_and_score_completions(rows)
    kept = [ids[mask.bool()] for ids, mask in zip(batch["prompt_ids"], batch["prompt_mask"], strict=True)]
    return [trainer.processing_class.decode(ids) for ids in kept]


def test_a_share_of_the_prompts_thinks(build):
    """Two of four rows are rendered with the template's empty thought, each as its row says."""
    trainer = build(thinking_share=0.5)
    rows = trainer.train_dataset
    flags = [row["chat_template_kwargs"]["enable_thinking"] for row in rows]
    assert sum(flags) == 5 and flags != sorted(flags, reverse=True)
    prompts = rendered(trainer, [rows[index] for index in range(4)])
    assert [not prompt.endswith("<think></think>") for prompt in prompts] == flags[:4]
    assert trainer.chat_template_kwargs == {}
    again = build(thinking_share=0.5).train_dataset
    assert again["chat_template_kwargs"][:] == rows["chat_template_kwargs"][:]


def test_a_rows_settings_go_before_the_configs(build):
    kwargs = [{"enable_thinking": True}, {"enable_thinking": None}, None, {"enable_thinking": False}]
    data = Dataset.from_list([{"prompt": DATA[0]["prompt"], "chat_template_kwargs": each} for each in kwargs])
    trainer = build(data, chat_template_kwargs={"enable_thinking": False})
    closed = [prompt.endswith("<think></think>") for prompt in rendered(trainer, [data[at] for at in range(4)])]
    assert closed == [False, True, True, True]
    assert trainer.chat_template_kwargs == {"enable_thinking": False}


def test_a_share_that_cannot_be_had_is_refused(build, tokenizer):
    with pytest.raises(UserError, match="thinking_share: the rows have a column `chat_template_kwargs`"):
        build(build(thinking_share=0.5).train_dataset, thinking_share=0.5)
    with pytest.raises(UserError, match="thinking_share: the prompts are plain text"):
        build(Dataset.from_list([{"prompt": "1+1="}] * 4), thinking_share=0.5)


def test_a_teacher_with_an_adapter_is_base_and_adapter(build, tmp_path):
    """A folder that holds the adapter alone names its base; merged or beside it, the logits are those of both."""
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(resolve_model(UNTRAINED)), lora())
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.3, generator=torch.Generator().manual_seed(len(name)))
    model.save_pretrained(tmp_path / "adapter")
    base = AutoModelForCausalLM.from_pretrained(resolve_model(UNTRAINED))
    whole = PeftModel.from_pretrained(base, str(tmp_path / "adapter")).eval()
    ids = torch.tensor([[5, 20, 30, 40]])
    for settings in (
        {"teacher_model_name_or_path": str(tmp_path / "adapter")},
        {"teacher_adapter_name_or_path": str(tmp_path / "adapter")},
    ):
        trainer = build(**settings)
        torch.testing.assert_close(trainer.teacher_model(ids).logits, whole(ids).logits, rtol=1e-4, atol=1e-4)
        assert not any(weight.requires_grad for weight in trainer.teacher_model.parameters())
    assert trainer.model(ids).logits.requires_grad


def test_four_bits_for_student_and_teacher(build, tmp_path):
    pytest.importorskip("bitsandbytes", reason="bitsandbytes (extra `quantization`) is not installed")
    four_bit = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32)
    trainer = build(
        peft_config=lora(),
        quantization_config=four_bit,
        teacher_load_in_4bit=True,
        teacher_model_name_or_path=TINY,
        beta=0.0,
        max_steps=3,
    )
    assert trainer.teacher_model.is_loaded_in_4bit and trainer.model.is_loaded_in_4bit
    trainer.train()
    trainer.save_model()
    weights = load_file(tmp_path / "out" / "adapter_model.safetensors")
    assert all(weight.dtype == torch.float32 for weight in weights.values())
    assert any(weight.abs().sum() > 0 for name, weight in weights.items() if "lora_B" in name)


@pytest.mark.parametrize("peft", [False, True], ids=["full", "lora"])
def test_resume(build, tmp_path, peft):
    """At the end of an epoch of two steps and inside the second one; adapters have dropout."""
    settings = {"max_steps": 4, "save_strategy": "steps", "save_steps": 1, "per_device_train_batch_size": 2}
    settings |= {"gradient_accumulation_steps": 2, "thinking_share": 0.5}
    settings |= {"peft_config": lora(dropout=0.1)} if peft else {}
    straight = build(folder="straight", **settings)
    straight.train()
    assert len(set(losses(straight).values())) == 4
    for stop in (3,) if peft else (2,):
        resumed = build(folder=f"from{stop}", **settings)
        resumed.train(resume_from_checkpoint=str(tmp_path / "straight" / f"checkpoint-{stop}"))
        assert losses(resumed) == pytest.approx(losses(straight), abs=1e-5)
