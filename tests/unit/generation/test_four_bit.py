"""Training on a 4-bit base goes on rightly after an evaluation in between."""

import pytest
import torch

from trl_reasoning.builtin import resolve_model
from trl_reasoning.generation.four_bit import keep_unpacked


pytest.importorskip("bitsandbytes", reason="bitsandbytes (extra `quantization`) is not installed")


def test_gradients_are_the_same_after_an_evaluation():
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)
    model = AutoModelForCausalLM.from_pretrained(
        resolve_model("builtin:tiny"), dtype=torch.bfloat16, quantization_config=config, device_map="cpu"
    )
    keep_unpacked(model)
    inputs = torch.randn(1, 6, model.config.hidden_size, dtype=torch.bfloat16)

    def gradient() -> torch.Tensor:
        embeds = inputs.clone().requires_grad_()
        model.train()
        model(inputs_embeds=embeds, labels=torch.arange(10, 16)[None]).loss.backward()
        assert embeds.grad is not None
        return embeds.grad

    before = gradient()
    assert before.abs().sum() > 0
    model.eval()
    with torch.no_grad():
        model(inputs_embeds=inputs)
    assert torch.equal(gradient(), before)


def test_a_model_without_4_bit_layers_stays_as_it_is():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    before = dict(vars(model[0]))
    keep_unpacked(model)
    assert dict(vars(model[0])) == before
