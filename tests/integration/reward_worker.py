"""Run by test_two_processes_reward.py in one or two processes: rankings with different numbers of replies."""

import json
import sys

from accelerate import PartialState
from datasets import Dataset

from trl_reasoning.builtin import resolve_model
from trl_reasoning.generation.scorers import RewardModelScorer
from trl_reasoning.trainers import ReasoningRewardConfig, ReasoningRewardTrainer


REPLIES = [2, 5, 3, 4, 2, 6, 3, 2]
ROWS = Dataset.from_list(
    [
        {
            "prompt": f"{row}+1=?",
            "replies": [f"{number}+{row}" * (1 + number % 3) for number in range(count)],
            "scores": [float(number // 2) for number in range(count)] if count > 2 else [0.0, 1.0],
        }
        for row, count in enumerate(REPLIES)
    ]
)
# Five: one process has a row more than the other.
DEMONSTRATIONS = Dataset.from_list([{"prompt": f"{row}+2=?", "completion": "3" * (row + 1)} for row in range(5)])


def train(folder: str, checkpoint: str | None = None) -> ReasoningRewardTrainer:
    config = ReasoningRewardConfig(
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
        max_steps=3,
        learning_rate=0.05,
        optim="sgd",
        per_device_train_batch_size=4 // PartialState(cpu=True).num_processes,
        per_device_eval_batch_size=2,
    )
    trainer = ReasoningRewardTrainer(
        resolve_model("builtin:tiny"), config, ROWS, eval_dataset=ROWS.select(range(5)), demonstrations=DEMONSTRATIONS
    )
    trainer.train(resume_from_checkpoint=checkpoint)
    return trainer


def numbers(trainer: ReasoningRewardTrainer) -> list:
    keys = ("loss", "grad_norm", "min_reward", "mean_reward", "max_reward", "accuracy", "margin", "num_tokens")
    return [[log[key] for key in keys] for log in trainer.state.log_history if "loss" in log]


if __name__ == "__main__":
    folder, out = sys.argv[1:]
    straight = train(f"{folder}/straight")
    evaluation = straight.evaluate()
    straight.save_model(f"{folder}/model")
    resumed = train(f"{folder}/resumed", f"{folder}/straight/checkpoint-2")
    if PartialState().is_main_process:
        scorer = RewardModelScorer(f"{folder}/model", dtype="float32", device="cpu")
        scores = scorer.score([(row["prompt"], row["completion"]) for row in DEMONSTRATIONS])
        names = ("min_reward", "mean_reward", "max_reward", "accuracy", "margin")
        result = {"evaluation": [evaluation[f"eval_{name}"] for name in names]}
        result |= {"numbers": numbers(straight), "resumed": numbers(resumed), "bias": straight.score_bias}
        with open(out, "w") as file:
            json.dump({**result, "scores": scores, "processes": PartialState().num_processes}, file)
    # Otherwise its threads may be at work while the interpreter ends, which aborts the process.
    PartialState().destroy_process_group()
