"""Loading a model with a saved adapter, so that training goes on with it."""

import copy
from typing import Any

import transformers
from peft import PeftModel
from trl.trainer.utils import create_model_from_path


HEADS = ("score", "classifier")
"""What the heads of token classification models are called."""


def load_with_adapter(
    path: str, adapter: str, args: Any, architecture: str = "AutoModelForCausalLM", **model_kwargs: Any
) -> Any:
    """
    Load a base as TRL does for a model that is named, and put a trainable adapter on it.

    Args:
        path (`str`):
            Folder or hub id of the base.
        adapter (`str`):
            Folder or hub id of the adapter.
        args ([`~transformers.TrainingArguments`]):
            The trainer's arguments.
        architecture (`str`, *optional*, defaults to `"AutoModelForCausalLM"`):
            The class of transformers that loads the base.
        **model_kwargs:
            For `from_pretrained`: `dtype`, `quantization_config`, ...

    Returns:
        [`~peft.PeftModel`]
    """
    base: Any = load_base(path, args, architecture, **model_kwargs)
    return PeftModel.from_pretrained(base, adapter, is_trainable=True)


def load_base(path: str, args: Any, architecture: str, **model_kwargs: Any) -> Any:
    """
    Load a model as TRL does for one that is named; one with a head has one label.

    Args:
        path (`str`):
            Folder or hub id.
        args ([`~transformers.TrainingArguments`]):
            The trainer's arguments.
        architecture (`str`):
            The class of transformers that loads it.
        **model_kwargs:
            For `from_pretrained`.

    Returns:
        [`~transformers.PreTrainedModel`]
    """
    model_kwargs.setdefault("trust_remote_code", args.trust_remote_code)
    # "auto" would spread each process's model over all devices.
    if args.distributed_state.distributed_type in ("MULTI_GPU", "DEEPSPEED"):
        model_kwargs["device_map"] = None
    if architecture != "AutoModelForCausalLM":
        model_kwargs["num_labels"] = 1
    if architecture == "AutoModelForTokenClassification" and model_kwargs.get("quantization_config") is not None:
        # The head has a bias, by which transformers does not know it for the last layer, which stays as it is.
        quantization: Any = copy.copy(model_kwargs["quantization_config"])
        quantization.llm_int8_skip_modules = [*(quantization.llm_int8_skip_modules or []), *HEADS]
        model_kwargs["quantization_config"] = quantization
    return create_model_from_path(path, getattr(transformers, architecture), **model_kwargs)
