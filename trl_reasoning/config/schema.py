"""What a recipe may say: the fields of the method's configuration, of `trl.ModelConfig`, and our own keys."""

import dataclasses
import functools
import typing
from collections.abc import Mapping
from typing import Any, Literal

from .convert import check_choice, convert
from .errors import RecipeError, did_you_mean
from .methods import METHODS, Method, find_method


@dataclasses.dataclass(frozen=True)
class Field:
    """One key of a recipe: its type, its choices, its default and the object that it sets."""

    name: str
    hint: Any
    owner: Literal["config", "model", "own"]
    default: Any = None
    choices: tuple[Any, ...] | None = None


OWN_HINTS: dict[str, Any] = {
    "method": str,
    "datasets": list[dict[str, Any]],
    "columns": dict[str, str] | None,
    "prompt_template": str | None,
    "system_prompt": str | None,
    "chat_template": str | None,
    "eos_token": str | None,
    "add_special_tokens": list[str] | None,
    "adapter_name_or_path": str | None,
    "env": dict[str, str] | None,
}
# Problems whose answers a model that writes text is measured on; rows on which a loss is measured; sampled prompts.
_HELDOUT: dict[str, Any] = {"heldout": dict[str, Any] | None, "max_failing_golds": float | None}
_EVALUATION: dict[str, Any] = {"eval_datasets": list[dict[str, Any]] | None}
_PROMPTS: dict[str, Any] = {"max_prompt_tokens": int | None}
KIND_HINTS: dict[str, dict[str, Any]] = {
    "sft": _HELDOUT | _EVALUATION | {"answer_form": str | None},
    "policy": _HELDOUT | _PROMPTS | {"reward_funcs": list[str | dict[str, Any]]},
    "preference": _HELDOUT | _EVALUATION,
    "reward": _EVALUATION,
    "steps": _EVALUATION,
    "prompts": _HELDOUT | _PROMPTS,
    "logits": _HELDOUT | _EVALUATION | {"answer_form": str | None},
}
# Keys of one method alone.
METHOD_HINTS: dict[str, dict[str, Any]] = {
    "grpo_ps": {"step_reward": str | dict[str, Any]},
    "ppo": {"ptx_dataset": dict[str, Any] | None},
}
# Where the declared type is narrower than what the code behind it takes.
_WIDER_HINTS: dict[str, Any] = {
    "lora_target_modules": str | list[str] | None,
    "lora_target_parameters": str | list[str] | None,
    "resume_from_checkpoint": bool | str | None,
    "scale_rewards": bool | str,
}
# Choices that TRL keeps in its documentation and does not check.
_CHOICES: dict[str, tuple[Any, ...]] = {
    "scale_rewards": ("group", "batch", "none", True, False),
    "importance_sampling_level": ("token", "sequence"),
    "multi_objective_aggregation": ("sum_then_normalize", "normalize_then_sum"),
    "vllm_mode": ("colocate", "server"),
    "vllm_model_impl": ("vllm", "transformers"),
    "vllm_importance_sampling_mode": ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask"),
    "lora_task_type": ("CAUSAL_LM", "SEQ_CLS", "TOKEN_CLS"),
    "truncation_mode": ("keep_start", "keep_end"),
    "f_divergence_type": ("reverse_kl", "forward_kl", "js_divergence", "alpha_divergence"),
}
_POLICY_LOSS_TYPES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo")
_DTYPE_NAMES = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32"}
# Keys of older versions and of other programs: what replaces them.
_REPLACED = {
    "torch_dtype": "write `dtype`",
    "gradient_checkpointing": "write `activation_checkpointing`",
    "gradient_checkpointing_kwargs": "write `activation_checkpointing_kwargs`",
    "max_prompt_length": "it was removed from TRL; `max_prompt_tokens` leaves out longer prompts when the data is "
    "loaded, and `vllm_max_model_length` gives vLLM its room for prompt and completion",
    "max_seq_length": "write `max_length`",
    "warmup_ratio": "write the share as `warmup_steps`, for instance `warmup_steps: 0.1`",
    "evaluation_strategy": "write `eval_strategy`, or `heldout: {every: 50}` for accuracy during training",
    "save_safetensors": "checkpoints are always written as safetensors; remove the key",
    "overwrite_output_dir": "a run resumes from its folder; the command's flag --restart starts again",
    "restart": "it is a flag of the command: `trl-reasoning train RECIPE --restart`",
    "logging_dir": "tensorboard files are written into `output_dir`; set TENSORBOARD_LOGGING_DIR for another place",
    "dataset_name": "write `datasets: [{path: ...}]`",
    "dataset_config": "write `datasets: [{path: ..., name: ...}]`",
    "dataset_train_split": "write `datasets: [{path: ..., split: ...}]`",
    "reward_model_name_or_path": "reward functions are named in `reward_funcs`",
    "model": "write `model_name_or_path`",
    "tokenizer": "the tokenizer is the model's; `chat_template` and `eos_token` change it",
    "lr": "write `learning_rate`",
    "kind": "this key marks files that are not training recipes; a training recipe has `method`",
}


