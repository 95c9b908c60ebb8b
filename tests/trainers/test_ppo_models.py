"""PPO's other models: adapters on one base, 4-bit weights, and the pretraining mix."""

import pytest
import torch
from peft import get_peft_model
from ppo_tools import Gradients, adapter, logged, lora, ppo
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

from trl_reasoning.trainers._ptx import PretrainingMix, ptx_loss
from trl_reasoning.trainers._shared_base import AdapterSwitch


def base_bytes(model) -> int:
    return sum(p.numel() for key, p in model.named_parameters() if "lora_" not in key and "value_function" not in key)


def test_lora_trains_two_adapters_on_one_base(tmp_path, tiny):
    gradients = Gradients()
    trainer = ppo(tmp_path, fixed=False, peft=True, max_steps=3, num_iterations=2, vf_coef=1.0, callbacks=[gradients])
    model = trainer.model
    assert base_bytes(model) == sum(p.numel() for p in AutoModelForCausalLM.from_pretrained(tiny).parameters())
    assert set(model.peft_config) == {"default", "value"}
    frozen = {name: p.clone() for name, p in model.named_parameters() if not p.requires_grad}
    policy, value = ({key: p.clone() for key, p in adapter(model, name).items()} for name in ("default", "value"))
    assert policy.keys() == value.keys()
    assert all(policy[key].equal(value[key]) for key in policy)  # it starts where the policy does
    trainer.train()
    # A fresh adapter's reference is the base: nothing but the adapters and the head has changed.
    assert all(model.get_parameter(name).equal(p) for name, p in frozen.items())
    assert all(not p.requires_grad for name, p in model.named_parameters() if name in frozen)
    for name, before in (("default", policy), ("value", value)):
        after = adapter(model, name)
        assert all(not after[key].equal(before[key]) for key in before if "lora_B" in key), name
    after = adapter(model, "value")
    assert not any(p.equal(after[key]) for key, p in adapter(model, "default").items())
    assert len(gradients.steps[0]) == 2 * len(policy) + 2
    first, *later = logged(trainer, "objective/kl")
    assert first == pytest.approx(0.0, abs=1e-5) and later[-1] != 0.0


@pytest.mark.parametrize("whole", [None, ["norm"]], ids=["factors", "whole_module"])
def test_training_goes_on_from_an_adapter(tmp_path, tiny, whole):
    """The reference is a frozen copy of the adapter as it came, with the modules that it trains in full."""
    base = AutoModelForCausalLM.from_pretrained(tiny, dtype="float32")
    model = get_peft_model(base, lora(modules_to_save=whole))
    for key, parameter in model.named_parameters():
        if "lora_B" in key:
            torch.nn.init.normal_(parameter, std=0.05)
        elif "modules_to_save" in key:
            parameter.data.mul_(1.3)
    start = {key: p.clone() for key, p in adapter(model, "default").items()}
    trainer = ppo(tmp_path, fixed=False, model=model, max_steps=3, num_iterations=2)
    trainer.train()
    assert set(model.peft_config) == {"default", "ref", "value"}
    assert all(p.equal(start[key]) and not p.requires_grad for key, p in adapter(model, "ref").items())
    first, *later = logged(trainer, "objective/kl")
    assert first == pytest.approx(0.0, abs=1e-5) and later[-1] != 0.0
    trainer.save_model(str(tmp_path / "saved"))
    assert not (tmp_path / "saved" / "ref").exists() and not (tmp_path / "saved" / "value").exists()


def test_the_switch_leaves_what_is_trained_alone(tiny, tokenizer):
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(tiny, dtype="float32"), lora())
    model.add_adapter("value", lora())
    for key, parameter in model.named_parameters():
        parameter.requires_grad_("lora_" in key)
        if "lora_B.value" in key:
            torch.nn.init.normal_(parameter, std=0.1)
    ids = torch.tensor([tokenizer("1+2=?")["input_ids"]])
    trained = [p.requires_grad for p in model.parameters()]
    model.eval()
    switch = AdapterSwitch(model)
    before = model(ids).logits
    with switch.use("value"):
        with switch.use(None):
            base = model(ids).logits
        valued = model(ids).logits
    assert torch.allclose(base, before, atol=1e-6)  # a fresh adapter changes nothing
    assert not torch.allclose(valued, before, atol=1e-3)
    assert model(ids).logits.equal(before)
    with pytest.raises(RuntimeError), switch.use("value"):
        raise RuntimeError
    assert model(ids).logits.equal(before)
    assert [p.requires_grad for p in model.parameters()] == trained


