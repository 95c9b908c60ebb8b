"""Run by test_two_processes_prm.py in one or two processes: process reward models on the same rows."""

import json
import sys

from accelerate import PartialState
from transformers import TrainerCallback

from trl_reasoning.builtin import make_chain_steps_dataset, resolve_model
from trl_reasoning.trainers import PRMConfig, PRMTrainer


BATCH = 8


class GradientNorms(TrainerCallback):
    """Norm of each step's accumulated gradient, per parameter."""

    def __init__(self):
        self.steps = []

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        self.steps.append([parameter.grad.norm().item() for parameter in model.parameters()])


def rows(split: str, size: int):
    """Solutions of two to five steps: the processes get unequal numbers of labels."""
    return make_chain_steps_dataset(split, size=size, operands=(2, 5)).select_columns(["prompt", "steps", "labels"])


def train(folder: str, accumulation: int) -> dict:
    norms = GradientNorms()
    trainer = PRMTrainer(
        resolve_model("builtin:tiny"),
        PRMConfig(
            output_dir=folder,
            bf16=False,
            activation_checkpointing=False,
            dataloader_pin_memory=False,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            logging_steps=1,
            save_strategy="no",
            max_steps=3,
            learning_rate=1e-2,
            optim="sgd",
            lr_scheduler_type="constant",
            per_device_train_batch_size=BATCH // accumulation // PartialState(cpu=True).num_processes,
            gradient_accumulation_steps=accumulation,
            per_device_eval_batch_size=4,
            eval_strategy="steps",
            eval_steps=3,
        ),
        rows("train", 32),
        eval_dataset=rows("heldout", 7),  # an odd number, so that the last batch is filled up in two processes
        callbacks=[norms],
    )
    trainer.train()
    trainer.save_model(f"{folder}/model")
    keys = ("loss", "accuracy", "mean_score", "mean_label", "num_tokens")
    logs = trainer.state.log_history
    return {
        "gradients": norms.steps,
        "logs": [[log[key] for key in keys] for log in logs if "loss" in log],
        "eval": [log[f"eval_{key}"] for log in logs if "eval_loss" in log for key in keys[1:]],
    }


if __name__ == "__main__":
    folder, out = sys.argv[1:]
    result = {str(accumulation): train(f"{folder}/{accumulation}", accumulation) for accumulation in (1, 2)}
    if PartialState().is_main_process:
        with open(out, "w") as file:
            json.dump({**result, "processes": PartialState().num_processes}, file)
    # Otherwise its threads may be at work while the interpreter ends, which aborts the process.
    PartialState().destroy_process_group()
