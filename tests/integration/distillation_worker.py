"""Run by test_two_processes_distillation.py in one or two processes: four rows a step on each way to learn."""

import json
import sys

from accelerate import PartialState

from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.trainers import (
    LogitDistillationConfig,
    LogitDistillationTrainer,
    ReasoningDistillationConfig,
    ReasoningDistillationTrainer,
)


DATA = make_chain_dataset(size=12, operands=(2, 4))
PROCESSES = PartialState(cpu=True).num_processes


class Given(ReasoningDistillationTrainer):
    """Completions that depend on the prompt alone, so that any number of processes has the same."""

    def _generate_single_turn(self, prompt_ids, *args, **kwargs):
        return [[*ids[1 : 2 + len(ids) // 2], self._tokenizer.eos_token_id] for ids in prompt_ids]


def settings(folder: str, **changes) -> dict:
    return {
        "output_dir": folder,
        "bf16": False,
        "activation_checkpointing": False,
        "dataloader_pin_memory": False,
        "use_cpu": True,
        "report_to": [],
        "disable_tqdm": True,
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_steps": 2,
        "max_steps": 3,
        "learning_rate": 1e-3,
        "teacher_model_name_or_path": "builtin:tiny-untrained",
        "per_device_train_batch_size": 2 // PROCESSES,
        "gradient_accumulation_steps": 2,
        **changes,
    }


def on_policy(trainer_class, folder: str, checkpoint: str | None = None) -> list:
    args = ReasoningDistillationConfig(**settings(folder, max_completion_length=8, thinking_share=0.5, beta=0.5))
    trainer = trainer_class(model=resolve_model("builtin:tiny"), args=args, train_dataset=DATA)
    trainer.train(resume_from_checkpoint=checkpoint)
    return numbers(trainer)


def stored(folder: str, store: str, checkpoint: str | None = None) -> list:
    args = LogitDistillationConfig(**settings(folder, teacher_logits=store, teacher_top_k=4, ce_weight=0.2))
    trainer = LogitDistillationTrainer(model=resolve_model("builtin:tiny"), args=args, train_dataset=DATA)
    trainer.train(resume_from_checkpoint=checkpoint)
    return numbers(trainer)


def numbers(trainer) -> list:
    keys = ("loss", "grad_norm", "entropy", "num_tokens")
    return [[log[key] for key in keys] for log in trainer.state.log_history if "loss" in log]


if __name__ == "__main__":
    folder, out = sys.argv[1:]
    result = {
        "processes": PROCESSES,
        "given": on_policy(Given, f"{folder}/given"),
        "sampled": on_policy(ReasoningDistillationTrainer, f"{folder}/sampled"),
        "sampled resumed": on_policy(
            ReasoningDistillationTrainer, f"{folder}/sampled_on", f"{folder}/sampled/checkpoint-2"
        ),
        "stored": stored(f"{folder}/stored", f"{folder}/store"),
        "stored resumed": stored(f"{folder}/stored_on", f"{folder}/store", f"{folder}/stored/checkpoint-2"),
    }
    if PartialState().is_main_process:
        with open(out, "w") as file:
            json.dump(result, file)
    # Otherwise its threads may be at work while the interpreter ends, which aborts the process.
    PartialState().destroy_process_group()
