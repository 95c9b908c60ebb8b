"""`logit_distillation`: a student learns a teacher's stored log-probs; the teacher is not in memory."""

import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer
from trl.models.utils import _ForwardRedirection
from trl.trainer.utils import get_config_model_id

from ..errors import UserError
from ..generation.heads import backbone_of, logit_head
from ..generation.teacher_logits import COLUMNS, IGNORED
from ..losses import TopKLoss, chunked_top_k_loss
from ._fixed_keys import check_fixed_keys
from ._stored_logits import TopKCollator, with_teacher_logits
from ._teacher import TeacherConfig
from .sft import ReasoningSFTConfig, ReasoningSFTTrainer


_FIXED = {
    "packing": (False, "stored log-probs belong to the tokens of one row"),
    "padding_free": (False, "stored log-probs belong to the tokens of one row"),
    "loss_type": ("nll", "the loss is `ce_weight` of the cross-entropy and the rest divergence"),
    "label_smoothing_factor": (0.0, "the teacher's probabilities are the soft labels"),
    "truncation_mode": ("keep_start", "stored log-probs are cut where the row is cut"),
}


@dataclass
class LogitDistillationConfig(TeacherConfig, ReasoningSFTConfig):
    r"""
    Distillation from the k most likely tokens of a teacher at every token of given replies
    (Hinton et al., [paper](https://huggingface.co/papers/1503.02531), with the k tokens and the rest as classes).

    $$\frac{1}{C}\sum_{t=1}^{C} (1 - w)\,\mathrm{KL}_k\big(q_t\,\|\,\pi_t\big) - w \log\pi(y_t)$$

    over the C tokens of the replies, see [`~trl_reasoning.losses.top_k_loss`]. With w = 1 it is supervised training.
    Rows that hold the log-probs are taken as they are. For other rows (`prompt` and `completion`, or `messages`) the
    teacher is loaded once before the student, they are stored, and it is deleted; a later run reads the store.

    Args:
        ce_weight (`float`, *optional*, defaults to `0.0`):
            w, in [0, 1].
        temperature (`float`, *optional*, defaults to `1.0`):
            Softens both distributions of the divergence, above 0.
        teacher_top_k (`int`, *optional*, defaults to `64`):
            Tokens stored a place; 6 bytes each before compression.
        teacher_logits (`str`, *optional*):
            Folder of the store; `teacher_logits` in `output_dir` by default.
        teacher_batch_size (`int`, *optional*, defaults to `8`):
            Rows of a forward pass of the teacher.
        teacher_model_revision (`str`, *optional*):
            Revision of the teacher on the hub.
        max_length (`int`, *optional*, defaults to `1024`):
            Tokens of a row that are stored and trained on.
        teacher_model_name_or_path, teacher_adapter_name_or_path, teacher_dtype, teacher_load_in_4bit:
            See [`TeacherConfig`].

    Raises:
        ValueError: For values out of their range and keys that do not go with the method.
    """

    ce_weight: float = field(
        default=0.0, metadata={"help": "Weight of the cross-entropy on the tokens; the rest is the divergence's."}
    )
    temperature: float = field(default=1.0, metadata={"help": "Softens the distributions of the divergence."})
    teacher_top_k: int = field(default=64, metadata={"help": "Most likely tokens of the teacher stored a place."})
    teacher_logits: str | None = field(
        default=None, metadata={"help": "Folder of the stored log-probs; `teacher_logits` in `output_dir`."}
    )
    teacher_batch_size: int = field(default=8, metadata={"help": "Rows of a forward pass of the teacher."})
    teacher_model_revision: str | None = field(default=None, metadata={"help": "Revision of the teacher on the hub."})

    def __post_init__(self) -> None:
        check_fixed_keys(self, "logit_distillation", _FIXED, otherwise=", or use `method: sft`")
        super().__post_init__()
        if not 0 <= self.ce_weight <= 1:
            raise ValueError(f"ce_weight: expected a share in [0, 1], got {self.ce_weight}")
        if self.temperature <= 0:
            raise ValueError(f"temperature: expected a number above 0, got {self.temperature}")
        for key in ("teacher_top_k", "teacher_batch_size"):
            if getattr(self, key) < 1:
                raise ValueError(f"{key}: expected at least 1, got {getattr(self, key)}")


