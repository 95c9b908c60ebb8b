"""What the tests of the preference trainers share: pairs, trainers on the tiny model, their logs."""

from typing import Any

from peft import LoraConfig

from trl_reasoning.builtin import make_chain_pairs_dataset
from trl_reasoning.config import METHODS


STEMS = ("dpo", "ln_dpo", "simpo")
OWN_METRICS = {
    "lengths/chosen",
    "lengths/rejected",
    "lengths/difference",
    "lengths/chosen_longer",
    "logps/chosen_per_token",
    "logps/rejected_per_token",
}
# Numbers that differ from run to run.
_TIMES = ("runtime", "per_second", "total_flos")


def pairs(size: int = 16, **params: Any):
    return make_chain_pairs_dataset(size=size, **{"operands": (2, 4), "length_bias": 0.5, **params})


def lora(**settings: Any) -> LoraConfig:
    return LoraConfig(**{"r": 4, "target_modules": "all-linear", "task_type": "CAUSAL_LM", **settings})


def make_trainer(stem: str, model: Any, common: dict, data: Any = None, peft: Any = False, **settings: Any):
    """The method's trainer; keys of the trainer itself come under `trainer`."""
    method = METHODS[stem]
    more = {"peft_config": lora() if peft else None, **settings.pop("trainer", {})}
    config = method.config_class()(
        **{
            **common,
            "max_steps": 2,
            "per_device_train_batch_size": 4,
            "learning_rate": 1e-3,
            "lr_scheduler_type": "constant",
            "warmup_steps": 0,
            **settings,
        }
    )
    return method.trainer_class()(model=model, args=config, train_dataset=pairs() if data is None else data, **more)


def log_of(trainer: Any) -> list[dict]:
    """The rows of the training log, without times."""
    rows = [row for row in trainer.state.log_history if "loss" in row]
    return [{key: value for key, value in row.items() if not any(word in key for word in _TIMES)} for row in rows]


def weights_of(trainer: Any) -> dict:
    model = trainer.accelerator.unwrap_model(trainer.model)
    return {name: value.detach().clone() for name, value in model.named_parameters() if value.requires_grad}
