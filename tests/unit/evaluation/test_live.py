"""Held-out accuracy of a trainer's model."""

from types import SimpleNamespace

import pytest
from accelerate import Accelerator
from transformers import AutoModelForCausalLM, AutoTokenizer

from trl_reasoning.builtin import build_tiny, make_chain_dataset
from trl_reasoning.evaluation import LiveMeasure


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_tiny(tmp_path_factory.mktemp("tiny"))


def test_the_live_model_is_measured_and_left_in_training(folder):
    model = AutoModelForCausalLM.from_pretrained(folder).train()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    dataset = make_chain_dataset("heldout", size=4, operands=2)
    measure = LiveMeasure(dataset, tokenizer, {"samples": 2, "temperature": 1.0, "max_new_tokens": None})
    args = SimpleNamespace(seed=1, max_completion_length=6, stop_strings=None, chat_template_kwargs=None)
    measure.trainer = SimpleNamespace(model=model, accelerator=Accelerator(cpu=True), args=args)
    first = measure()
    assert first["accuracy"] == 0.0
    assert 0 < first["mean_tokens"] <= 6
    assert model.training
    assert measure() == first
