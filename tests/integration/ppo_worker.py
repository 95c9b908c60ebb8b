"""Run by test_two_processes_ppo.py in one or two processes: PPO on fixed rollouts, and what happened as JSON."""

import json
import sys
from pathlib import Path

from accelerate import PartialState


sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "trainers"))

from ppo_tools import Gradients, logged, ppo

from trl_reasoning.builtin import make_chain_dataset


GLOBAL_BATCH = 8
SETTINGS = {
    "full": {},
    "shared": {"value_model": "shared"},
    "lora": {"peft": True, "activation_checkpointing": True},
}


def main(what: str, folder: str, out: str) -> None:
    gradients = Gradients()
    trainer = ppo(
        folder,
        per_device_train_batch_size=GLOBAL_BATCH // PartialState(cpu=True).num_processes,
        num_iterations=2,
        max_steps=4,
        vf_coef=0.5,
        kl_coef=0.1,
        ptx=make_chain_dataset(size=16, operands=(2, 4)).select_columns(["prompt", "completion"]),
        ptx_coef=0.5,
        ptx_batch_size=5,
        optim="sgd",
        callbacks=[gradients],
        **SETTINGS[what],
    )
    trainer.train()
    # Read on every process, written by the first.
    result = {name: logged(trainer, name) for name in ("loss", "value_loss", "ptx_loss", "objective/kl", "returns")}
    result["gradients"] = [[grad.norm().item() for grad in step.values()] for step in gradients.steps]
    result["names"] = [name.removeprefix("module.") for name in gradients.steps[0]]
    result["explained"] = logged(trainer, "explained_variance")
    result["processes"] = PartialState().num_processes
    if PartialState().is_main_process:
        Path(out).write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
    # Otherwise its threads may be at work while the interpreter ends, which aborts the process.
    PartialState().destroy_process_group()
