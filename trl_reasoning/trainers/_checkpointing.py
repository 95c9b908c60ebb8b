"""One name for activation checkpointing over the versions of transformers."""

from dataclasses import fields
from typing import Any

from transformers import TrainingArguments


def settle_activation_checkpointing(args: Any) -> None:
    """
    Make `activation_checkpointing` hold where transformers knows the older name, `gradient_checkpointing`, only.

    Args:
        args ([`~transformers.TrainingArguments`]):
            Arguments before their `__post_init__`; changed in place.
    """
    if "activation_checkpointing" not in {field.name for field in fields(TrainingArguments)}:
        args.gradient_checkpointing = bool(args.activation_checkpointing)
