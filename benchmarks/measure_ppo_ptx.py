"""Measure what PPO's pretraining mix keeps: the loss on the text it was trained on, after a reward that ruins it."""

import tempfile
from typing import Any

import torch
from transformers import AutoTokenizer, PrinterCallback

from trl_reasoning import PPOConfig, PPOTrainer
from trl_reasoning.builtin import make_chain_dataset, resolve_model


MODEL = resolve_model("builtin:tiny")


def measure(name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Train by PPO for short answers, with each weight of the mix, and take the loss on held-out worked thoughts.

    Args:
        name (`str`):
            Name of the experiment.
        settings (`dict[str, Any]`):
            `ptx_coefs`, `steps`, `rows`, `batch`, `learning_rate`, `seeds`.

    Returns:
        `tuple[dict[str, Any], str]`: nats a token before and after each training, the mean reward of its last five
        steps; and a summary.
    """
    figures = {str(weight): _train(weight, settings) for weight in settings["ptx_coefs"]}
    summary = "; ".join(
        f"ptx_coef {weight}: loss on the text {found['before']:.3f} to {found['after']:.3f} nats a token, reward "
        f"{found['reward']:.2f}"
        for weight, found in figures.items()
    )
    return figures, summary


def _train(weight: float, settings: dict[str, Any]) -> dict[str, float]:
    columns = ["prompt", "completion"]
    text = make_chain_dataset(size=settings["rows"], operands=(2, 5), seed=1).select_columns(columns)
    heldout = make_chain_dataset("heldout", size=64, operands=(2, 5), seed=2).select_columns(columns)
    with tempfile.TemporaryDirectory() as folder:
        trainer = PPOTrainer(
            model=MODEL,
            args=PPOConfig(
                output_dir=folder,
                max_steps=settings["steps"],
                per_device_train_batch_size=settings["batch"],
                num_generations=1,
                max_completion_length=32,
                learning_rate=settings["learning_rate"],
                lr_scheduler_type="constant",
                kl_coef=0.0,
                ptx_coef=weight,
                seed=settings["seeds"][0],
                use_cpu=not torch.cuda.is_available(),
                bf16=False,
                activation_checkpointing=False,
                logging_steps=1,
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
            ),
            reward_funcs=[_short],
            train_dataset=make_chain_dataset(size=512, operands=(2, 5)),
            ptx_dataset=text if weight else None,
        )
        trainer.remove_callback(PrinterCallback)
        before = _loss(trainer.model, heldout)
        trainer.train()
        rewards = [log["reward"] for log in trainer.state.log_history if "reward" in log]
        return {"before": before, "after": _loss(trainer.model, heldout), "reward": sum(rewards[-5:]) / 5}


def _short(completion_ids: list[list[int]], **kwargs: Any) -> list[float]:
    return [-float(len(ids)) for ids in completion_ids]


@torch.no_grad()
def _loss(model: Any, rows: Any) -> float:
    """Mean negative log-likelihood of the completions' tokens, in nats."""
    tokenizer: Any = AutoTokenizer.from_pretrained(MODEL)
    model.eval()
    total, count = 0.0, 0
    for row in rows:
        prompt = tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True)["input_ids"]
        whole = tokenizer.apply_chat_template(row["prompt"] + row["completion"])["input_ids"]
        logits = model(input_ids=torch.tensor([whole], device=model.device)).logits[0, :-1].float()
        targets = torch.tensor(whole[1:], device=model.device)
        losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")[len(prompt) - 1 :]
        total, count = total + losses.sum().item(), count + len(losses)
    return total / count
