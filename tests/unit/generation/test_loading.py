"""Models, adapters and the hashes of their weights."""

import json
import shutil

import pytest
import torch
from peft import LoraConfig, get_peft_model

from trl_reasoning.errors import UserError
from trl_reasoning.generation import SamplingParams, load_backend, parameters_hash, render_prompt, weights_hash


GREEDY = SamplingParams(max_new_tokens=8, temperature=0)


@pytest.fixture
def folders(model, tokenizer, tmp_path):
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    model.save_pretrained(base)
    tokenizer.save_pretrained(base)
    torch.manual_seed(0)
    peft_model = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False))
    peft_model.peft_config["default"].base_model_name_or_path = str(base)
    peft_model.save_pretrained(adapter)
    return base, adapter


def test_a_folder_with_an_adapter_alone_loads_its_base(folders, tokenizer):
    base, adapter = (str(folder) for folder in folders)
    prompt = [render_prompt(tokenizer, [{"role": "user", "content": "1+2=?"}])]
    alone = load_backend(adapter).generate(prompt, GREEDY)
    assert alone == load_backend(base, adapter).generate(prompt, GREEDY)
    assert alone != load_backend(base).generate(prompt, GREEDY)


def test_auto_is_float32_on_the_cpu(folders):
    backend = load_backend(str(folders[0]), device="cpu")
    assert backend.model.dtype == torch.float32
    assert backend.tokenizer.chat_template is not None


def test_an_adapter_on_an_adapter_is_refused(folders):
    with pytest.raises(UserError, match="is itself an adapter"):
        load_backend(str(folders[1]), str(folders[1]))


def test_an_unknown_dtype_names_the_choices(folders):
    with pytest.raises(UserError, match="bfloat16"):
        load_backend(str(folders[0]), dtype="bf16")


def test_the_hash_follows_the_weights_and_not_the_path(folders, tmp_path):
    base, adapter = folders
    copy = shutil.copytree(base, tmp_path / "copy")
    assert weights_hash(str(copy)) == weights_hash(str(base))
    assert weights_hash(str(base), str(adapter)) != weights_hash(str(base))
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 1e-3}))
    assert weights_hash(str(copy)) != weights_hash(str(base))


def test_the_hash_of_a_live_model_follows_its_training(model):
    before = parameters_hash(model)
    assert parameters_hash(model) == before
    with torch.no_grad():
        model.lm_head.weight[0, 0] += 1
    assert parameters_hash(model) != before
