"""Loading a model with a saved adapter, so that training goes on with it."""

from typing import Any

from peft import PeftModel
from trl.trainer.utils import create_model_from_path


def load_with_adapter(path: str, adapter: str, args: Any, **model_kwargs: Any) -> Any:
    """
    Load a base as TRL does for a model that is named, and put a trainable adapter on it.

    Args:
        path (`str`):
            Folder or hub id of the base.
        adapter (`str`):
            Folder or hub id of the adapter.
        args ([`~transformers.TrainingArguments`]):
            The trainer's arguments.
        **model_kwargs:
            For `from_pretrained`: `dtype`, `quantization_config`, ...

    Returns:
        [`~peft.PeftModel`]
    """
    model_kwargs.setdefault("trust_remote_code", args.trust_remote_code)
    # "auto" would spread each process's model over all devices.
    if args.distributed_state.distributed_type in ("MULTI_GPU", "DEEPSPEED"):
        model_kwargs["device_map"] = None
    base: Any = create_model_from_path(path, **model_kwargs)
    return PeftModel.from_pretrained(base, adapter, is_trainable=True)
