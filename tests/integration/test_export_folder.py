"""What `trl-reasoning export` refuses, and special adapters: trained embeddings, another end token, a pipeline."""

import json

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from trl_reasoning.builtin import resolve_model
from trl_reasoning.cli import main


IDS = torch.tensor([[4, 20, 30, 40, 50]])


def save_adapter(folder, **settings):
    """An adapter with random weights, not trained, on the built-in model."""
    model = AutoModelForCausalLM.from_pretrained(resolve_model("builtin:tiny"), dtype=torch.float32)
    model = get_peft_model(model, LoraConfig(r=4, task_type="CAUSAL_LM", **settings))
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data += 0.02 * torch.randn(parameter.shape, generator=generator)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    return save_adapter(tmp_path_factory.mktemp("adapter"), target_modules="all-linear")


def export(adapter, output, *words) -> int:
    return main(["export", "--model", str(adapter), "--output_dir", str(output), "--dtype", "float32", *words])


def difference_to_adapter(output, adapter) -> float:
    base = AutoModelForCausalLM.from_pretrained(resolve_model("builtin:tiny"), dtype=torch.float32)
    expected = PeftModel.from_pretrained(base, adapter).eval()
    with torch.no_grad():
        return (AutoModelForCausalLM.from_pretrained(output)(IDS).logits - expected(IDS).logits).abs().max().item()


@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True` and a tied layer is part:UserWarning")
def test_an_output_matrix_that_was_trained_apart_is_kept(tmp_path, capsys):
    adapter = save_adapter(tmp_path / "adapter", target_modules=["q_proj"], modules_to_save=["lm_head"])
    assert export(adapter, tmp_path / "out") == 0
    assert "no longer tied to the input embeddings" in capsys.readouterr().out
    assert difference_to_adapter(tmp_path / "out", adapter) < 1e-4
    assert "lm_head.weight" in load_file(tmp_path / "out" / "model.safetensors")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["tie_word_embeddings"] is False


def test_trained_tokens_stay_tied(tmp_path):
    adapter = save_adapter(
        tmp_path / "adapter", target_modules=["q_proj"], trainable_token_indices={"embed_tokens": [7, 8]}
    )
    assert export(adapter, tmp_path / "out") == 0
    assert difference_to_adapter(tmp_path / "out", adapter) < 1e-4
    weights = load_file(tmp_path / "out" / "model.safetensors")
    base = load_file(f"{resolve_model('builtin:tiny')}/model.safetensors")
    changed = (weights["model.embed_tokens.weight"] != base["model.embed_tokens.weight"].float()).any(dim=1)
    assert changed.nonzero().flatten().tolist() == [7, 8]
    assert "lm_head.weight" not in weights


def test_the_end_token_of_the_run_stops_the_exported_model(adapter, tmp_path, capsys):
    tokenizer = AutoTokenizer.from_pretrained(resolve_model("builtin:tiny"))
    tokenizer.eos_token = "<|user|>"
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (tmp_path / name).write_bytes((adapter / name).read_bytes())
    tokenizer.save_pretrained(tmp_path)
    assert export(tmp_path, tmp_path / "out") == 0
    assert "generation_config.json now stops at '<|user|>', too" in capsys.readouterr().out
    config = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert config["eos_token_id"] == [tokenizer.convert_tokens_to_ids("<|user|>"), 1]
    assert AutoTokenizer.from_pretrained(tmp_path / "out").eos_token == "<|user|>"


def test_a_merge_outside_the_tolerance_is_not_saved(adapter, tmp_path, capsys):
    assert export(adapter, tmp_path / "out", "--tolerance", "1e-12") == 2
    assert "the merged model is not what was trained: logit difference mean" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert export(adapter, tmp_path / "out", "--no_check") == 0
    assert json.loads((tmp_path / "out" / "export.json").read_text())["differences"] == {}


def test_only_an_export_is_replaced(adapter, tmp_path, capsys):
    output = tmp_path / "out"
    output.mkdir()
    (output / "notes.txt").write_text("mine")
    assert export(adapter, output) == 2
    assert "is not empty (notes.txt) and no export" in capsys.readouterr().err
    assert export(adapter, output, "--restart") == 0
    (output / "model-00002-of-00002.safetensors").write_bytes(b"left from a larger model")
    assert export(adapter, output) == 0
    assert not (output / "model-00002-of-00002.safetensors").exists()
    assert (output / "notes.txt").read_text() == "mine"


def test_the_folder_of_the_adapter_is_never_written_to(adapter, tmp_path, capsys):
    before = sorted(path.name for path in adapter.iterdir())
    assert export(adapter, adapter, "--restart") == 2
    assert "is the folder that is exported" in capsys.readouterr().err
    assert export("builtin:tiny", adapter, "--restart") == 2
    assert "holds an adapter" in capsys.readouterr().err
    assert sorted(path.name for path in adapter.iterdir()) == before


def test_a_recipe_file_and_its_overrides(adapter, tmp_path, capsys):
    recipe = tmp_path / "export.yaml"
    recipe.write_text(f"kind: export\nmodel: {adapter}\ndtype: float32\noutput_dir: {tmp_path / 'out'}\n")
    assert main(["export", str(recipe), "--dtype=float16"]) == 0
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "out").dtype == torch.float16
    recipe.write_text(f"kind: evaluate\nmodel: {adapter}\n")
    assert main(["export", str(recipe)]) == 2
    assert "expected `kind: export`" in capsys.readouterr().err


def test_a_pipeline_exports(adapter, tmp_path):
    (tmp_path / "pipeline.yaml").write_text(
        "stages:\n"
        f"  - {{name: merged, kind: export, with: {{model: {adapter}}}}}\n"
        "  - name: eval\n    kind: evaluate\n    of: merged\n"
        "    with: {task: builtin:chain, task_params: {size: 2}, samples: 1, max_new_tokens: 4}\n"
    )
    assert main(["pipeline", str(tmp_path / "pipeline.yaml"), "--output_dir", str(tmp_path / "out")]) == 0
    rows = json.loads((tmp_path / "out" / "report.json").read_text())["stages"]
    assert [(row["name"], row["kind"]) for row in rows] == [("merged", "export")]
    assert rows[0]["accuracy"] is not None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--bse", "original"], "bse: not a key of `export`. Did you mean `base`?"),
        (
            ["--base", "dequantised"],
            "base: 'dequantised' is not one of: original, dequantized. Did you mean `dequantized`?",
        ),
        (["--base", "dequantized"], "`dequantized` is for an adapter that was trained on a 4-bit base"),
        (["--bnb_4bit_quant_type", "fp4"], "bnb_4bit_quant_type: is for `load_in_4bit: true`"),
        (["--gguf_file", "m.gguf", "--adapter", "a"], "adapter: not together with `gguf_file`"),
        (["--tolerance", "0"], "tolerance: expected a number above 0"),
        (["--adapter", "other"], "is itself an adapter"),
    ],
)
def test_errors_name_the_key(adapter, tmp_path, capsys, words, message):
    assert export(adapter, tmp_path / "out", *words) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_help_shows_the_keys_and_an_example(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["export", "--help"])
    shown = capsys.readouterr().out
    assert stopped.value.code == 0
    assert "--base VALUE" in shown and "--no_check" in shown
    assert "trl-reasoning export --model outputs/rl/dr_grpo_smollm2 --output_dir outputs/merged" in shown
    assert "convert_hf_to_gguf.py" in shown and "--gguf_file" in shown
