"""PPO and reward models: as TRL takes them, as a recipe's scorer, and as an adapter on the policy's base."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from ppo_tools import adapter, logged, lora, ppo
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification
from trl import apply_chat_template

from trl_reasoning.generation.scorers import RewardModelScorer


@pytest.fixture
def reward_model(tiny, tokenizer):
    torch.manual_seed(1)
    model = AutoModelForSequenceClassification.from_pretrained(tiny, num_labels=1, dtype="float32")
    torch.nn.init.normal_(model.score.weight, std=0.2)
    model.config.pad_token_id = tokenizer.pad_token_id
    return model


def test_the_value_starts_from_a_reward_model(tmp_path, reward_model):
    """At the last token of a text that the reward model scores, the value is the score."""
    trainer = ppo(tmp_path, reward=[reward_model], max_steps=2)
    assert isinstance(trainer.value_function.trunk, type(reward_model.model))
    ids = torch.tensor([[5, 6, 7, 8]])
    ones = torch.ones_like(ids)
    with torch.no_grad():
        score = reward_model(ids, attention_mask=ones).logits.item()
        batch = {"prompt_ids": ids, "prompt_mask": ones, "completion_ids": ids[:, :1], "completion_mask": ones[:, :1]}
        assert trainer.value_function(batch).item() == pytest.approx(score, abs=1e-5)
    kept = [p.clone() for p in reward_model.parameters()]
    trainer.train()
    assert all(p.equal(k) for p, k in zip(reward_model.parameters(), kept, strict=True))
    assert not trainer.value_function.trunk.norm.weight.equal(reward_model.model.norm.weight)


def test_a_reward_model_that_the_value_cannot_start_from(tmp_path, tiny):
    two = AutoModelForSequenceClassification.from_pretrained(tiny, num_labels=2, dtype="float32")
    with pytest.raises(ValueError, match="^value_model: .*one label"):
        ppo(tmp_path, reward=[two])
    ppo(tmp_path, reward=[two], value_model="policy")
    with pytest.raises(ValueError, match="^value_model: .*`reward_adapter`"):
        ppo(tmp_path, reward=[two], peft=True, value_model="reward")


@pytest.fixture
def reward_adapter(tmp_path, reward_model):
    config = LoraConfig(r=2, target_modules=["q_proj", "v_proj"], lora_dropout=0.1, task_type="SEQ_CLS")
    model = get_peft_model(reward_model, config)
    for key, parameter in model.named_parameters():
        if "lora_B" in key:
            torch.nn.init.normal_(parameter, std=0.1)
    model.save_pretrained(tmp_path / "reward_adapter")
    return model.eval()


def test_a_reward_adapter_scores_as_the_reward_model_does(tmp_path, reward_adapter, tokenizer, chain):
    folder = str(tmp_path / "reward_adapter")
    trainer = ppo(tmp_path, peft=True, reward_adapter=folder, fixed=False, max_steps=2, vf_coef=1.0)
    model = trainer.model
    assert set(model.peft_config) == {"default", "value", "reward"}
    scorer = trainer.reward_funcs[-1]
    prompts, completions = chain["prompt"][:5], chain["completion"][:5]
    found = scorer(prompts, completions)
    for prompt, completion, score in zip(prompts, completions, found, strict=True):
        text = apply_chat_template({"messages": prompt + completion}, tokenizer)["text"]
        ids = tokenizer(text, return_tensors="pt", add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            assert score == pytest.approx(reward_adapter(ids).logits.item(), abs=1e-5)
    # The value starts from it: same adapter, same head.
    reward = {key: p.clone() for key, p in adapter(model, "reward").items()}
    assert all(p.equal(reward[key]) for key, p in adapter(model, "value").items())
    assert trainer.value_function.head.weight.equal(scorer.head.weight)
    trainer.train()
    assert all(p.equal(reward[key]) and not p.requires_grad for key, p in adapter(model, "reward").items())
    assert not trainer.value_function.head.weight.equal(scorer.head.weight)
    assert len(logged(trainer, "rewards/reward_adapter/mean")) == 2
    trainer.save_model(str(tmp_path / "saved"))
    assert not (tmp_path / "saved" / "reward").exists()


def test_an_adapter_without_a_head_is_no_reward_model(tmp_path, tiny):
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(tiny, dtype="float32"), lora())
    model.save_pretrained(tmp_path / "no_head")
    with pytest.raises(ValueError, match="^reward_adapter: .*no head"):
        ppo(tmp_path, peft=True, reward_adapter=str(tmp_path / "no_head"))


def test_the_value_starts_from_the_model_of_a_scorer(tmp_path, reward_model, tokenizer):
    reward_model.save_pretrained(tmp_path / "reward")
    tokenizer.save_pretrained(tmp_path / "reward")
    scorer = RewardModelScorer(str(tmp_path / "reward"), dtype="float32")
    trainer = ppo(tmp_path, reward=[scorer])
    assert trainer.value_function.head.weight.equal(reward_model.score.weight)
    assert trainer.value_function.trunk is not scorer.model.model
    assert all(p.requires_grad for p in trainer.value_function.parameters())
    trainer.train()
    assert ppo(tmp_path, reward=[scorer], value_model="policy").value_function.head.weight.abs().sum() == 0
