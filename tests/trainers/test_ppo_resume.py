"""PPO resumes exactly, inside a rollout too, and what it saves is the policy alone."""

import pytest
import torch
from ppo_tools import losses, ppo
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM


def make(folder, steps, chain, **settings):
    """Two minibatches and two epochs a rollout: a window of four steps."""
    return ppo(
        folder,
        fixed=False,
        max_steps=steps,
        save_strategy="steps",
        save_steps=1,
        per_device_train_batch_size=4,
        steps_per_generation=2,
        num_iterations=2,
        temperature=1.0,
        value_learning_rate=1e-2,
        ptx=chain.select_columns(["messages"] if "messages" in chain.column_names else ["prompt", "completion"]),
        ptx_coef=0.1,
        ptx_batch_size=5,
        **settings,
    )


@pytest.mark.parametrize(
    "settings",
    [{}, {"peft": True}, {"value_model": "shared", "kl_coef": 0.0}],
    ids=["full", "lora", "shared"],
)
def test_resumes_exactly_inside_a_rollout(tmp_path, chain, settings):
    straight = make(tmp_path / "straight", 7, chain, **settings)
    straight.train()
    make(tmp_path / "parts", 3, chain, **settings).train()
    resumed = make(tmp_path / "parts", 7, chain, **settings)
    resumed.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-3"))
    wanted = losses(straight)
    assert losses(resumed) == pytest.approx(wanted, abs=1e-5)
    assert len(set(wanted.values())) == 7
    ends = dict(straight.model.named_parameters())
    for name, parameter in resumed.model.named_parameters():
        assert torch.allclose(parameter, ends[name], atol=1e-5), name


def test_a_saved_model_is_the_policy_alone(tmp_path, chain):
    trainer = make(tmp_path, 2, chain)
    trainer.train()
    trainer.save_model(str(tmp_path / "saved"))
    for folder in (tmp_path / "saved", tmp_path / "checkpoint-2"):
        weights = load_file(folder / "model.safetensors")
        assert not [name for name in weights if "value" in name]
    assert not (tmp_path / "saved" / "value_model.pt").exists()
    value = torch.load(tmp_path / "checkpoint-2" / "value_model.pt", weights_only=True)
    assert value["value_function.head.bias"].item() == trainer.value_function.head.bias.item() != 0
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "saved", dtype="float32")
    assert all(p.equal(trainer.model.get_parameter(name)) for name, p in loaded.named_parameters())


def test_a_saved_adapter_is_the_policys_alone(tmp_path, chain):
    trainer = make(tmp_path, 2, chain, peft=True)
    trainer.train()
    trainer.save_model(str(tmp_path / "saved"))
    for folder in (tmp_path / "saved", tmp_path / "checkpoint-2"):
        assert not (folder / "value").exists()
        weights = load_file(folder / "adapter_model.safetensors")
        assert weights and all("lora_" in name for name in weights)
    assert "value_function.head.weight" in torch.load(tmp_path / "checkpoint-2" / "value_model.pt", weights_only=True)


def test_a_checkpoint_without_a_fitting_value_function_is_refused(tmp_path, chain):
    make(tmp_path, 1, chain).train()
    checkpoint = tmp_path / "checkpoint-1"
    with pytest.raises(ValueError, match="another kind of value function"):
        make(tmp_path, 2, chain, value_model="shared").train(resume_from_checkpoint=str(checkpoint))
    (checkpoint / "value_model.pt").unlink()
    with pytest.raises(FileNotFoundError, match=r"value_model\.pt"):
        make(tmp_path, 2, chain).train(resume_from_checkpoint=str(checkpoint))
