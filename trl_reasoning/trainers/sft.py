"""`sft`: supervised fine-tuning on worked thoughts, the cold start of DeepSeek-R1."""

from dataclasses import dataclass, field
from typing import Any

from trl import SFTConfig, SFTTrainer

from ._checkpointing import settle_activation_checkpointing
from ._quantized import QuantizedBase
from ._saving import AdapterOnlySaving


@dataclass
class ReasoningSFTConfig(SFTConfig):
    """
    [`~trl.SFTConfig`] for long chain-of-thought data: the loss is on the assistant's text only.

    Args:
        assistant_only_loss (`bool`, *optional*):
            Unset (the default), it is switched on for rows with `messages` and left off for rows with `prompt` and
            `completion`, whose loss is on the completion anyway.
        max_seconds (`float`, *optional*):
            Stop after this many seconds of training, at the end of a step; a checkpoint is saved.
    """

    assistant_only_loss: bool | None = field(  # type: ignore[assignment]
        default=None,
        metadata={"help": "Loss on the assistant's turns only. Unset: on for rows with `messages`."},
    )
    activation_checkpointing: bool | None = field(
        default=True, metadata={"help": "Whether to recompute activations in the backward pass, to save memory."}
    )
    max_seconds: float | None = field(
        default=None,
        metadata={"help": "Stop after this many seconds of training, at the end of a step."},
    )

    def __post_init__(self) -> None:
        settle_activation_checkpointing(self)
        super().__post_init__()


class ReasoningSFTTrainer(QuantizedBase, AdapterOnlySaving, SFTTrainer):
    """
    [`~trl.SFTTrainer`] whose loss falls on the assistant's text only; thoughts stay in the target.

    Rows are `prompt` + `completion` or `messages`. How a thought is rendered is the chat template's matter; the
    templates of this package keep the thoughts of every assistant turn.
    """

    _tag_names = ["trl", "sft", "trl-reasoning"]

    def __init__(self, model: Any, args: ReasoningSFTConfig | None = None, train_dataset: Any = None, **kwargs: Any):
        if args is not None and args.assistant_only_loss is None:
            columns = getattr(train_dataset, "column_names", None) or []
            args.assistant_only_loss = "messages" in columns
        super().__init__(model=model, args=args, train_dataset=train_dataset, **kwargs)
