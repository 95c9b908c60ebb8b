"""Small PPO trainers on rollouts that are the same whatever samples them."""

import os
from typing import Any
from unittest.mock import patch

import torch
from peft import LoraConfig
from transformers import TrainerCallback

from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.trainers import PPOConfig, PPOTrainer


# Of different lengths, so that a mean over tokens and one over rows differ.
REPLIES = ("<think></think>3<|end|>", "<think>1+2=3</think>7<|end|>", "<think>4", "<think>2+2=4</think>4<|end|>")


def lora(**settings: Any) -> LoraConfig:
    return LoraConfig(r=4, target_modules="all-linear", lora_dropout=0.1, task_type="CAUSAL_LM", **settings)


def sum_reward(completion_ids, **kwargs):
    return [float(sum(ids) % 7) for ids in completion_ids]


def fixed_rollout(prompts, trainer):
    """Completions that depend on the prompt's text alone."""
    tokenizer = trainer.processing_class
    return {
        "prompt_ids": [tokenizer.apply_chat_template(p, add_generation_prompt=True)["input_ids"] for p in prompts],
        "completion_ids": [
            tokenizer(REPLIES[sum(map(ord, p[-1]["content"])) % len(REPLIES)])["input_ids"] for p in prompts
        ],
        "logprobs": None,
    }


class Gradients(TrainerCallback):
    """A copy of each step's accumulated gradient, by parameter."""

    def __init__(self):
        self.steps: list[dict[str, torch.Tensor]] = []

    def on_pre_optimizer_step(self, args, state, control, model: Any = None, **kwargs):
        self.steps.append(
            {name: p.grad.clone() for name, p in model.named_parameters() if p.requires_grad and p.grad is not None}
        )


def ppo(folder, *, fixed=True, model=None, peft=False, reward=sum_reward, ptx=None, callbacks=None, **settings):
    """A trainer on eight prompts a rollout."""
    config = PPOConfig(
        **{
            "output_dir": str(folder),
            "bf16": False,
            "activation_checkpointing": False,
            "dataloader_pin_memory": False,
            "report_to": [],
            "disable_tqdm": True,
            "logging_steps": 1,
            "save_strategy": "no",
            "use_cpu": True,
            "per_device_train_batch_size": 8,
            "max_completion_length": 16,
            "max_steps": 1,
            "learning_rate": 1e-3,
            "lr_scheduler_type": "constant",
            "num_iterations": 1,
            **settings,
        }
    )
    with patch.dict(os.environ, TRL_EXPERIMENTAL_SILENCE="1"):  # rollout_func is experimental
        return PPOTrainer(
            model=model or resolve_model("builtin:tiny"),
            args=config,
            reward_funcs=reward if isinstance(reward, list) else [reward],
            train_dataset=make_chain_dataset(size=16, operands=(2, 4)),
            rollout_func=fixed_rollout if fixed else None,
            peft_config=lora() if peft else None,
            ptx_dataset=ptx,
            callbacks=callbacks,
        )


def losses(trainer) -> dict[int, float]:
    return {log["step"]: log["loss"] for log in trainer.state.log_history if "loss" in log}


def logged(trainer, name: str) -> list[float]:
    return [log[name] for log in trainer.state.log_history if name in log]


def adapter(model, name: str) -> dict[str, torch.Tensor]:
    """The weights of one LoRA adapter, under names that all adapters share."""
    return {key.replace(f".{name}.", "."): p for key, p in model.named_parameters() if f".{name}." in key}
