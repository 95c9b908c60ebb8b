"""vLLM reads what `trl-reasoning export` writes and generates what transformers does."""

import os

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from trl_reasoning.builtin import resolve_model
from trl_reasoning.cli import main


@pytest.fixture
def exported(tmp_path) -> str:
    """SmolLM2-135M-Instruct where `TRL_REASONING_SMOLLM2` names it, else the built-in model, with a random adapter."""
    base = os.environ.get("TRL_REASONING_SMOLLM2", resolve_model("builtin:tiny"))
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    model = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM"))
    generator = torch.Generator().manual_seed(0)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            parameter.data += 0.02 * torch.randn(parameter.shape, generator=generator)
    model.save_pretrained(tmp_path / "adapter")
    words = ["--model", base, "--adapter", str(tmp_path / "adapter"), "--dtype", "float32"]
    assert main(["export", *words, "--output_dir", str(tmp_path / "merged")]) == 0
    return str(tmp_path / "merged")


@pytest.mark.vllm
@pytest.mark.filterwarnings("default")  # vLLM's own
def test_vllm_generates_what_transformers_does(exported):
    vllm = pytest.importorskip("vllm", reason="vLLM is not installed")
    tokenizer = AutoTokenizer.from_pretrained(exported)
    messages = [{"role": "user", "content": "7+5-3=?"}]
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]
    model = AutoModelForCausalLM.from_pretrained(exported)
    expected = model.generate(torch.tensor([ids]), max_new_tokens=8, do_sample=False)[0, len(ids) :].tolist()
    engine = vllm.LLM(exported, dtype="float32", enforce_eager=True, max_model_len=128, max_num_seqs=1)
    params = vllm.SamplingParams(temperature=0.0, max_tokens=8)
    output = engine.generate([{"prompt_token_ids": ids}], params)[0].outputs[0]
    assert list(output.token_ids) == expected
