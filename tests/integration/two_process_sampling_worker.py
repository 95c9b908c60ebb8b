"""Run by test_two_processes_sampling.py in one or two processes: trains with `sampling` and writes what was drawn."""

import json
import sys

import torch
from accelerate import PartialState

from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.trainers import DrGRPOConfig, DrGRPOTrainer


GLOBAL_BATCH, GENERATIONS = 8, 4
SETTINGS = {
    "prioritized": {"sampling": "prioritized"},
    "curriculum": {"sampling": "curriculum", "difficulty_column": "difficulty", "curriculum_steps": 6},
}


def train(sampling: str, folder: str, checkpoint: str | None = None) -> dict:
    seen = []

    def reward(prompts, **kwargs):
        """Depends on the prompt and the place in its group alone: the same however the batch is split."""
        seen.append([prompt[-1]["content"] for prompt in prompts])
        questions = [prompt[-1]["content"] for prompt in prompts]
        return [float((len(text) + index % GENERATIONS) % 3 == 0) for index, text in enumerate(questions)]

    config = DrGRPOConfig(
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
        max_steps=7,  # five batches an epoch
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        num_generations=GENERATIONS,
        max_completion_length=8,
        zero_truncated_reward=False,
        per_device_train_batch_size=GLOBAL_BATCH // PartialState(cpu=True).num_processes,
        **SETTINGS[sampling],
    )
    trainer = DrGRPOTrainer(
        model=resolve_model("builtin:tiny"),
        args=config,
        reward_funcs=[reward],
        train_dataset=make_chain_dataset(size=10, operands=(2, 6), unique=True),
    )
    trainer.train(resume_from_checkpoint=checkpoint)
    state = trainer._prompt_sampler.state_dict()
    return {
        "prompts": seen,
        "losses": [log["loss"] for log in trainer.state.log_history if "loss" in log],
        "state": {name: value.tolist() if torch.is_tensor(value) else value for name, value in state.items()},
    }


def everyone(value: dict) -> list[dict]:
    """What each process found."""
    found: list = [value] * PartialState().num_processes
    if PartialState().num_processes > 1:
        torch.distributed.all_gather_object(found, value)
    return found


if __name__ == "__main__":
    sampling, folder, out = sys.argv[1:]
    result = {"straight": everyone(train(sampling, f"{folder}/straight"))}
    if PartialState().num_processes > 1:
        for stop in (3, 5):
            resumed = train(sampling, f"{folder}/resumed{stop}", f"{folder}/straight/checkpoint-{stop}")
            result[f"resumed{stop}"] = everyone(resumed)
    if PartialState().is_main_process:
        with open(out, "w") as file:
            json.dump({**result, "processes": PartialState().num_processes}, file)
    # Otherwise its threads may be at work while the interpreter ends, which aborts the process.
    PartialState().destroy_process_group()
