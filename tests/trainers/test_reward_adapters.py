"""Reward models as LoRA adapters: the head is trained and saved, and the folder gives the same scores everywhere."""

import pytest
import torch
from peft import LoraConfig
from reward_tools import chain_pairs, lora, make_trainer
from safetensors.torch import load_file, save_file
from transformers import BitsAndBytesConfig

from trl_reasoning.errors import UserError
from trl_reasoning.generation.reward_model import load_reward_model


TRAINING = {"max_steps": 2, "learning_rate": 1e-2, "per_device_train_batch_size": 4}


def scores(model, rows: list[list[int]], pad: int, side: str) -> list[float]:
    """Scores of one padded batch."""
    width = max(map(len, rows))
    padded, masks = [], []
    for row in rows:
        fill, ones = [pad] * (width - len(row)), [1] * len(row)
        padded.append(row + fill if side == "right" else fill + row)
        masks.append(ones + [0] * len(fill) if side == "right" else [0] * len(fill) + ones)
    with torch.no_grad():
        return model(torch.tensor(padded), attention_mask=torch.tensor(masks)).logits[:, 0].tolist()


@pytest.mark.parametrize("peft", [False, True], ids=["full", "lora"])
def test_a_saved_folder_gives_the_same_scores_with_padding_on_either_side(tiny, common, tmp_path, peft):
    trainer = make_trainer(tiny, common, chain_pairs(), **TRAINING, peft_config=lora() if peft else None)
    trainer.train()
    trainer.save_model(str(tmp_path / "model"))
    assert (tmp_path / "model" / "config.json").exists() is not peft
    loaded, tokenizer = load_reward_model(str(tmp_path / "model"), dtype="float32", device="cpu")
    assert isinstance(loaded.score, torch.nn.Linear) and loaded.score.bias is None
    rows = [*trainer.train_dataset["chosen_ids"], *trainer.train_dataset["rejected_ids"]]
    assert len({len(row) for row in rows}) > 2
    pad = tokenizer.pad_token_id
    own = [scores(trainer.model.eval(), [row], pad, "right")[0] for row in rows]
    assert max(own) - min(own) > 0.1
    for side in ("left", "right"):
        assert scores(loaded, rows, pad, side) == pytest.approx(own, abs=2e-4)
        assert scores(trainer.model, rows, pad, side) == pytest.approx(own, abs=2e-4)


def test_the_head_is_trained_and_lies_in_the_adapters_file(tiny, common, tmp_path):
    trainer = make_trainer(tiny, common, chain_pairs(), **TRAINING, peft_config=lora())
    head = trainer.model.base_model.model.score.modules_to_save["default"].weight
    before = head.detach().clone()
    trainer.train()
    assert not head.equal(before)
    trainer.save_model(str(tmp_path))
    saved = load_file(tmp_path / "adapter_model.safetensors")
    assert saved["base_model.model.score.weight"].equal(head)
    assert not any("embed_tokens" in name for name in saved)


def test_an_adapter_that_lacks_the_head_is_refused(tiny, common, tmp_path):
    with pytest.raises(UserError, match="^lora_task_type: an adapter for CAUSAL_LM does not train the score head"):
        make_trainer(tiny, common, chain_pairs(), peft_config=lora(task_type="CAUSAL_LM"))
    config = LoraConfig(r=2, modules_to_save=["score"], target_modules=["q_proj"])
    make_trainer(tiny, common, chain_pairs(), peft_config=config).save_model(str(tmp_path))
    file = tmp_path / "adapter_model.safetensors"
    save_file({name: weight for name, weight in load_file(file).items() if "score" not in name}, file)
    with pytest.raises(UserError, match=r"its files hold no weights for score\.weight"):
        load_reward_model(str(tmp_path), device="cpu")


def test_checkpointed_activations_leave_the_adapter_a_gradient(tiny, common):
    gradients = []
    for is_checkpointed in (False, True):
        settings = {**common, "activation_checkpointing": is_checkpointed}
        trainer = make_trainer(tiny, settings, chain_pairs(4), peft_config=lora())
        batch = trainer.data_collator([trainer.train_dataset[row] for row in range(4)])
        trainer.compute_loss(trainer.model.train(), batch).backward()
        parameters = dict(trainer.model.named_parameters())
        gradients.append({name: p.grad for name, p in parameters.items() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    assert any("lora_B" in name and gradient.abs().sum() > 0 for name, gradient in gradients[1].items())
    for name, gradient in gradients[0].items():
        assert torch.allclose(gradients[1][name], gradient, atol=1e-5)


def test_four_bits(tiny, common, tmp_path):
    """Adapter and head in float32, both trained; the scores of the folder on the base in float32 are close."""
    pytest.importorskip("bitsandbytes", reason="bitsandbytes (extra `quantization`) is not installed")
    trainer = make_trainer(
        tiny,
        common,
        chain_pairs(),
        **TRAINING,
        peft_config=lora(),
        quantization_config=BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4"),
    )
    trained = {name: p for name, p in trainer.model.named_parameters() if p.requires_grad}
    assert all(parameter.dtype == torch.float32 for parameter in trained.values())
    before = {name: parameter.detach().clone() for name, parameter in trained.items()}
    trainer.train()
    heads = [name for name in trained if "score" in name]
    assert len(heads) == 1 and not trained[heads[0]].equal(before[heads[0]])
    assert all(not p.equal(before[name]) for name, p in trained.items() if "lora_B" in name)
    trainer.save_model(str(tmp_path))
    loaded, tokenizer = load_reward_model(str(tmp_path), dtype="float32", device="cpu")
    assert loaded.score.weight.equal(trained[heads[0]])
    rows = trainer.train_dataset["chosen_ids"]
    found = [scores(model, rows, tokenizer.pad_token_id, "right") for model in (trainer.model.eval(), loaded)]
    assert torch.corrcoef(torch.tensor(found))[0, 1] > 0.9
