"""Reward models on pairs: TRL's own trainer, labels of pairs, and the same tokens in training and scoring."""

import pytest
import torch
from reward_tools import as_text, chain_pairs, logged, make_trainer
from trl import RewardConfig, RewardTrainer

from trl_reasoning.errors import UserError
from trl_reasoning.generation.scorers import RewardModelScorer
from trl_reasoning.losses.reward import bradley_terry_loss
from trl_reasoning.trainers import ReasoningRewardConfig


METRICS = ("loss", "grad_norm", "num_tokens", "min_reward", "mean_reward", "max_reward", "accuracy", "margin")


@pytest.mark.parametrize("case", ["messages", "text", "whole dialogues", "margin", "centred"])
def test_pairs_are_trained_as_in_trl(tiny, common, tmp_path, case):
    """Loss, gradient norm and metrics of each step, and the weights at the end."""
    rows = chain_pairs(16)
    settings = {"max_steps": 3, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 2}
    # Adam would make a full step of the rounding of a gradient that is nearly 0.
    settings |= {"optim": "sgd", "learning_rate": 0.1}
    if case == "text":
        rows = as_text(rows)
    elif case == "whole dialogues":
        rows = rows.map(lambda row: {key: row["prompt"] + row[key] for key in ("chosen", "rejected")})
        rows = rows.remove_columns("prompt")
    elif case == "margin":
        rows = rows.add_column("margin", [0.1 * number for number in range(16)])
    elif case == "centred":
        settings["center_rewards_coefficient"] = 0.1
    evaluation = {"eval_dataset": rows.select(range(6)), "eval_strategy": "steps", "eval_steps": 3}
    ours = make_trainer(tiny, common, rows, **settings, **evaluation)
    held = evaluation.pop("eval_dataset")
    args = RewardConfig(**{**common, **settings, **evaluation, "output_dir": str(tmp_path / "trl")})
    theirs = RewardTrainer(tiny, args, train_dataset=rows, eval_dataset=held)
    for trainer in (ours, theirs):
        trainer.train()
    # TRL's least and greatest reward are means over the micro-batches.
    metrics = [name for name in METRICS if name not in ("min_reward", "max_reward")]
    expected = logged(theirs, *metrics)
    assert len(expected) == 3 and len({row[0] for row in expected}) == 3
    for found, row in zip(logged(ours, *metrics), expected, strict=True):
        assert found == pytest.approx(row, rel=1e-4, abs=1e-5)
    pairs = zip(ours.model.parameters(), theirs.model.parameters(), strict=True)
    assert all(torch.allclose(mine, other, atol=1e-5) for mine, other in pairs)
    keys = [f"eval_{name}" for name in ("loss", *METRICS[3:])]
    found, row = (
        [log[key] for log in t.state.log_history if "eval_loss" in log for key in keys] for t in (ours, theirs)
    )
    assert found == pytest.approx(row, rel=1e-4, abs=1e-5)


def test_an_evaluation_counts_each_prompt_once(tiny, common):
    """Five pairs in batches of four and one, or all in one; the extremes are those of all replies."""
    held = chain_pairs(5)
    found = []
    for size in (5, 4, 1):
        trainer = make_trainer(tiny, common, held, eval_dataset=held, per_device_eval_batch_size=size, seed=3)
        metrics = trainer.evaluate()
        found.append([metrics[f"eval_{name}"] for name in ("loss", *METRICS[3:])])
    assert found[1] == pytest.approx(found[0], rel=1e-4, abs=1e-6)
    assert found[2] == pytest.approx(found[0], rel=1e-4, abs=1e-6)
    rewards = []
    with torch.no_grad():
        for row in trainer.train_dataset:
            for side in ("chosen_ids", "rejected_ids"):
                rewards.append(trainer.model.eval()(torch.tensor([row[side]])).logits.item())
    margins = [first - second for first, second in zip(rewards[::2], rewards[1::2], strict=True)]
    by_hand = [min(rewards), sum(rewards) / 10, max(rewards), sum(gap > 0 for gap in margins) / 5, sum(margins) / 5]
    assert found[0][1:] == pytest.approx(by_hand, abs=1e-4)


