"""Reward models on rankings: a prompt is one element of the batch, whatever its number of replies."""

import logging

import pytest
import torch
from datasets import Dataset
from reward_tools import logged, lora, make_trainer, rankings

from trl_reasoning.errors import UserError
from trl_reasoning.losses.reward import bradley_terry_loss


def test_a_prompts_pairs_are_one_element_and_each_reply_is_passed_once(tiny, common):
    """Prompts with 4, 2 and 3 replies: the mean over prompts of the mean over 6, 1 and 3 pairs; 9 rows are passed."""
    trainer = make_trainer(tiny, common, rankings([4, 2, 3]))
    batch = trainer.data_collator([trainer.train_dataset[row] for row in range(3)])
    assert batch["sizes"].tolist() == [4, 2, 3] and len(batch["input_ids"]) == 9
    passed = []
    trainer.model.model.register_forward_hook(lambda module, args, output: passed.append(len(output[0])))
    with torch.no_grad():
        loss = trainer.compute_loss(trainer.model.eval(), dict(batch)).item()
        assert passed == [9]
        scores = trainer.model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits.squeeze(-1)
    means, right = [], []
    for own in scores.split([4, 2, 3]):
        pairs = [(better, worse) for better in range(len(own)) for worse in range(better)]
        losses = [bradley_terry_loss(own[[better]], own[[worse]]).item() for better, worse in pairs]
        means.append(sum(losses) / len(pairs))
        right.append(sum(bool(own[better] > own[worse]) for better, worse in pairs) / len(pairs))
    assert [len(own) for own in scores.split([4, 2, 3])] == [4, 2, 3]
    assert loss == pytest.approx(sum(means) / 3, abs=1e-6)
    metrics = trainer._metrics["eval"]
    assert metrics["accuracy"] == pytest.approx([sum(right) / 3])
    assert metrics["mean_reward"] == pytest.approx([scores.mean().item()], abs=1e-5)
    assert metrics["max_reward"] == pytest.approx([scores.max().item()], abs=1e-5)


def test_a_pair_is_a_ranking_of_two(tiny, common):
    pairs = Dataset.from_list([{"prompt": "1+1=?", "chosen": "2", "rejected": "33"}] * 2)
    ranks = Dataset.from_list([{"prompt": "1+1=?", "replies": ["33", "2"], "scores": [0.5, 7.0]}] * 2)
    found = []
    for rows in (pairs, ranks):
        trainer = make_trainer(tiny, common, rows, max_steps=2, learning_rate=1e-3)
        trainer.train()
        found.append(logged(trainer, "loss", "grad_norm", "accuracy", "margin"))
    assert found[0] == [pytest.approx(row, rel=1e-4, abs=1e-6) for row in found[1]]


@pytest.mark.parametrize("peft", [False, True])
def test_accumulation_does_not_change_a_step(tiny, common, peft):
    """1 x 4 = 2 x 2 = 4 x 1 prompts with different numbers of replies; the epoch's second step has 3 of the 7."""
    found = []
    for size in (4, 2, 1):
        trainer = make_trainer(
            tiny,
            common,
            rankings([2, 5, 3, 4, 2, 6, 3]),
            per_device_train_batch_size=size,
            gradient_accumulation_steps=4 // size,
            num_train_epochs=1,
            optim="sgd",
            lr_scheduler_type="constant",
            learning_rate=0.1,
            peft_config=lora() if peft else None,
        )
        trainer.train()
        weights = torch.cat([p.detach().flatten() for p in trainer.model.parameters() if p.requires_grad])
        found.append((logged(trainer, "loss", "grad_norm"), weights))
    assert len(found[0][0]) == 2
    for numbers, weights in found[1:]:
        assert numbers == [pytest.approx(row, rel=1e-4) for row in found[0][0]]
        assert torch.allclose(weights, found[0][1], atol=1e-5)


def test_ties_and_long_replies_are_left_out_with_a_count(tiny, common, caplog):
    rows = [
        {"prompt": "1+1=?", "replies": ["2", "3", "4"], "scores": [1.0, 0.0, 0.0]},
        {"prompt": "1+2=?", "replies": ["2", "3"], "scores": [1.0, 1.0]},
        {"prompt": "1+3=?", "replies": ["2", "3", "4" * 50], "scores": [1.0, 2.0, 3.0]},
        {"prompt": "1+4=?", "replies": ["2", "3" * 50], "scores": [1.0, 2.0]},
    ]
    with caplog.at_level(logging.WARNING):
        trainer = make_trainer(tiny, common, Dataset.from_list(rows), max_length=30)
    assert trainer.train_dataset["scores"] == [[1.0, 0.0, 0.0], [1.0, 2.0]]
    assert "2 replies of the train rows do not fit" in caplog.text
    assert "2 of 4 train rows are left out: no two of their replies differ in rank" in caplog.text
    trainer.args.max_steps = 1
    with pytest.raises(UserError, match="^max_length: with 4 tokens no train row has two replies"):
        make_trainer(tiny, common, Dataset.from_list(rows), max_length=4)
    with pytest.raises(UserError, match="^column `scores`: all replies are tied"):
        make_trainer(tiny, common, Dataset.from_list(rows[1:2]))


def test_an_evaluation_weighs_prompts_not_replies(tiny, common):
    """Batches of one prompt with 2, 5 and 3 replies: the mean over prompts."""
    rows = rankings([2, 5, 3])
    trainer = make_trainer(tiny, common, rows, eval_dataset=rows, per_device_eval_batch_size=1)
    losses = []
    for row in range(3):
        batch = trainer.data_collator([trainer.train_dataset[row]])
        with torch.no_grad():
            losses.append(trainer.compute_loss(trainer.model.eval(), batch).item())
    trainer._metrics["eval"].clear()
    assert trainer.evaluate()["eval_loss"] == pytest.approx(sum(losses) / 3, abs=1e-5)
