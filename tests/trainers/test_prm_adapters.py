"""Process reward models with adapters: the head is saved, 4-bit bases, going on from an adapter, exact resume."""

import json

import pytest
import torch
from peft import PeftModel
from prm_tools import lora, make_trainer, step_rows
from safetensors.torch import load_file
from transformers import AutoModelForTokenClassification

from trl_reasoning.errors import UserError
from trl_reasoning.generation.process_scorer import ProcessScorer, load_process_model
from trl_reasoning.trainers._loading import load_with_adapter


TRAINING = {"max_steps": 2, "learning_rate": 1e-2, "per_device_train_batch_size": 4}
HEAD = {"base_model.model.score.weight", "base_model.model.score.bias"}


def train(tiny, common, folder, **settings):
    trainer = make_trainer(tiny, common, step_rows(8), **{**TRAINING, "peft_config": lora(), **settings})
    trainer.train()
    trainer.save_model(str(folder))
    return trainer


def test_the_folder_holds_the_adapter_and_the_head_alone(tiny, common, tmp_path):
    trainer = train(tiny, common, tmp_path)
    weights = load_file(tmp_path / "adapter_model.safetensors")
    assert weights.keys() >= HEAD
    assert all("lora_" in name for name in weights.keys() - HEAD)
    assert not (tmp_path / "model.safetensors").exists()
    # The head learns, and no adapter sits on it.
    start = make_trainer(tiny, common, step_rows(8)).model.score.weight
    assert not weights["base_model.model.score.weight"].equal(start)
    assert trainer.model.peft_config["default"].exclude_modules


def test_an_adapter_without_a_head_is_refused(tiny, common, tmp_path):
    train(tiny, common, tmp_path)
    weights = load_file(tmp_path / "adapter_model.safetensors")
    from safetensors.torch import save_file

    save_file({name: weights[name] for name in weights.keys() - HEAD}, tmp_path / "adapter_model.safetensors")
    with pytest.raises(UserError, match="no weights for score"):
        load_process_model(str(tmp_path), device="cpu")


def test_going_on_from_an_adapter(tiny, common, tmp_path):
    first = train(tiny, common, tmp_path / "first")
    args = make_trainer(tiny, common, step_rows(8)).args
    model = load_with_adapter(tiny, str(tmp_path / "first"), args, "AutoModelForTokenClassification", dtype="float32")
    second = make_trainer(model, {**common, "output_dir": str(tmp_path / "out")}, step_rows(8), **TRAINING)
    assert isinstance(second.model, PeftModel)
    batch = first.data_collator([first.train_dataset[0]])
    for trainer in (first, second):
        trainer.model.eval()
    with torch.no_grad():
        scores = [t.model(**{k: batch[k] for k in ("input_ids", "attention_mask")}).logits for t in (first, second)]
    assert torch.allclose(*scores, atol=1e-5)
    second.train()
    second.save_model(str(tmp_path / "second"))
    assert load_file(tmp_path / "second" / "adapter_model.safetensors").keys() >= HEAD


def test_a_four_bit_base(tiny, common, tmp_path):
    """Adapter and head are trained in float32; the folder scores on the base as it is."""
    pytest.importorskip("bitsandbytes", reason="bitsandbytes (extra `quantization`) is not installed")
    from transformers import BitsAndBytesConfig

    quantized = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32)
    trainer = train(tiny, common, tmp_path, quantization_config=quantized)
    trained = [weight for weight in trainer.model.parameters() if weight.requires_grad]
    assert trainer.model.is_loaded_in_4bit
    assert {weight.dtype for weight in trained} == {torch.float32}
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in trained)
    weights = load_file(tmp_path / "adapter_model.safetensors")
    assert weights.keys() >= HEAD
    (scores,) = ProcessScorer(str(tmp_path), dtype="float32").score(["7+5-3=?"], [["7+5=12", "12-3=9"]])
    assert len(set(scores)) == 2


@pytest.mark.parametrize("peft", [False, True])
def test_resume_is_exact(tiny, common, tmp_path, peft):
    def run(name: str, steps: int, resume: int | None = None):
        settings = {**common, "output_dir": str(tmp_path / name), "save_strategy": "steps", "save_steps": 1}
        trainer = make_trainer(
            tiny, settings, step_rows(12), max_steps=steps, learning_rate=1e-2, lr_scheduler_type="constant",
            per_device_train_batch_size=4, peft_config=lora(lora_dropout=0.1) if peft else None,
        )  # fmt: skip
        trainer.train(resume_from_checkpoint=None if resume is None else str(tmp_path / name / f"checkpoint-{resume}"))
        return {log["step"]: log["loss"] for log in trainer.state.log_history if "loss" in log}

    straight = run("straight", 5)
    run("parts", 4)
    assert run("parts", 5, resume=4) == pytest.approx(straight, abs=1e-6)
    assert len(set(straight.values())) == 5
    # Each checkpoint says how the model reads, so that it can score as it is.
    assert json.loads((tmp_path / "parts" / "checkpoint-4" / "process_reward.json").read_text())["separator"] == "\n"


def test_two_labels_of_another_trainer_can_score(tiny, tokenizer, tmp_path):
    """Models with two labels score; their folder does not say how they read, so the settings do."""
    AutoModelForTokenClassification.from_pretrained(tiny, num_labels=2).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    scorers = [ProcessScorer(str(tmp_path), separator=separator) for separator in (None, ";")]
    first, second = (scorer.score(["7+5=?"], [["12"]])[0][0] for scorer in scorers)
    assert first != second
