"""Averages of weights: of full models, of adapters and of both, against sums made here by hand."""

import json
import shutil

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3ForSequenceClassification,
    Qwen3ForTokenClassification,
)

from trl_reasoning.builtin.tiny import build_tokenizer
from trl_reasoning.exporting import ExportError, average, describe, merge, save_export


NORM = "model.norm.weight"


@pytest.mark.parametrize("kind", [Qwen3ForSequenceClassification, Qwen3ForTokenClassification])
def test_a_model_with_another_head_is_refused(tmp_path, kind):
    """Read as a language model it would lose the head that was trained."""
    policy = save_model(tmp_path / "policy", 0)
    scorer = save_model(tmp_path / "scorer", 1, kind=kind, num_labels=1)
    adapter = get_peft_model(
        kind.from_pretrained(policy, num_labels=1),
        LoraConfig(
            r=2, task_type="SEQ_CLS" if "Sequence" in kind.__name__ else "TOKEN_CLS", target_modules=["q_proj"]
        ),
    )
    adapter.save_pretrained(tmp_path / "adapter")
    with pytest.raises(ExportError, match=f"model: .*scorer holds {kind.__name__}, not a causal language model"):
        merge(scorer)
    with pytest.raises(ExportError, match=f"model: .*scorer holds {kind.__name__}"):
        average([policy, scorer])
    for model, name in ((str(tmp_path / "adapter"), None), (policy, str(tmp_path / "adapter"))):
        with pytest.raises(ExportError, match="model: .*adapter holds an adapter for the task (SEQ|TOKEN)_CLS"):
            merge(model, name)


def save_model(folder, seed, *, kind=Qwen3ForCausalLM, config=Qwen3Config, tokenizer=None, norm=None, **changes):
    tokenizer = tokenizer or build_tokenizer()
    settings = {
        "vocab_size": len(build_tokenizer()),
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "tie_word_embeddings": True,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": None,
        **changes,
    }
    torch.manual_seed(seed)
    model = kind(config(**settings))
    if norm is not None:
        model.model.norm.weight.data[: len(norm)] = torch.tensor(norm)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def save_adapter(folder, base, seed, rank, alpha):
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(base)
    settings = LoraConfig(
        r=rank,
        lora_alpha=alpha,
        target_modules=["q_proj", "down_proj"],
        init_lora_weights=False,
        task_type="CAUSAL_LM",
    )
    get_peft_model(model, settings).save_pretrained(str(folder))
    return str(folder)


def weights_of(folder):
    return load_file(f"{folder}/model.safetensors")


def deltas(folder):
    """What an adapter adds to each weight, (out, in), from its file alone."""
    tensors = load_file(f"{folder}/adapter_model.safetensors")
    settings = json.loads((folder / "adapter_config.json").read_text())
    scale = settings["lora_alpha"] / settings["r"]
    names = [name.removesuffix(".lora_A.weight") for name in tensors if name.endswith(".lora_A.weight")]
    return {
        f"{name.removeprefix('base_model.model.')}.weight": scale
        * tensors[f"{name}.lora_B.weight"]
        @ tensors[f"{name}.lora_A.weight"]
        for name in names
    }


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    long = save_model(root / "long", 0, norm=[1.0, 3.0])
    short = save_model(root / "short", 1, norm=[3.0, -1.0])
    save_adapter(root / "lora_1", long, 2, rank=2, alpha=4)
    save_adapter(root / "lora_2", long, 3, rank=4, alpha=2)
    return root, long, short


def test_the_average_of_two_full_models(folders, tmp_path):
    _, long, short = folders
    exported = average([long, short])
    assert exported.averaged == {long: 0.5, short: 0.5}
    assert exported.model.state_dict()[NORM][:2].tolist() == [2.0, 1.0]  # of [1, 3] and [3, -1]
    output = save_export(exported, tmp_path / "out")
    ours, parts = weights_of(output), [weights_of(folder) for folder in (long, short)]
    assert ours.keys() == parts[0].keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, (parts[0][name] + parts[1][name]) / 2)
    assert (output / "chat_template.jinja").read_text() == AutoTokenizer.from_pretrained(long).chat_template
    assert AutoModelForCausalLM.from_pretrained(output).generation_config.eos_token_id is not None


def test_the_weights_of_the_models(folders):
    _, long, short = folders
    assert average([long, short], [0.25, 0.75]).model.state_dict()[NORM][:2].tolist() == [2.5, 0.0]
    # Away from the second one: 1.5 x 1 - 0.5 x 3, 1.5 x 3 + 0.5 x 1
    assert average([long, short], [1.5, -0.5], check=False).model.state_dict()[NORM][:2].tolist() == [0.0, 5.0]


