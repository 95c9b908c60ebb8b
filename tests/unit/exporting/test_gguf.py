"""A GGUF file written here becomes the model that its numbers say."""

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config, Qwen2ForCausalLM

from trl_reasoning.cli import main
from trl_reasoning.exporting import ExportError, read_gguf


gguf = pytest.importorskip("gguf", reason="the package gguf (extra `gguf`) is not installed")
TOKENS = ["<|end|>", "a", "b", "ab"]
TEMPLATE = "{% for message in messages %}{{ message['content'] }}<|end|>{% endfor %}"
NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "model.layers.0.input_layernorm.weight": "blk.0.attn_norm.weight",
    "model.layers.0.post_attention_layernorm.weight": "blk.0.ffn_norm.weight",
    "model.layers.0.self_attn.o_proj.weight": "blk.0.attn_output.weight",
    **{
        f"model.layers.0.self_attn.{x}_proj.{kind}": f"blk.0.attn_{x}.{kind}"
        for x in "qkv"
        for kind in ("weight", "bias")
    },
    **{f"model.layers.0.mlp.{x}_proj.weight": f"blk.0.ffn_{x}.weight" for x in ("gate", "up", "down")},
}


@pytest.fixture(scope="module")
def model() -> Qwen2ForCausalLM:
    config = Qwen2Config(
        vocab_size=len(TOKENS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
        rms_norm_eps=1e-6,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    return Qwen2ForCausalLM(config).eval()


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("gguf")
    writer = gguf.GGUFWriter(folder / "tiny.gguf", "qwen2")
    config = model.config
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 1, 1, 1])
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(0)
    writer.add_bos_token_id(0)
    writer.add_chat_template(TEMPLATE)
    weights = model.state_dict()
    for name, theirs in NAMES.items():
        writer.add_tensor(theirs, weights[name].numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return folder


def test_the_plain_folder_is_the_same_model(model, folder, tmp_path, capsys):
    output = tmp_path / "plain"
    words = ["--model", str(folder), "--gguf_file", "tiny.gguf", "--dtype", "float32", "--output_dir", str(output)]
    assert main(["export", *words]) == 0
    assert "Weights of tiny.gguf (GGUF, dequantised), saved as float32." in capsys.readouterr().out
    plain = AutoModelForCausalLM.from_pretrained(output)
    assert "quantization_config" not in plain.config.to_dict()
    assert plain.dtype == torch.float32
    ids = torch.tensor([[1, 2, 3, 1]])
    with torch.no_grad():
        assert torch.allclose(plain(ids).logits, model(ids).logits, atol=1e-5)
    tokenizer = AutoTokenizer.from_pretrained(output)
    assert tokenizer("ab").input_ids == [3]
    assert tokenizer.eos_token == "<|end|>"
    assert tokenizer.chat_template == TEMPLATE


def test_bfloat16_is_the_default(folder):
    exported = read_gguf(str(folder), "tiny.gguf")
    assert exported.model.dtype == torch.bfloat16
    assert exported.model.generation_config.eos_token_id == 0


def test_a_missing_file_names_those_that_are_there(folder):
    with pytest.raises(ExportError, match=r"no file 'tinny.gguf' in .*; GGUF files there: tiny.gguf"):
        read_gguf(str(folder), "tinny.gguf")
