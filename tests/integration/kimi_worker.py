"""Run by test_two_processes_kimi.py in one or two processes: a group of eight, four rows on each of two processes."""

import json
import sys

from accelerate import PartialState

from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.rewards import REWARDS
from trl_reasoning.trainers import KimiConfig, KimiTrainer


GROUP = 8
DATA = make_chain_dataset(size=16, operands=(2, 3))
GOLDS = {row["prompt"][-1]["content"]: row["solution"] for row in DATA}


def rollout(prompts, trainer):
    """Even places of the group are right, and each place is one token longer than the one before."""
    tokenizer = trainer.processing_class
    first = trainer.accelerator.process_index * len(prompts)
    completions = []
    for place, prompt in enumerate(prompts, start=first):
        answer = GOLDS[prompt[-1]["content"]] if place % 2 == 0 else "1000"
        bare = len(tokenizer(f"<think></think>{answer}<|end|>")["input_ids"])
        thought = "1" * (12 + place - bare)  # a digit is a token
        completions.append(tokenizer(f"<think>{thought}</think>{answer}<|end|>")["input_ids"])
    prompt_ids = [tokenizer.apply_chat_template(p, add_generation_prompt=True)["input_ids"] for p in prompts]
    return {"prompt_ids": prompt_ids, "completion_ids": completions, "logprobs": None}


class Recorder(KimiTrainer):
    """Keeps the rewards of the first generation batch of a run."""

    rewards: list | None = None

    def _calculate_rewards(self, *args):
        rewards = super()._calculate_rewards(*args)
        self.rewards = self.rewards or rewards.tolist()
        return rewards


def train(folder: str, checkpoint: str | None = None) -> Recorder:
    config = KimiConfig(
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
        max_steps=4,
        learning_rate=1e-3,
        num_generations=GROUP,
        per_device_train_batch_size=GROUP // PartialState(cpu=True).num_processes,
        num_iterations=2,
        max_completion_length=32,
        reward_weights=[1.0, 0.5],
    )
    trainer = Recorder(
        model=resolve_model("builtin:tiny"),
        args=config,
        reward_funcs=[REWARDS["accuracy"](), REWARDS["kimi_length"]()],
        train_dataset=DATA,
        rollout_func=rollout,
    )
    trainer.train(resume_from_checkpoint=checkpoint)
    return trainer


def numbers(trainer: Recorder) -> list:
    keys = ("loss", "grad_norm", "kimi/log_ratio", "kimi/log_ratio_abs_max")
    return [[log[key] for key in keys] for log in trainer.state.log_history if "loss" in log]


if __name__ == "__main__":
    folder, out = sys.argv[1:]
    straight = train(f"{folder}/straight")
    resumed = {at: numbers(train(f"{folder}/{at}", f"{folder}/straight/checkpoint-{at}")) for at in (3,)}
    if PartialState().is_main_process:
        result = {"rewards": straight.rewards, "numbers": numbers(straight), "resumed": resumed}
        with open(out, "w") as file:
            json.dump({**result, "processes": PartialState().num_processes}, file)
    # Otherwise its threads may be at work while the interpreter ends, which aborts the process.
    PartialState().destroy_process_group()
