"""The embedded model: its size, its tokenizer and its chat template."""

from pathlib import Path

import pytest

from trl_reasoning.builtin import BUILTIN_MODELS, build_tiny, resolve_model


@pytest.fixture(scope="module")
def tokenizer():
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(resolve_model("builtin:tiny"))


def test_names():
    assert resolve_model("some/model") == "some/model"
    assert (Path(resolve_model("builtin:tiny")) / "model.safetensors").exists()
    assert set(BUILTIN_MODELS) == {"tiny", "tiny-untrained", "mini-untrained"}
    with pytest.raises(ValueError, match="builtin:tinny.*builtin:tiny"):
        resolve_model("builtin:tinny")


def test_shipped_checkpoint_is_small_and_bfloat16():
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(resolve_model("builtin:tiny"), dtype="auto")
    assert model.dtype == torch.bfloat16
    assert model.config.model_type == "qwen3"
    assert 0.5e6 < sum(parameter.numel() for parameter in model.parameters()) < 1.5e6
    assert (Path(resolve_model("builtin:tiny")) / "model.safetensors").stat().st_size < 2e6


def test_untrained_model_is_made_once_from_the_seed(tmp_path, monkeypatch):
    from safetensors.torch import load_file

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = Path(resolve_model("builtin:tiny-untrained"))
    assert folder.is_relative_to(tmp_path)
    assert resolve_model("builtin:tiny-untrained") == str(folder)
    again = load_file(build_tiny(tmp_path / "again") / "model.safetensors")
    assert all(tensor.equal(again[name]) for name, tensor in load_file(folder / "model.safetensors").items())


def test_the_mini_model_is_smaller_and_has_the_same_tokenizer(tokenizer, tmp_path, monkeypatch):
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = Path(resolve_model("builtin:mini-untrained"))
    assert folder == tmp_path / "trl_reasoning" / "mini-untrained-v1"
    model = AutoModelForCausalLM.from_pretrained(folder)
    # A layer has 2 x 64 x 64 (q, o), 2 x 64 x 32 (k, v), 3 x 64 x 256 (MLP) and norms of 2 x 64 and 2 x 32.
    layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 256 + 2 * 64 + 2 * 32
    assert model.num_parameters() == len(tokenizer) * 64 + 4 * layer + 64
    assert AutoTokenizer.from_pretrained(folder).get_vocab() == tokenizer.get_vocab()
    again = load_file(build_tiny(tmp_path / "again", size="mini") / "model.safetensors")
    assert all(tensor.equal(again[name]) for name, tensor in load_file(folder / "model.safetensors").items())


def test_one_token_a_character_and_tags_survive_decoding(tokenizer):
    text = "<think>7+5=12\n12-3=9</think>9"
    ids = tokenizer(text).input_ids
    assert len(ids) == len("7+5=12\n12-3=9") + 2 + 1
    assert tokenizer.decode(ids, skip_special_tokens=True) == text
    assert tokenizer.eos_token == "<|end|>" and tokenizer.pad_token == "<|pad|>"
    assert tokenizer.decode(tokenizer("a<|end|>").input_ids, skip_special_tokens=True) == "a"


def test_template(tokenizer):
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "1+1=?"}]
    prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert prompt == "<|system|>s<|end|><|user|>1+1=?<|end|><|assistant|>"
    closed = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, enable_thinking=False)
    assert closed == prompt + "<think></think>"
    reply = {"role": "assistant", "content": "2", "reasoning_content": "1+1=2"}
    whole = tokenizer.apply_chat_template([*messages, reply], tokenize=False)
    assert whole == prompt + "<think>1+1=2</think>2<|end|>"


def test_loss_mask_covers_the_assistants_text_alone(tokenizer):
    messages = [{"role": "user", "content": "1+1=?"}, {"role": "assistant", "content": "<think></think>2"}]
    encoded = tokenizer.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)
    kept = [token for token, keep in zip(encoded["input_ids"], encoded["assistant_masks"], strict=True) if keep]
    assert tokenizer.decode(kept) == "<think></think>2<|end|>"
