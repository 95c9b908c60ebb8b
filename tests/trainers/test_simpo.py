"""SimPO against an implementation from the model's logits, and without a reference anywhere."""

import pytest
import torch
from peft import PeftModel
from preference_tools import OWN_METRICS, log_of, lora, make_trainer, pairs, weights_of
from transformers import AutoModelForCausalLM
from trl import DPOConfig, DPOTrainer

from trl_reasoning.errors import UserError
from trl_reasoning.trainers import SimPOConfig


def by_hand(model, batch, margin, beta=2.0, sft_weight=0.0):
    """Loss and rewards of one batch, from whole logits."""
    ids, mask = batch["input_ids"], batch["completion_mask"][:, 1:].bool()
    logits = model(input_ids=ids, attention_mask=batch["attention_mask"]).logits[:, :-1]
    logps = logits.float().log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
    means = torch.stack([row[kept].mean() for row, kept in zip(logps, mask, strict=True)])
    chosen, rejected = means.chunk(2)
    losses = -(beta * (chosen - rejected) - margin).sigmoid().log() - sft_weight * chosen
    return losses.mean(), beta * chosen, beta * rejected


@pytest.mark.parametrize(
    ("settings", "margin", "sft_weight"),
    [({}, 1.0, 0.0), ({"gamma": 0.3}, 0.3, 0.0), ({"gamma_beta_ratio": 0.8, "sft_weight": 0.5}, 1.6, 0.5)],
)
def test_losses_gradients_and_rewards(tiny, common, settings, margin, sft_weight):
    trainer = make_trainer("simpo", tiny, common, **settings)
    batch = trainer.data_collator([trainer.train_dataset[index] for index in range(4)])
    trainer.model.train()
    loss = trainer._compute_loss(trainer.model, batch, False)
    loss.backward()
    metrics = {name: values[0] for name, values in trainer._metrics["train"].items()}

    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
    expected, chosen, rejected = by_hand(model, batch, margin, sft_weight=sft_weight)
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), abs=1e-5)
    for name, weight in model.named_parameters():
        torch.testing.assert_close(trainer.model.get_parameter(name).grad, weight.grad, rtol=1e-3, atol=1e-5)
    assert metrics["rewards/chosen"] == pytest.approx(chosen.mean().item(), abs=1e-5)
    assert metrics["rewards/rejected"] == pytest.approx(rejected.mean().item(), abs=1e-5)
    assert metrics["rewards/margins"] == pytest.approx((chosen - rejected).mean().item(), abs=1e-5)
    assert metrics["rewards/accuracies"] == (chosen > rejected).float().mean().item()
    assert metrics["logps/chosen_per_token"] == pytest.approx(chosen.mean().item() / 2.0, abs=1e-5)
    lengths = batch["completion_mask"].sum(dim=1).float()
    assert metrics["lengths/difference"] == (lengths[:4] - lengths[4:]).mean().item()
    assert metrics["lengths/chosen_longer"] == (lengths[:4] > lengths[4:]).float().mean().item()


def test_smoothed_labels_and_the_hinge_reach_the_loss(tiny, common):
    losses = []
    for settings in ({}, {"label_smoothing": 0.25}, {"loss_type": ["hinge"]}):
        trainer = make_trainer("simpo", tiny, common, per_device_train_batch_size=1, max_steps=1, **settings)
        trainer.train()
        losses.append(log_of(trainer)[0]["loss"])
        z = log_of(trainer)[0]["rewards/margins"] - 1.0
    assert losses[1] == pytest.approx(losses[0] + 0.25 * z, abs=1e-5)
    assert losses[2] == pytest.approx(max(0.0, 1.0 - z), abs=1e-5)


def test_the_log_has_trls_names(tiny, common):
    ours = make_trainer("simpo", tiny, common, max_steps=1)
    config = DPOConfig(**common, max_steps=1, per_device_train_batch_size=4, beta=2.0, learning_rate=1e-3)
    theirs = DPOTrainer(model=tiny, args=config, train_dataset=pairs())
    for trainer in (ours, theirs):
        trainer.train()
    own, row = log_of(ours)[0], log_of(theirs)[0]
    assert set(own) == set(row) | OWN_METRICS
    same = ("entropy", "num_tokens", "logits/chosen", "logits/rejected", "mean_token_accuracy", "logps/chosen")
    assert [own[key] for key in same] == pytest.approx([row[key] for key in same], rel=1e-4)


@pytest.mark.parametrize("kind", ["full", "lora", "saved adapter"])
def test_no_reference_is_loaded_copied_hashed_or_run(tiny, common, monkeypatch, kind):
    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
    parameters = sum(weight.numel() for weight in model.parameters())
    if kind == "saved adapter":
        model = PeftModel(model, lora())

    def refuse(*args, **kwargs):
        raise AssertionError("a reference")

    for name in ("create_model_from_path", "hash_module"):
        monkeypatch.setattr(f"trl.trainer.dpo_trainer.{name}", refuse)
    monkeypatch.setattr(DPOTrainer, "compute_ref_log_probs", refuse)
    trainer = make_trainer("simpo", model, common, peft=kind == "lora")
    passes = []
    trainer.model.register_forward_hook(lambda *args: passes.append(1))
    trainer.train()
    assert len(passes) == 2
    adapter = sum(weight.numel() for weight in weights_of(trainer).values()) if kind != "full" else 0
    assert sum(weight.numel() for weight in trainer.model.parameters()) == parameters + adapter
    assert trainer.ref_model is None
    # A data set that comes later needs no reference, either.
    assert trainer.evaluate(eval_dataset=pairs(4))["eval_rewards/margins"] != 0.0
    assert "ref_chosen_logps" not in trainer.train_dataset.column_names


def test_a_reference_is_refused(tiny, common):
    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
    with pytest.raises(UserError, match="ref_model: this method has no reference"):
        make_trainer("simpo", tiny, common, trainer={"ref_model": model})


@pytest.mark.parametrize(
    ("settings", "margin"), [({}, 1.0), ({"gamma": 0.25}, 0.25), ({"beta": 2.5, "gamma_beta_ratio": 0.55}, 1.375)]
)
def test_the_margin(settings, margin):
    assert SimPOConfig(output_dir="out", bf16=False, **settings).margin == pytest.approx(margin)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"beta": 2.5, "gamma": 1.0, "gamma_beta_ratio": 0.55},
            r"gamma: .* both were given; .* ratio gives 1\.375\) .* would be 0\.4\)",
        ),
        ({"gamma": -1.0}, "gamma: expected 0 or more"),
        ({"sft_weight": -1.0}, "sft_weight: expected 0 or more"),
        ({"loss_type": ["ipo"]}, r"loss_type: simpo has one of \['sigmoid', 'hinge'\]"),
        ({"loss_type": ["sigmoid", "sft"]}, "loss_type: simpo has one of"),
        ({"label_smoothing": 0.5}, "label_smoothing: expected a share"),
        ({"label_smoothing": 0.1, "loss_type": ["hinge"]}, "label_smoothing: the hinge loss has none"),
        ({"precompute_ref_log_probs": True}, "precompute_ref_log_probs: simpo needs False"),
        ({"sync_ref_model": True}, "sync_ref_model: simpo needs False"),
        ({"ld_alpha": 0.5}, "ld_alpha: simpo needs None"),
    ],
)
def test_bad_values_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        SimPOConfig(output_dir="out", bf16=False, **settings)
