"""Preference runs resume exactly: the log and the weights of an interrupted run are those of a straight one."""

import pytest
import torch
from peft import PeftModel
from preference_tools import STEMS, log_of, lora, make_trainer, pairs, weights_of
from transformers import AutoModelForCausalLM


@pytest.mark.parametrize("kind", ["full", "lora"])
@pytest.mark.parametrize("stem", STEMS)
def test_it_resumes_exactly(tiny, common, tmp_path, stem, kind):
    check(lambda settings, steps: make(stem, tiny, settings, steps, peft=kind == "lora"), common, tmp_path)


def test_it_resumes_exactly_from_a_saved_adapter(tiny, common, tmp_path):
    """The frozen copy of the start adapter is made anew and not read from the checkpoint."""
    torch.manual_seed(0)
    model = PeftModel(AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32), lora())
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight += 0.05 * torch.randn_like(weight)
    model.save_pretrained(tmp_path / "start")

    def build(settings, steps):
        base = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
        return make("dpo", PeftModel.from_pretrained(base, tmp_path / "start", is_trainable=True), settings, steps)

    check(build, common, tmp_path)


def make(stem, model, settings, steps, peft=False):
    return make_trainer(
        stem, model, settings, data=pairs(12), peft=peft, max_steps=steps, lr_scheduler_type="constant"
    )


def check(build, common, tmp_path):
    # Three batches an epoch: step 4 lies in the second one.
    def settings(name):
        return {**common, "output_dir": str(tmp_path / name), "save_strategy": "steps", "save_steps": 1}

    straight = build(settings("straight"), 5)
    straight.train()
    build(settings("parts"), 4).train()
    resumed = build(settings("parts"), 5)
    resumed.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-4"))
    assert len(log_of(resumed)) == 5
    for own, row in zip(log_of(resumed), log_of(straight), strict=True):
        own["num_tokens"] = row["num_tokens"]  # TRL starts counting anew
        assert own == pytest.approx(row, rel=1e-5, abs=1e-6)
    assert len({row["loss"] for row in log_of(straight)}) == 5
    for name, weight in weights_of(straight).items():
        torch.testing.assert_close(weights_of(resumed)[name], weight, rtol=1e-4, atol=1e-6)