def test_adapters_on_one_base_are_averaged_by_what_they_add(folders):
    root, long, _ = folders
    names = [str(root / name) for name in ("lora_1", "lora_2")]
    averaged = average(names, [0.25, 0.75]).model.state_dict()
    first, second = deltas(root / "lora_1"), deltas(root / "lora_2")
    base = weights_of(long)
    assert len(first) == 2
    for name, tensor in base.items():
        added = 0.25 * first[name] + 0.75 * second[name] if name in first else torch.zeros(())
        torch.testing.assert_close(averaged[name], tensor + added, atol=1e-6, rtol=0)


def test_an_adapter_with_a_full_model(folders):
    root, long, short = folders
    exported = average([str(root / "lora_1"), short])
    trained = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(long), str(root / "lora_1"))
    merged = trained.merge_and_unload().state_dict()
    for name, tensor in weights_of(short).items():
        torch.testing.assert_close(exported.model.state_dict()[name], (merged[name] + tensor) / 2, atol=1e-6, rtol=0)
    assert any("adapter merged into" in note and "against base plus adapter" in note for note in exported.notes)


def test_what_is_said_and_measured(folders, tmp_path):
    _, long, short = folders
    exported = average([long, short], dtype="bfloat16")
    lines = describe(exported)
    assert lines[0] == f"Average of weights in float32, saved as bfloat16: 0.5 x {long}, 0.5 x {short}."
    assert any(line.startswith(f"the average against {short}: logit difference mean") for line in lines)
    assert set(exported.differences) == {long, short, "rounding"}
    assert exported.model.dtype == torch.bfloat16
    record = json.loads((save_export(exported, tmp_path / "out") / "export.json").read_text())
    assert record["averaged"] == {long: 0.5, short: 0.5}
    assert average([long, short], check=False).differences == {}


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, 2], r"weights: expected the sum 1, got 3; with the sum 1 they are \[0.3333, 0.6667\]"),
        ([1, -1], r"weights: expected the sum 1, got 0$"),
        ([0.5, 0.25, 0.25], "weights: 3 for 2 models"),
    ],
)
def test_wrong_weights(folders, weights, words):
    with pytest.raises(ExportError, match=words):
        average(list(folders[1:]), weights)


def test_too_few_models(folders):
    with pytest.raises(ExportError, match="at least two models, got 1"):
        average([folders[1]])
    with pytest.raises(ExportError, match="is named twice"):
        average([folders[1], folders[1]])


def test_dequantized_weights_are_for_adapters_of_a_four_bit_base(folders):
    with pytest.raises(ExportError, match="none of these was"):
        average(list(folders[1:]), into="dequantized", check=False)


def test_models_that_do_not_fit(folders, tmp_path):
    _, long, _ = folders
    wide = save_model(tmp_path / "wide", 0, intermediate_size=32)
    with pytest.raises(ExportError, match=r"different weights: .*down_proj.weight \(\(16, 24\), \(16, 32\)\)"):
        average([long, wide])
    apart = save_model(tmp_path / "apart", 0, tie_word_embeddings=False)
    with pytest.raises(ExportError, match=r"different weights: lm_head.weight \(only in one\)"):
        average([long, apart])
    llama = save_model(tmp_path / "llama", 0, kind=LlamaForCausalLM, config=LlamaConfig)
    with pytest.raises(ExportError, match="a Qwen3ForCausalLM and a LlamaForCausalLM"):
        average([long, llama])
    other = shutil.copytree(long, tmp_path / "other")
    text = (other / "tokenizer.json").read_text()
    (other / "tokenizer.json").write_text(
        text.replace('"a": ', '"X": ', 1).replace('"A": ', '"a": ', 1).replace('"X"', '"A"', 1)
    )
    with pytest.raises(ExportError, match=r"different tokenizers; tokens and their ids: 'A' \(\d+, \d+\), 'a' \("):
        average([long, str(other)])


def test_what_may_differ_is_noted(folders, tmp_path):
    _, long, short = folders
    other = tmp_path / "other"
    shutil.copytree(short, other)
    settings = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**settings, "max_position_embeddings": 99, "dtype": "bfloat16"}))
    tokenizer = AutoTokenizer.from_pretrained(other)
    tokenizer.add_tokens(["<step>"])
    tokenizer.save_pretrained(other)
    (other / "chat_template.jinja").write_text("{{ messages[0].content }}")
    notes = average([long, str(other)], check=False).notes
    assert any(
        note.startswith(f"tokenizer of {long}; {other} has other added tokens: '<step>' (None, ") for note in notes
    )
    assert f"chat template of {long}; that of {other} is another one" in notes
    assert f"config of {long}; that of {other} differs in max_position_embeddings" in notes
    assert "the files hold float32 and bfloat16" in notes
