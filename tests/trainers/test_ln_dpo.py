"""Length-normalised DPO is TRL's `sigmoid_norm`, with the rewards that its loss sees in the log."""

import pytest
import torch
from preference_tools import OWN_METRICS, log_of, lora, make_trainer, pairs, weights_of
from torch.nn.functional import logsigmoid
from trl import DPOConfig, DPOTrainer

from trl_reasoning.losses import ln_dpo_loss
from trl_reasoning.trainers import LNDPOConfig


REWARDS = {"rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies"}


@pytest.mark.parametrize("peft", [False, True])
def test_losses_gradients_and_metrics_are_trls_but_for_the_rewards(tiny, common, peft):
    ours = make_trainer("ln_dpo", tiny, common, peft=peft)
    config = DPOConfig(
        **common,
        loss_type=["sigmoid_norm"],
        beta=5.0,
        max_steps=2,
        per_device_train_batch_size=4,
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        max_length=2048,
    )
    theirs = DPOTrainer(model=tiny, args=config, train_dataset=pairs(), peft_config=lora() if peft else None)
    for trainer in (ours, theirs):
        trainer.train()
    for own, row in zip(log_of(ours), log_of(theirs), strict=True):
        assert set(own) == set(row) | OWN_METRICS
        kept = row.keys() - REWARDS
        assert {key: own[key] for key in kept} == pytest.approx({key: row[key] for key in kept}, rel=1e-4, abs=1e-5)
    assert log_of(ours)[1]["rewards/chosen"] != pytest.approx(log_of(theirs)[1]["rewards/chosen"], rel=0.1)
    for name, weight in weights_of(theirs).items():
        torch.testing.assert_close(weights_of(ours)[name], weight, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("peft", [False, True])
def test_of_one_pair_the_loss_is_that_of_the_logged_margin(tiny, common, peft):
    trainer = make_trainer("ln_dpo", tiny, common, peft=peft, per_device_train_batch_size=1, max_steps=6)
    trainer.train()
    for row in log_of(trainer):
        margin = torch.tensor(row["rewards/margins"])
        assert row["loss"] == pytest.approx(-logsigmoid(margin).item(), abs=1e-6)
        assert row["rewards/margins"] == pytest.approx(row["rewards/chosen"] - row["rewards/rejected"], abs=1e-6)
        assert row["rewards/accuracies"] == float(margin > 0)
    assert any(row["lengths/difference"] > 0 for row in log_of(trainer))


def test_trls_lengths_are_ours_where_the_prompt_has_a_token(tiny, common):
    """TRL counts the mask as it is, we the tokens that have a log-prob, from the second position on."""
    trainer = make_trainer("ln_dpo", tiny, common, precompute_ref_log_probs=False)
    batch = trainer.data_collator([trainer.train_dataset[index] for index in range(4)])
    assert (batch["completion_mask"][:, 0] == 0).all()
    seen = []
    trainer.pair_rewards = lambda pairs: seen.append(pairs)
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in trainer.model.parameters():
            weight += 0.02 * torch.randn_like(weight)  # away from the reference
    loss = trainer._compute_loss(trainer.model, batch, False)
    found = seen[0]
    own = ln_dpo_loss(
        found.chosen_logps,
        found.rejected_logps,
        found.ref_chosen_logps,
        found.ref_rejected_logps,
        found.chosen_lengths,
        found.rejected_lengths,
        beta=5.0,
    )
    assert own.std() > 0.1
    assert own.mean().item() == pytest.approx(loss.item(), abs=1e-6)


def test_defaults_are_the_papers():
    config = LNDPOConfig(output_dir="out", bf16=False)
    assert (config.loss_type, config.beta, config.learning_rate) == (["sigmoid_norm"], 5.0, 5e-7)
    assert (config.warmup_steps, config.max_length, config.num_train_epochs) == (0.1, 2048, 1.0)
    assert config.lr_scheduler_type == "linear"


@pytest.mark.parametrize(
    "settings",
    [
        {"loss_type": ["sigmoid"]},
        {"loss_weights": [1.0]},
        {"ld_alpha": 0.5},
        {"f_divergence_type": "forward_kl"},
        {"use_weighting": True},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_what_makes_the_method_is_fixed(settings):
    with pytest.raises(ValueError, match=rf"{next(iter(settings))}: ln_dpo needs .* or use `method: dpo`"):
        LNDPOConfig(output_dir="out", bf16=False, **settings)
