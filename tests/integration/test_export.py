"""`trl-reasoning export` on adapters of the built-in model: what is saved is what was trained."""

import json
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors import safe_open
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from trl_reasoning.builtin import resolve_model
from trl_reasoning.cli import main


RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "smoke" / "sft_tiny.yaml"
LORA = ["--use_peft", "true", "--lora_r", "4", "--lora_alpha", "8", "--learning_rate", "1e-2"]
QUESTION = "7+5-3=?"
FILES = {
    "README.md",
    "chat_template.jinja",
    "config.json",
    "export.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
}


def train(folder: Path, *words: str) -> Path:
    assert main(["train", str(RECIPE), *LORA, "--output_dir", str(folder), *words]) == 0
    weights = load_file(folder / "adapter_model.safetensors")
    assert all(weights[name].abs().max() > 0 for name in weights if "lora_B" in name)
    return folder


def export(model: Path | str, output: Path, *words: str) -> Path:
    assert main(["export", "--model", str(model), "--output_dir", str(output), *words]) == 0
    return output


def logits_of(model) -> torch.Tensor:
    ids = AutoTokenizer.from_pretrained(resolve_model("builtin:tiny"))(QUESTION, return_tensors="pt").input_ids
    with torch.no_grad():
        return model.eval()(ids).logits


def with_adapter(run: Path, **kwargs):
    """Base plus adapter in float32, built here from PEFT alone."""
    base = AutoModelForCausalLM.from_pretrained(resolve_model("builtin:tiny"), **{"dtype": torch.float32, **kwargs})
    return PeftModel.from_pretrained(base, run)


def greedy_text(model, tokenizer) -> str:
    messages = [{"role": "user", "content": QUESTION}]
    inputs = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    output = model.generate(**inputs, max_new_tokens=24, do_sample=False)
    return tokenizer.decode(output[0])


@pytest.fixture(scope="module")
def lora_run(tmp_path_factory) -> Path:
    return train(tmp_path_factory.mktemp("lora"))


@pytest.fixture(scope="module")
def four_bit_run(tmp_path_factory) -> Path:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes (extra `quantization`) is not installed")
    return train(tmp_path_factory.mktemp("four_bit"), "--load_in_4bit", "true", "--use_bnb_nested_quant", "true")


@pytest.fixture(scope="module")
def four_bit_logits(four_bit_run) -> torch.Tensor:
    """Of the 4-bit base plus adapter, computing in float32."""
    from bitsandbytes.nn import Linear4bit, Params4bit
    from transformers import BitsAndBytesConfig

    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)
    model = with_adapter(four_bit_run, dtype=torch.bfloat16, quantization_config=config, device_map="cpu").eval()
    for parameter in model.parameters():
        if not isinstance(parameter, Params4bit):
            parameter.data = parameter.data.float()
    for module in model.modules():
        if isinstance(module, Linear4bit):
            module.train()  # in evaluation mode some CPUs compute in bfloat16
    ids = AutoTokenizer.from_pretrained(resolve_model("builtin:tiny"))(QUESTION, return_tensors="pt").input_ids
    with torch.no_grad():
        return model(ids).logits


def test_the_merged_model_is_base_plus_adapter(lora_run, tmp_path, capsys):
    output = export(lora_run, tmp_path / "merged", "--dtype", "float32")
    assert {path.name for path in output.iterdir()} == FILES
    shown = capsys.readouterr().out
    assert f"LoRA adapter {lora_run} merged into builtin:tiny (its original weights) in float32" in shown
    assert "merged against base plus adapter, in float32: logit difference mean" in shown

    merged, tokenizer = AutoModelForCausalLM.from_pretrained(output), AutoTokenizer.from_pretrained(output)
    assert type(merged).__name__ == "Qwen3ForCausalLM"
    expected = with_adapter(lora_run)
    assert (logits_of(merged) - logits_of(expected)).abs().max() < 1e-4
    base = AutoModelForCausalLM.from_pretrained(resolve_model("builtin:tiny"), dtype=torch.float32)
    assert (logits_of(merged) - logits_of(base)).abs().max() > 0.1
    text = greedy_text(merged, tokenizer)
    assert text == greedy_text(expected, tokenizer)
    assert text.startswith(f"<|user|>{QUESTION}<|end|><|assistant|>")

    record = json.loads((output / "export.json").read_text())
    assert (record["status"], record["base"], record["dtype"]) == ("finished", "builtin:tiny", "float32")
    assert record["differences"]["merge"]["max"] < 1e-4
    assert "merged into builtin:tiny" in (output / "README.md").read_text()


