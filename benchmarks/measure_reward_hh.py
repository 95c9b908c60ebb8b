"""Train a reward model on human preferences and measure how often it agrees with them on held-out pairs."""

import os
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig

from trl_reasoning import ReasoningRewardConfig, ReasoningRewardTrainer
from trl_reasoning.data import load_source
from trl_reasoning.generation.reward_model import scored_token_ids
from trl_reasoning.generation.scorers import RewardModelScorer
from trl_reasoning.metrics import accuracy_interval


_FILE = Path("data") / "hh_harmless_test.jsonl.gz"


def measure(name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Train on some pairs, save, load the folder as a reward and score the other pairs.

    Args:
        name (`str`):
            Name of the experiment.
        settings (`dict[str, Any]`):
            `model` and `data` (`env:NAME`), `max_length`, `heldout` and `train` (pairs), `batch` (pairs),
            `learning_rate`, `lora_r`, `seeds` (the first one is used).

    Returns:
        `tuple[dict[str, Any], str]`: accuracy on the held-out pairs with its 95 % interval, that of the untrained head
        and of preferring the longer reply, and the losses; and a summary.
    """
    from transformers import AutoTokenizer

    model, seed = os.environ[settings["model"].removeprefix("env:")], settings["seeds"][0]
    path = Path(os.environ[settings["data"].removeprefix("env:")]) / _FILE
    tokenizer = AutoTokenizer.from_pretrained(model)
    rows = load_source({"path": str(path), "adapter": "hh_rlhf"})
    rows = rows.map(lambda row: {"lengths": _lengths(row, tokenizer)})
    rows = rows.filter(lambda row: max(row["lengths"]) <= settings["max_length"] and row["chosen"] != row["rejected"])
    train, heldout = split_by_question(rows, settings["train"], settings["heldout"], seed)
    train = train.select(batches_of_like_length(train["lengths"], settings["batch"], seed))
    with tempfile.TemporaryDirectory() as folder:
        trainer = _make_trainer(model, tokenizer, train, heldout, settings, seed, folder)
        untrained = trainer.evaluate()["eval_accuracy"]
        trainer.train()
        trainer.save_model(folder)
        scorer = RewardModelScorer(folder, dtype="float32", batch_size=8)
        chosen, rejected = (scorer.score(_replies(heldout, column)) for column in ("chosen", "rejected"))
    right = [float(better > worse) for better, worse in zip(chosen, rejected, strict=True)]
    longer = [float(better > worse) for better, worse in heldout["lengths"] if better != worse]
    logs = [log for log in trainer.state.log_history if "loss" in log]
    figures = {
        "accuracy": _share(right),
        "untrained_accuracy": round(untrained, 4),
        "longer_is_chosen": _share(longer),
        "longer_gets_the_higher_score": _share(
            [
                float((first > second) == (better > worse))
                for first, second, (better, worse) in zip(chosen, rejected, heldout["lengths"], strict=True)
                if better != worse
            ]
        ),
        "heldout": len(heldout),
        "train": len(train),
        "steps": trainer.state.global_step,
        "tokens": int(logs[-1]["num_tokens"]),
        "losses": [round(log["loss"], 4) for log in logs],
    }
    share = figures["accuracy"]
    summary = (
        f"{share['mean']:.1%} of {len(heldout)} held-out pairs [{share['low']:.1%}, {share['high']:.1%}] after "
        f"{len(train)} pairs; untrained {untrained:.1%}, longer reply {figures['longer_is_chosen']['mean']:.1%}"
    )
    return figures, summary


def split_by_question(rows: Dataset, train: int, heldout: int, seed: int) -> tuple[Dataset, Dataset]:
    """Rows to train on and held-out rows; all pairs that begin with the same message are on one side."""
    questions: dict[str, list[int]] = {}
    for row, prompt in enumerate(rows["prompt"]):
        questions.setdefault(prompt[0]["content"].strip().lower(), []).append(row)
    groups = [questions[question] for question in sorted(questions)]
    random.Random(seed).shuffle(groups)
    order = [row for group in groups for row in group]
    tested = set(order[:heldout])
    asked = {rows[row]["prompt"][0]["content"].strip().lower() for row in tested}
    others = [row for row in order[heldout:] if rows[row]["prompt"][0]["content"].strip().lower() not in asked]
    return rows.select(others[:train]), rows.select(order[:heldout])


def batches_of_like_length(lengths: Sequence[Sequence[int]], batch: int, seed: int) -> list[int]:
    """An order of the rows in which those of one batch are about equally long, so that little is padded."""
    rng = random.Random(seed)
    rows = list(range(len(lengths)))
    rng.shuffle(rows)
    pools = [sorted(rows[start : start + 16 * batch], key=lambda row: max(lengths[row])) for start in
             range(0, len(rows), 16 * batch)]  # fmt: skip
    batches = [pool[start : start + batch] for pool in pools for start in range(0, len(pool), batch)]
    rng.shuffle(batches)
    return [row for rows in batches for row in rows]


def _make_trainer(
    model: str, tokenizer: Any, train: Dataset, heldout: Dataset, settings: dict[str, Any], seed: int, folder: str
) -> ReasoningRewardTrainer:
    args = ReasoningRewardConfig(
        folder,
        max_length=settings["max_length"],
        per_device_train_batch_size=settings["batch"],
        per_device_eval_batch_size=8,
        learning_rate=settings["learning_rate"],
        lr_scheduler_type="cosine",
        warmup_steps=0.05,
        num_train_epochs=1,
        train_sampling_strategy="sequential",
        seed=seed,
        bf16=True,
        use_cpu=not torch.cuda.is_available(),
        activation_checkpointing=False,
        dataloader_pin_memory=False,
        model_init_kwargs={"dtype": "bfloat16"},
        save_strategy="no",
        report_to=[],
        logging_steps=10,
    )
    lora = LoraConfig(
        task_type="SEQ_CLS", r=settings["lora_r"], lora_alpha=2 * settings["lora_r"], target_modules="all-linear"
    )
    columns = ["prompt", "chosen", "rejected"]
    return ReasoningRewardTrainer(
        model,
        args,
        train.select_columns(columns),
        eval_dataset=heldout.select_columns(columns),
        processing_class=tokenizer,
        peft_config=lora,
    )


def _lengths(row: dict[str, Any], tokenizer: Any) -> list[int]:
    """Tokens with the chosen and with the rejected reply."""
    return [len(scored_token_ids(tokenizer, row["prompt"], row[column])) for column in ("chosen", "rejected")]


def _replies(rows: Dataset, column: str) -> list[tuple[Any, str]]:
    return [(row["prompt"], row[column][-1]["content"]) for row in rows]  # type: ignore[index, call-overload]


def _share(values: list[float]) -> dict[str, float]:
    low, high = accuracy_interval(values, samples_per_problem=1)
    return {"mean": round(sum(values) / len(values), 4), "low": round(low, 4), "high": round(high, 4)}