def test_four_bit(tmp_path, tiny):
    pytest.importorskip("bitsandbytes", reason="bitsandbytes (extra `quantization`) is not installed")
    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32)
    base = AutoModelForCausalLM.from_pretrained(tiny, quantization_config=config, dtype="float32")
    model = get_peft_model(base, lora())
    start = {key: p.clone() for key, p in adapter(model, "default").items()}
    trainer = ppo(tmp_path, fixed=False, model=model, max_steps=3, num_iterations=2, vf_coef=1.0)
    trainer.train()
    for name in ("default", "value"):
        weights = adapter(model, name)
        assert all(p.dtype == torch.float32 and p.requires_grad for p in weights.values())
        assert all(not p.equal(start[key]) for key, p in weights.items() if "lora_B" in key), name
    first, *later = logged(trainer, "objective/kl")
    assert first == pytest.approx(0.0, abs=1e-5) and later[-1] != 0.0


def test_the_pretraining_loss_is_the_mean_over_the_replies(tiny, chain, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    mix = PretrainingMix(chain.select_columns(["prompt", "completion"]), tokenizer, 5, 64, seed=0)
    trainer = ppo(tmp_path)
    parts = [mix.batch(2, 0, 1, part) for part in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.0))]
    assert [len(part.input_ids) for part in parts] == [2, 2, 1]
    with torch.no_grad():
        total = sum(ptx_loss(trainer.model, part) for part in parts)
        two = [ptx_loss(trainer.model, mix.batch(2, rank, 2, (0.0, 1.0))) for rank in range(2)]
    model = AutoModelForCausalLM.from_pretrained(tiny, dtype="float32")
    summed, count = 0.0, 0
    for place in range(10, 15):
        row = chain[mix._row(place)]
        start = len(tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True)["input_ids"])
        ids = torch.tensor([tokenizer.apply_chat_template(row["prompt"] + row["completion"])["input_ids"]])
        with torch.no_grad():
            logps = model(ids).logits[:, :-1].log_softmax(-1).gather(2, ids[:, 1:].unsqueeze(2)).squeeze(2)
        summed, count = summed - logps[0, start - 1 :].sum().item(), count + ids.size(1) - start
    assert total.item() == pytest.approx(summed / count, rel=1e-4)
    # Gradients are averaged over the processes, so that the two parts' mean is the loss.
    assert sum(two).item() / 2 == pytest.approx(summed / count, rel=1e-4)


def test_the_mix_goes_through_all_rows_and_takes_other_columns(tiny, chain):
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    mix = PretrainingMix(chain.select_columns(["prompt", "completion"]), tokenizer, 4, 64, seed=0)
    epochs = [[mix._row(place) for place in range(start, start + 16)] for start in (0, 16)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(16)) and epochs[0] != epochs[1]

    def encoded(row, length=64):
        return PretrainingMix(type(chain).from_list([row]), tokenizer, 1, length, seed=0)._encode(0)

    ids, labels = encoded({"text": "1+2=3"})
    assert ids == tokenizer("1+2=3")["input_ids"] and labels == [-100, *ids[1:]]
    messages = chain[0]["prompt"] + chain[0]["completion"]
    assert encoded({"messages": messages}) == encoded(
        {"prompt": chain[0]["prompt"], "completion": chain[0]["completion"]}
    )
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}{% if short %}{% else %}+{% endif %}"
    mix = PretrainingMix(type(chain).from_list([{"messages": messages}]), tokenizer, 1, 64, 0, {"short": True})
    assert mix._encode(0)[0] == tokenizer("".join(message["content"] for message in messages))["input_ids"]
    ids, labels = encoded({"prompt": "1+2=", "completion": "3"})
    assert labels[-2:] == ids[-2:] == [*tokenizer("3")["input_ids"], tokenizer.eos_token_id]
    assert set(labels[:-2]) == {-100}
    assert encoded({"prompt": "1+2=", "completion": "3"}, length=2)[1] == [-100, -100]


def test_the_pretraining_mix_holds_the_pretraining_loss(tmp_path, chain):
    """A short run whose reward asks for something else: with the mix the loss on the text stays lower."""

    def shorter(completion_ids, **kwargs):
        return [-float(len(ids)) for ids in completion_ids]

    def final_loss(coefficient):
        ptx = chain.select_columns(["prompt", "completion"])
        more = {"ptx": ptx, "ptx_coef": coefficient} if coefficient else {}
        trainer = ppo(
            tmp_path,
            fixed=False,
            reward=shorter,
            max_steps=24,
            num_iterations=4,
            kl_coef=0.0,
            learning_rate=3e-4,
            **more,
        )
        trainer.train()
        mix = PretrainingMix(ptx, trainer.processing_class, 16, 64, seed=0)
        with torch.no_grad():
            return ptx_loss(trainer.model, mix.batch(0, 0, 1, (0.0, 1.0))).item(), trainer

    without, _ = final_loss(0.0)
    with_mix, trainer = final_loss(1.0)
    assert with_mix < without - 0.1
    assert len(logged(trainer, "ptx_loss")) == 24
