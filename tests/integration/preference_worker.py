"""Run by test_two_processes_preference.py in one or two processes: each method on the same eight pairs a step."""

import json
import sys

from accelerate import PartialState

from trl_reasoning.builtin import make_chain_pairs_dataset, resolve_model
from trl_reasoning.config import METHODS


DATA = make_chain_pairs_dataset(size=16, operands=(2, 4), length_bias=0.5)


def train(stem: str, folder: str, **settings) -> list[dict]:
    method = METHODS[stem]
    config = method.config_class()(
        output_dir=folder,
        bf16=False,
        activation_checkpointing=False,
        dataloader_pin_memory=False,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        logging_steps=1,
        save_strategy="no",
        max_steps=2,
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        warmup_steps=0,
        per_device_train_batch_size=8 // PartialState(cpu=True).num_processes,
        per_device_eval_batch_size=4 // PartialState(cpu=True).num_processes,
        **settings,
    )
    # Seven: the last batch of two processes is filled up with a row that counts once.
    trainer = method.trainer_class()(
        model=resolve_model("builtin:tiny"), args=config, train_dataset=DATA, eval_dataset=DATA.select(range(7))
    )
    trainer.train()
    trainer.evaluate()
    left_out = ("epoch", "eval_loss", "eval_runtime", "eval_samples_per_second", "eval_steps_per_second")
    rows = [row for row in trainer.state.log_history if "loss" in row or "eval_loss" in row]
    return [{key: value for key, value in row.items() if key not in left_out} for row in rows]


if __name__ == "__main__":
    folder, out = sys.argv[1:]
    result = {stem: train(stem, f"{folder}/{stem}") for stem in ("dpo", "ln_dpo", "simpo")}
    result["reference beside the policy"] = train("ln_dpo", f"{folder}/held", precompute_ref_log_probs=False)
    if PartialState().is_main_process:
        with open(out, "w") as file:
            json.dump({"processes": PartialState().num_processes, "logs": result}, file)
    # Otherwise its threads may be at work while the interpreter ends, which aborts the process.
    PartialState().destroy_process_group()