@pytest.mark.parametrize("form", ["messages", "text", "text that ends"])
def test_the_scorer_reads_the_tokens_of_the_training(tiny, common, tokenizer, tmp_path, form):
    """The end token is there in both, once."""
    rows = chain_pairs(4)
    if form != "messages":
        rows = as_text(rows)
    if form == "text that ends":
        rows = rows.map(lambda row: {"chosen": row["chosen"] + tokenizer.eos_token})
    trainer = make_trainer(tiny, common, rows, max_steps=1)
    trainer.save_model(str(tmp_path / "model"))
    scorer = RewardModelScorer(str(tmp_path / "model"), dtype="float32")
    for row, trained in zip(rows, trainer.train_dataset, strict=True):
        reply = row["chosen"] if isinstance(row["chosen"], str) else row["chosen"][-1]["content"]
        ids = scorer._token_ids(scorer.tokenizer, row["prompt"], reply)
        assert ids == trained["chosen_ids"]
        assert ids[-1] == tokenizer.eos_token_id != ids[-2]


def test_soft_labels(tiny, common):
    """The loss of the labels, which `preference_clamp` brings into a range; accuracy by the likelier reply."""
    labels = [0.97, 0.03, 0.55, 0.5]
    rows = chain_pairs(4).add_column("preference", labels)
    losses, accuracies = [], []
    for clamp in (None, [0.4, 0.6]):
        trainer = make_trainer(tiny, common, rows, preference_clamp=clamp, max_steps=1)
        batch = trainer.data_collator([trainer.train_dataset[row] for row in range(4)])
        with torch.no_grad():
            losses.append(trainer.compute_loss(trainer.model.eval(), batch).item())
            scores = trainer.model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits.squeeze(-1)
        chosen, rejected = scores[0::2], scores[1::2]
        wanted = torch.tensor(labels) if clamp is None else torch.tensor([0.6, 0.4, 0.55, 0.5])
        expected = bradley_terry_loss(chosen, rejected, preference=wanted).mean().item()
        assert losses[-1] == pytest.approx(expected, abs=1e-6)
        right = [
            (gap > 0) == (label > 0.5) for gap, label in zip((chosen - rejected).tolist(), labels[:3], strict=False)
        ]
        accuracies.append(trainer._metrics["eval"]["accuracy"][0])
        assert accuracies[-1] == pytest.approx(sum(right) / 3)
    assert losses[0] != losses[1] and accuracies[0] == accuracies[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"preference_clamp": [0.6, 0.4]}, r"^preference_clamp: .*such as \[0.4, 0.6\], got"),
        ({"preference_clamp": [0.4]}, "^preference_clamp: "),
        ({"demonstrations": {"pth": "x"}}, "^demonstrations: unknown key 'pth'; did you mean 'path'"),
    ],
)
def test_settings_that_are_refused(common, settings, message):
    with pytest.raises(ValueError, match=message):
        ReasoningRewardConfig(**{**common, **settings})


def test_rows_that_are_refused(tiny, common):
    rows = chain_pairs(4)
    with pytest.raises(UserError, match="^preference_clamp: has no effect"):
        make_trainer(tiny, common, rows, preference_clamp=[0.4, 0.6])
    with pytest.raises(UserError, match="^column `preference`, row 0"):
        make_trainer(tiny, common, rows.add_column("preference", [2.0] * 4))
    with pytest.raises(UserError, match="^max_length: no train pair fits into 5 tokens"):
        make_trainer(tiny, common, rows, max_length=5)
    with pytest.raises(UserError, match="^demonstrations: need `messages`"):
        make_trainer(tiny, common, rows, demonstrations=rows)
    long = as_text(rows).rename_column("chosen", "completion")
    with pytest.raises(UserError, match="^demonstrations: none of 4 rows fits max_length 60"):
        long = long.map(lambda row: {"completion": row["completion"] * 9})
        make_trainer(tiny, common, as_text(rows), max_length=60, demonstrations=long)


def test_the_head_is_random_with_the_seed(tiny, common):
    heads = [make_trainer(tiny, common, chain_pairs(4), seed=seed).model.score.weight for seed in (1, 1, 2)]
    assert heads[0].equal(heads[1]) and not heads[0].equal(heads[2]) and heads[0].std() > 0