def test_it_is_saved_in_the_bases_format_with_tied_embeddings(lora_run, tmp_path, capsys):
    output = export(lora_run, tmp_path / "merged")
    assert "rounded to bfloat16 against float32: logit difference" in capsys.readouterr().out
    with safe_open(output / "model.safetensors", "pt") as weights:
        names = set(weights.keys())
        assert {weights.get_tensor(name).dtype for name in names} == {torch.bfloat16}
    assert "model.embed_tokens.weight" in names and "lm_head.weight" not in names
    config = json.loads((output / "config.json").read_text())
    assert (config["tie_word_embeddings"], config["dtype"]) == (True, "bfloat16")
    # The saved numbers are the merged ones, rounded once.
    exact = load_file(export(lora_run, tmp_path / "exact", "--dtype", "float32") / "model.safetensors")
    saved = load_file(output / "model.safetensors")
    assert all(torch.equal(saved[name], exact[name].to(torch.bfloat16)) for name in names)


def test_a_model_and_an_adapter_named_apart(lora_run, tmp_path):
    output = export("builtin:tiny", tmp_path / "merged", "--adapter", str(lora_run), "--dtype", "float32")
    merged = AutoModelForCausalLM.from_pretrained(output)
    assert (logits_of(merged) - logits_of(with_adapter(lora_run))).abs().max() < 1e-4


def test_a_model_without_an_adapter_changes_its_format(tmp_path, capsys):
    output = export("builtin:tiny", tmp_path / "half", "--dtype", "float16")
    assert "Weights of builtin:tiny, saved as float16." in capsys.readouterr().out
    assert AutoModelForCausalLM.from_pretrained(output).dtype == torch.float16


def test_a_4_bit_adapter_in_the_dequantized_base_is_what_was_trained(four_bit_run, four_bit_logits, tmp_path, capsys):
    output = export(four_bit_run, tmp_path / "merged", "--base", "dequantized", "--dtype", "float32")
    assert "merged against the 4-bit base plus adapter, in float32" in capsys.readouterr().out
    merged = AutoModelForCausalLM.from_pretrained(output)
    assert "quantization_config" not in json.loads((output / "config.json").read_text())
    assert (logits_of(merged) - four_bit_logits).abs().max() < 1e-4
    record = json.loads((output / "export.json").read_text())
    assert record["quantization"] == {"quant_type": "nf4", "nested": True, "dtype": "bfloat16"}
    assert record["differences"]["merge"]["max"] < 1e-4


def test_a_4_bit_adapter_in_the_original_base_shows_the_difference(four_bit_run, four_bit_logits, tmp_path, capsys):
    output = export(four_bit_run, tmp_path / "merged", "--dtype", "float32")
    shown = capsys.readouterr().out
    assert "saved model against the 4-bit base plus adapter that was trained: logit difference mean" in shown
    assert "`--base dequantized` merges into those" in shown
    merged = AutoModelForCausalLM.from_pretrained(output)
    assert (logits_of(merged) - logits_of(with_adapter(four_bit_run))).abs().max() < 1e-4
    assert (logits_of(merged) - four_bit_logits).abs().max() > 0.05
    difference = json.loads((output / "export.json").read_text())["differences"]["four_bit"]
    assert difference["max"] > difference["mean"] > 0.01 and difference["kl"] > 0


def test_the_settings_of_a_4_bit_run_can_be_given(four_bit_run, tmp_path, capsys):
    """An adapter whose run left no resolved.yaml."""
    alone = tmp_path / "alone"
    alone.mkdir()
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (alone / name).write_bytes((four_bit_run / name).read_bytes())
    words = ["export", "--model", str(alone), "--output_dir", str(tmp_path / "out"), "--base", "dequantized"]
    assert main(words) == 2
    assert "no resolved.yaml beside" in capsys.readouterr().err
    assert main([*words, "--load_in_4bit", "--use_bnb_nested_quant", "true", "--dtype", "float32"]) == 0
    told = load_file(tmp_path / "out" / "model.safetensors")
    found = load_file(
        export(four_bit_run, tmp_path / "found", "--base", "dequantized", "--dtype", "float32") / "model.safetensors"
    )
    assert all(torch.equal(told[name], found[name]) for name in found)