@functools.cache
def method_fields(stem: str) -> Mapping[str, Field]:
    """All keys that a recipe of this method may have (loads trl)."""
    from trl.trainer.model_config import ModelConfig

    method = find_method(stem)
    own = OWN_HINTS | KIND_HINTS[method.kind] | METHOD_HINTS.get(stem, {})
    fields = {name: Field(name, hint, "own") for name, hint in own.items()}
    fields.update(_class_fields(ModelConfig, "model"))
    for name, field in _class_fields(method.config_class(), "config").items():
        if name == "eos_token":  # also a field of SFTConfig: the tokenizer gets it before the trainer sees it
            continue
        if name == "loss_type" and method.kind == "policy":
            field = dataclasses.replace(field, choices=_POLICY_LOSS_TYPES)
        fields[name] = field
    return fields


def check_values(values: Mapping[str, Any], method: Method) -> dict[str, Any]:
    """
    Check names, types and choices of a recipe's values.

    Returns:
        `dict[str, Any]`: the values in their declared types.

    Raises:
        RecipeError: For the first key that is unknown, or whose value has the wrong type or is no choice.
    """
    fields = method_fields(method.stem)
    for key in values:
        if key not in fields:
            raise unknown_key(key, method)
    return {key: _check_value(value, fields[key]) for key, value in values.items()}


def unknown_key(key: Any, method: Method) -> RecipeError:
    """The error for a key that the method does not have: what replaces it, whose it is, or its neighbour."""
    if key in _REPLACED:
        return RecipeError(str(key), f"not a key of a recipe: {_REPLACED[key]}")
    fields = method_fields(method.stem)
    owners = [stem for stem in METHODS if stem != method.stem and key in method_fields(stem)]
    if owners:
        return RecipeError(
            str(key), f"`method: {method.stem}` does not read this key, it belongs to: {', '.join(owners)}; remove it"
        )
    return RecipeError(str(key), f"not a key of a `method: {method.stem}` recipe.{did_you_mean(str(key), fields)}")


def _check_value(value: Any, field: Field) -> Any:
    if field.name == "dtype" and isinstance(value, str) and value in _DTYPE_NAMES:
        raise RecipeError("dtype", f"{value!r} is not a name of a type; write `dtype: {_DTYPE_NAMES[value]}`")
    if field.name == "report_to":
        return _check_report_to(convert(value, field.hint, field.name))
    if value is False and "off" in (field.choices or ()):
        value = "off"  # as YAML reads it without quotes
    value = convert(value, field.hint, field.name)
    if field.choices is not None and value is not None:
        value = check_choice(value, field.choices, field.name)
    if field.name == "attn_implementation" and value is not None:
        _check_attention(value)
    return value


def _check_report_to(value: str | list[str] | None) -> list[str] | None:
    from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

    if value is None:
        return None
    names = [value] if isinstance(value, str) else value
    return [check_choice(name, ("none", "all", *sorted(INTEGRATION_TO_CALLBACK)), "report_to") for name in names]


def _check_attention(value: str) -> None:
    """Names of transformers' own kernels are checked; a kernel from the hub has a slash in its name."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    if "/" not in value:
        check_choice(value, ("eager", *sorted(ALL_ATTENTION_FUNCTIONS.valid_keys())), "attn_implementation")


def _class_fields(cls: Any, owner: Literal["config", "model"]) -> dict[str, Field]:
    hints = typing.get_type_hints(cls)
    fields = {}
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        choices = field.metadata.get("choices") or _CHOICES.get(field.name)
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        fields[field.name] = Field(
            name=field.name,
            hint=_WIDER_HINTS.get(field.name, hints[field.name]),
            owner=owner,
            default=None if default is dataclasses.MISSING else default,
            choices=tuple(choices) if choices else None,
        )
    return fields
