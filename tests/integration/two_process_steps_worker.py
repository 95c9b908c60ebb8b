"""Run by test_two_processes_steps.py: step rewards and a renewed reference, with a group that spans the processes."""

import json
import sys

import torch
from accelerate import PartialState
from transformers import TrainerCallback

from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.rewards.replay import ReplayBuffer
from trl_reasoning.rewards.steps import StepScore, split_steps
from trl_reasoning.trainers import GRPOPSConfig, GRPOPSTrainer


GROUP = 4
TEXTS = [
    "<think>1+1=2\n2+2=5</think>5<|end|>",
    "<think>1</think>3<|end|>",
    "7<|end|>",
    "<think>1\n2\n3\n4\n5</think>4",
]


class GradientNorms(TrainerCallback):
    """Norm of each step's accumulated gradient, per parameter."""

    def __init__(self):
        self.steps = []

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        self.steps.append([parameter.grad.norm().item() for parameter in model.parameters()])


def steps(prompts, texts, **kwargs):
    """A score for each line, from its last character."""
    return [[StepScore(end, float(ord(text[end - 1]) % 3)) for _, end in split_steps(text)] for text in texts]


def rollout(prompts, trainer):
    tokenizer = trainer.processing_class
    first = trainer.accelerator.process_index * len(prompts)
    return {
        "prompt_ids": [tokenizer.apply_chat_template(p, add_generation_prompt=True)["input_ids"] for p in prompts],
        "completion_ids": [tokenizer(TEXTS[(first + row) % GROUP])["input_ids"] for row in range(len(prompts))],
        "logprobs": None,
    }


def train(folder: str, max_steps: int, resume_from: str | None = None) -> dict:
    norms = GradientNorms()
    trainer = GRPOPSTrainer(
        model=resolve_model("builtin:tiny"),
        args=GRPOPSConfig(
            output_dir=folder,
            bf16=False,
            activation_checkpointing=False,
            dataloader_pin_memory=False,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            logging_steps=1,
            save_strategy="steps",
            save_steps=1,
            max_steps=max_steps,
            learning_rate=1e-3,
            lr_scheduler_type="constant",
            per_device_train_batch_size=GROUP // PartialState(cpu=True).num_processes,
            num_generations=GROUP,
            max_completion_length=40,
            beta=0.04,
            sync_ref_model=True,
            ref_model_sync_steps=2,
        ),
        reward_funcs=[lambda completion_ids, **kwargs: [float(len(ids)) for ids in completion_ids]],
        step_reward=steps,
        train_dataset=make_chain_dataset(size=64, operands=(2, 5)),
        rollout_func=rollout,
        callbacks=[norms],
    )
    calls = []

    def hook(samples, history, reward_funcs):
        calls.append([[sample.rewards[0] for sample in samples], [sample.rewards[0] for sample in history]])

    trainer.set_iteration_hook(hook, ReplayBuffer(share=0.5, capacity=6))
    trainer.train(resume_from_checkpoint=resume_from)
    everyone: list = [calls]
    if trainer.accelerator.num_processes > 1:
        everyone = [None] * trainer.accelerator.num_processes
        torch.distributed.all_gather_object(everyone, calls)
    logs = [log for log in trainer.state.log_history if "kl" in log]
    return {
        "kl": [log["kl"] for log in logs],
        "counts": [log["steps/count"] for log in logs],
        "zero_std": [log["steps/frac_zero_std"] for log in logs],
        "gradients": norms.steps,
        "calls": everyone,
    }


if __name__ == "__main__":
    folder, out = sys.argv[1:]
    result = {"straight": train(f"{folder}/straight", 5)}
    train(f"{folder}/parts", 3)
    result["resumed"] = train(f"{folder}/parts", 5, resume_from=f"{folder}/parts/checkpoint-3")
    if PartialState().is_main_process:
        with open(out, "w") as file:
            json.dump({**result, "processes": PartialState().num_processes}, file)
    # Otherwise its threads may be at work while the interpreter ends, which aborts the process.
    PartialState().destroy_process_group()
