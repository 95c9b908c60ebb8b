"""DPO is TRL's, number for number; its reference is held only where it has to be."""

import pytest
import torch
from peft import PeftModel
from preference_tools import OWN_METRICS, log_of, lora, make_trainer, pairs, weights_of
from transformers import AutoModelForCausalLM
from trl import DPOConfig, DPOTrainer

from trl_reasoning.errors import UserError
from trl_reasoning.trainers import ReasoningDPOConfig


@pytest.fixture
def another(tiny, tokenizer, tmp_path) -> str:
    """A folder with a model that is not the policy."""
    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.02 * torch.randn_like(weight)
    model.save_pretrained(tmp_path / "another")
    tokenizer.save_pretrained(tmp_path / "another")
    return str(tmp_path / "another")


def trl_trainer(model, common, peft=False, ref_model=None, **settings):
    defaults = {"max_steps": 2, "per_device_train_batch_size": 4, "learning_rate": 1e-3}
    config = DPOConfig(**{**common, **defaults, "lr_scheduler_type": "constant", **settings})
    return DPOTrainer(
        model=model,
        ref_model=ref_model,
        args=config,
        train_dataset=pairs(),
        peft_config=lora() if peft else None,
    )


def assert_same(ours, theirs):
    """Logs and weights after training; the log has TRL's names and ours."""
    for trainer in (ours, theirs):
        trainer.train()
    for own, row in zip(log_of(ours), log_of(theirs), strict=True):
        assert set(own) == set(row) | OWN_METRICS
        assert {key: own[key] for key in row} == pytest.approx(row, rel=1e-4, abs=1e-5)
    for name, weight in weights_of(theirs).items():
        torch.testing.assert_close(weights_of(ours)[name], weight, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("peft", [False, True])
def test_losses_gradients_and_metrics_are_trls(tiny, common, peft):
    assert_same(make_trainer("dpo", tiny, common, peft=peft), trl_trainer(tiny, common, peft=peft))


def test_several_losses_are_trls(tiny, common):
    losses = {"loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, 0.5]}
    assert_same(make_trainer("dpo", tiny, common, **losses), trl_trainer(tiny, common, **losses))


@pytest.mark.parametrize("peft", [False, True])
def test_another_reference_is_loaded_used_and_let_go(tiny, common, another, peft):
    ours = make_trainer("dpo", tiny, common, peft=peft, ref_model_name_or_path=another)
    assert ours.args.precompute_ref_log_probs
    assert ours.ref_model is None
    with pytest.raises(UserError, match="reference is no longer in memory"):
        ours.evaluate(eval_dataset=pairs(4))
    reference = AutoModelForCausalLM.from_pretrained(another, dtype=torch.float32)
    assert_same(ours, trl_trainer(tiny, common, peft=peft, ref_model=reference))
    assert log_of(ours)[0]["rewards/chosen"] != 0.0


def test_another_reference_stays_where_it_is_wanted(tiny, common, another):
    trainer = make_trainer("dpo", tiny, common, ref_model_name_or_path=another, precompute_ref_log_probs=False)
    assert trainer.ref_model is not None
    reference = AutoModelForCausalLM.from_pretrained(another, dtype=torch.float32)
    assert_same(trainer, trl_trainer(tiny, common, ref_model=reference))
    assert trainer.evaluate(eval_dataset=pairs(4))["eval_rewards/chosen"] != 0.0


def test_log_probs_are_precomputed_where_that_saves_a_model(tiny, common):
    def computes(**settings) -> bool:
        return make_trainer("dpo", tiny, common, **settings).args.precompute_ref_log_probs

    assert computes() is True
    assert computes(peft=True) is False
    assert computes(sync_ref_model=True) is False
    assert computes(data=pairs().to_iterable_dataset()) is False
    assert computes(precompute_ref_log_probs=False) is False


def test_an_adapter_is_no_reference(tiny, common, tmp_path):
    base = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
    PeftModel(base, lora()).save_pretrained(tmp_path / "adapter")
    with pytest.raises(UserError, match="ref_model_name_or_path: .* holds an adapter alone"):
        make_trainer("dpo", tiny, common, ref_model_name_or_path=str(tmp_path / "adapter"))


def test_two_references_are_refused(tiny, common, another):
    with pytest.raises(UserError, match="ref_model_name_or_path: a `ref_model` was passed as well"):
        model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
        make_trainer("dpo", tiny, common, ref_model_name_or_path=another, trainer={"ref_model": model})


def test_defaults_are_the_papers():
    config = ReasoningDPOConfig(output_dir="out", bf16=False)
    assert (config.loss_type, config.beta, config.learning_rate) == (["sigmoid"], 0.1, 1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss_type": ["sigmiod"]}, r"loss_type: .* got 'sigmiod'\. Did you mean `sigmoid`"),
        ({"loss_type": "sigmoid_norm"}, "loss_type: .* use `method: ln_dpo`"),
        ({"beta": 0.0}, "beta: expected more than 0"),
        ({"collapse_alarm": "halt"}, r"collapse_alarm: expected one of \['off', 'warn', 'stop'\]"),
        ({"collapse_floor": 5.0}, r"collapse_floor: .* did you mean -5\.0"),
        ({"precompute_ref_log_probs": True, "sync_ref_model": True}, "precompute_ref_log_probs: .* set it to false"),
    ],
)
def test_bad_values_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ReasoningDPOConfig(output_dir="out", bf16=False, **settings)