class LogitDistillationTrainer(ReasoningSFTTrainer):
    """
    [`ReasoningSFTTrainer`] with a teacher's stored probabilities as soft labels.

    Logs `divergence` and `cross_entropy`, nats a token, beside the parent's metrics. Takes the parent's arguments.

    Example:

    ```python
    from trl_reasoning import LogitDistillationConfig, LogitDistillationTrainer
    from trl_reasoning.builtin import make_chain_dataset, resolve_model

    trainer = LogitDistillationTrainer(
        model=resolve_model("builtin:mini-untrained"),
        args=LogitDistillationConfig(
            output_dir="out", teacher_model_name_or_path="builtin:tiny", max_steps=10, use_cpu=True, bf16=False
        ),
        train_dataset=make_chain_dataset(size=512),
    )
    trainer.train()
    ```
    """

    args: LogitDistillationConfig

    _tag_names = ["trl", "logit-distillation", "trl-reasoning"]
    _name = "Logit distillation"
    _paper = {
        "title": "Distilling the Knowledge in a Neural Network",
        "id": "1503.02531",
        "citation": textwrap.dedent("""\
            @article{hinton2015distilling,
                title        = {{Distilling the Knowledge in a Neural Network}},
                author       = {Geoffrey Hinton and Oriol Vinyals and Jeff Dean},
                year         = 2015,
                eprint       = {arXiv:1503.02531},
            }"""),
    }

    def __init__(
        self,
        model: Any,
        args: LogitDistillationConfig,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        **kwargs: Any,
    ):
        student = model if isinstance(model, str) else get_config_model_id(model.config)
        if processing_class is None:
            processing_class = AutoTokenizer.from_pretrained(student, trust_remote_code=args.trust_remote_code)
        folder = args.teacher_logits or str(Path(str(args.output_dir)) / "teacher_logits")
        train_dataset = with_teacher_logits(args, train_dataset, processing_class, student, folder)
        if eval_dataset is not None:
            eval_dataset = with_teacher_logits(args, eval_dataset, processing_class, student, f"{folder}_eval")
        args.assistant_only_loss = False  # the stored labels say what is in the loss
        super().__init__(
            model=model,
            args=args,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            data_collator=TopKCollator(_pad_token_id(args, processing_class), args.max_length),
            **kwargs,
        )
        self._forward_redirection = _ForwardRedirection()

    def _prepare_dataset(self, dataset: Any, processing_class: Any, args: Any, *rest: Any) -> Any:
        # The rows are tokens already; those whose loss begins beyond `max_length` have nothing to learn from.
        columns = [name for name in COLUMNS if name in dataset.column_names]
        dataset = dataset.select_columns(columns).with_format("numpy")
        kept = [at for at, labels in enumerate(dataset["labels"]) if (labels[: args.max_length] != IGNORED).any()]
        if not kept:
            raise UserError(f"max_length: the loss of all {len(dataset)} rows begins beyond {args.max_length} tokens")
        dataset = dataset.select(kept, keep_in_memory=True)
        # In memory: several processes would write one cache file at once.
        return dataset.shuffle(seed=args.seed, keep_in_memory=True) if args.shuffle_dataset else dataset

    def _set_signature_columns_if_needed(self) -> None:
        self._signature_columns = list(COLUMNS)

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        student = self.accelerator.unwrap_model(model)
        # Through the wrapper's forward pass, so that gradients are reduced and sharded weights are there.
        found = self._forward_redirection(model, student, self._top_k_loss, student, inputs)
        weight = self.args.ce_weight
        losses = (1 - weight) * found.divergence + weight * found.cross_entropy  # (C,)
        tokens = torch.tensor(len(losses), device=losses.device)
        loss = losses.sum() / torch.as_tensor(tokens if num_items_in_batch is None else num_items_in_batch).clamp(
            min=1
        )
        # The number of tokens is that of all processes, over which the gradient is averaged.
        if self.args.average_tokens_across_devices and num_items_in_batch is not None:
            loss = loss * self.accelerator.num_processes
        self._log_tokens(found, tokens, inputs["attention_mask"].sum())
        return (loss, None) if return_outputs else loss

    def _top_k_loss(self, student: Any, inputs: Any) -> TopKLoss:
        hidden = backbone_of(student)(
            input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], use_cache=False
        ).last_hidden_state[:, :-1]  # (N, L - 1, H)
        labels = inputs["labels"][:, 1:]
        chosen = labels != IGNORED
        return chunked_top_k_loss(
            hidden[chosen],
            logit_head(student),
            labels[chosen],
            inputs["top_ids"],
            inputs["top_logps"],
            self.args.temperature,
            rest_logps=inputs.get("rest_logps"),
        )

    def _log_tokens(self, found: TopKLoss, tokens: torch.Tensor, read: torch.Tensor) -> None:
        sums = [part.detach().sum().double() for part in found]
        sums = torch.stack([*sums, tokens.double(), read.double()])
        gathered: Any = self.accelerator.gather(sums)
        divergence, cross_entropy, entropy, right, count, read_count = gathered.view(-1, len(sums)).sum(0).tolist()
        model: Any = self.model
        mode = "train" if model.training else "eval"
        metrics = {
            "divergence": divergence,
            "cross_entropy": cross_entropy,
            "entropy": entropy,
            "mean_token_accuracy": right,
        }
        for name, total in metrics.items():
            self._metrics[mode][name].append(total / count if count else 0.0)
        if mode == "train":
            self._total_train_tokens += int(read_count)
        self._metrics[mode]["num_tokens"] = [self._total_train_tokens]


def _pad_token_id(args: LogitDistillationConfig, tokenizer: Any) -> int:
    return tokenizer.convert_tokens_to_ids(args.pad_token or tokenizer.pad_token or tokenizer.eos_token)
