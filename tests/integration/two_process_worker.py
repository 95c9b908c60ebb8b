"""Run by test_two_processes.py in one or two processes: trains a few steps and writes what happened as JSON."""

import json
import sys

import torch
from accelerate import PartialState
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.trainers import DrGRPOConfig, DrGRPOTrainer, ReasoningSFTConfig, ReasoningSFTTrainer


GLOBAL_BATCH = 8


def settings(folder: str) -> dict:
    return {
        "output_dir": folder,
        "bf16": False,
        "activation_checkpointing": False,
        "dataloader_pin_memory": False,
        "use_cpu": True,
        "report_to": [],
        "disable_tqdm": True,
        "logging_steps": 1,
        "save_strategy": "no",
        "max_steps": 3,
        "learning_rate": 1e-3,
        "lr_scheduler_type": "constant",
        "per_device_train_batch_size": GLOBAL_BATCH // PartialState(cpu=True).num_processes,
    }


class GradientNorms(TrainerCallback):
    """Norm of each step's accumulated gradient, per parameter."""

    def __init__(self):
        self.steps = []

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        self.steps.append([parameter.grad.norm().item() for parameter in model.parameters()])


def sft(folder: str) -> dict:
    data = make_chain_dataset(size=64, operands=(2, 5)).select_columns(["prompt", "completion"])
    trainer = ReasoningSFTTrainer(
        model=resolve_model("builtin:tiny"), args=ReasoningSFTConfig(**settings(folder)), train_dataset=data
    )
    trainer.train()
    return {"losses": [log["loss"] for log in trainer.state.log_history if "loss" in log]}


def policy(folder: str, what: str) -> dict:
    """
    Dr. GRPO, ours or TRL's, on completions that depend on the prompt and the place in its group alone, or on sampled
    ones. In `uneven` runs, groups lack a spread of rewards, so that processes differ in what they have to pass.
    """
    seen = []

    def reward(prompts, completion_ids, **kwargs):
        seen.extend(prompt[-1]["content"] for prompt in prompts)
        if "uneven" in what:
            # The first group of each four rows of one process, and in the second step every group.
            flat = kwargs["trainer_state"].global_step == 1
            is_first = PartialState().process_index == 0
            return [
                1.0 if flat or (is_first and row < 4) else float(sum(ids) % 7)
                for row, ids in enumerate(completion_ids)
            ]
        return [float(sum(ids) % 7) for ids in completion_ids]

    def rollout(prompts, trainer):
        tokenizer = trainer.processing_class
        prompt_ids = [tokenizer.apply_chat_template(p, add_generation_prompt=True)["input_ids"] for p in prompts]
        # A place in the group of four; both layouts keep a group's rows in order.
        completions = [
            tokenizer(f"<think></think>{10 ** (index % 4) * 3 + 1}<|end|>")["input_ids"]
            for index in range(len(prompts))
        ]
        return {"prompt_ids": prompt_ids, "completion_ids": completions, "logprobs": None}

    norms = GradientNorms()
    shared = {**settings(folder), "num_generations": 4, "max_completion_length": 16, "num_iterations": 1}
    if what.startswith("trl"):
        trainer_class: type = GRPOTrainer
        config = GRPOConfig(**shared, loss_type="dr_grpo", scale_rewards="none", beta=0.0)
    else:
        trainer_class, config = DrGRPOTrainer, DrGRPOConfig(**shared, zero_truncated_reward=False)
    trainer = trainer_class(
        model=resolve_model("builtin:tiny"),
        args=config,
        reward_funcs=[reward],
        train_dataset=make_chain_dataset(size=64, operands=(2, 5)),
        rollout_func=None if what == "sampled" else rollout,
        callbacks=[norms],
    )
    trainer.train()
    everyone: list = [None] * trainer.accelerator.num_processes
    if trainer.accelerator.num_processes > 1:
        torch.distributed.all_gather_object(everyone, seen)
    else:
        everyone = [seen]
    return {
        "losses": [log["loss"] for log in trainer.state.log_history if "loss" in log],
        "rewards": [log["reward"] for log in trainer.state.log_history if "reward" in log],
        "gradients": norms.steps,
        "prompts": everyone,
    }


if __name__ == "__main__":
    what, folder, out = sys.argv[1:]
    result = sft(folder) if what == "sft" else policy(folder, what)
    if PartialState().is_main_process:
        with open(out, "w") as file:
            json.dump({**result, "processes": PartialState().num_processes}, file)
    # Otherwise its threads may be at work while the interpreter ends, which aborts the process.
    PartialState().destroy_process_group()
