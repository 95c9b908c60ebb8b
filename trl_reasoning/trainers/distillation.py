"""`distillation`: the student samples, the teacher says what it would have written at each token (Qwen3)."""

import textwrap
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import AutoTokenizer
from trl import DistillationConfig, DistillationTrainer
from trl.trainer.utils import get_config_model_id

from ..errors import UserError
from ._checkpointing import settle_activation_checkpointing
from ._quantized import QuantizedBase
from ._rollout_state import ResumableRollouts
from ._row_templates import RowTemplates, add_thinking_share
from ._saving import AdapterOnlySaving
from ._stop_strings import StringEnds, settle_stop_strings
from ._teacher import (
    TeacherConfig,
    check_teacher_tokenizer,
    check_whole_heads,
    head_rows,
    load_teacher,
    narrow_head,
    vocabulary_rows,
)


DIVERGENCES = {"forward": 0.0, "js": 0.5, "reverse": 1.0}


@dataclass
class ReasoningDistillationConfig(TeacherConfig, DistillationConfig):
    r"""
    On-policy distillation (generalized knowledge distillation, [paper](https://huggingface.co/papers/2306.13649), Eq.
    2; the second stage of Qwen3's small models, [paper](https://huggingface.co/papers/2505.09388), Section 4.5).

    $$\mathbb{E}_{y \sim \pi}\left[\frac{1}{|y|}\sum_t D\big(q(\cdot|y_{<t}),\ \pi(\cdot|y_{<t})\big)\right]$$

    with samples $y$ of the student $\pi$ and the next-token distributions of the teacher $q$; D is the forward KL
    $\mathrm{KL}(q\|\pi)$, the reverse KL $\mathrm{KL}(\pi\|q)$ or what lies between, see
    [`~trl_reasoning.losses.distillation_divergence`]. There is no reward. [`~trl.DistillationConfig`] with:

    Args:
        divergence (`"forward"`, `"js"` or `"reverse"`, *optional*):
            A name for `beta` 0, 0.5 or 1. Both may be given where they agree.
        beta (`float`, *optional*):
            In [0, 1]; 1, the reverse KL, where neither it nor `divergence` is given. It is no KL penalty as in GRPO.
        thinking_share (`float`, *optional*):
            Share of the prompts, in [0, 1], that are rendered with `enable_thinking: true`, the others with `false`:
            the student learns both modes. For single rows the data may have a column `chat_template_kwargs`.
        stop_strings (`list[str]`, *optional*):
            Strings that end a completion. They stay in the completion, and the row counts as complete.
        max_seconds (`float`, *optional*):
            Stop after this many seconds of training, at the end of a step; a checkpoint is saved.
        teacher_model_name_or_path, teacher_adapter_name_or_path, teacher_dtype, teacher_load_in_4bit:
            See [`TeacherConfig`].

    Raises:
        ValueError: For values out of their range, and `divergence` and `beta` that contradict each other.
    """

    beta: float | None = field(  # type: ignore[assignment]
        default=None, metadata={"help": "0 forward KL, 0.5 Jensen-Shannon, 1 reverse KL (the default)."}
    )
    divergence: str | None = field(
        default=None,
        metadata={"help": "A name for beta 0, 0.5 or 1.", "choices": list(DIVERGENCES)},
    )
    thinking_share: float | None = field(
        default=None, metadata={"help": "Share of the prompts with `enable_thinking: true`, the others with false."}
    )
    activation_checkpointing: bool | None = field(
        default=True, metadata={"help": "Whether to recompute activations in the backward pass, to save memory."}
    )
    stop_strings: list[str] | None = field(
        default=None, metadata={"help": "Strings that end a completion; such a row counts as complete."}
    )
    max_seconds: float | None = field(
        default=None, metadata={"help": "Stop after this many seconds of training, at the end of a step."}
    )

    def __post_init__(self) -> None:
        settle_activation_checkpointing(self)
        self.beta = _settle_beta(self.divergence, self.beta)
        super().__post_init__()
        settle_stop_strings(self)
        if self.thinking_share is not None and not 0 <= self.thinking_share <= 1:
            raise ValueError(f"thinking_share: expected a share in [0, 1], got {self.thinking_share}")


def _settle_beta(divergence: str | None, beta: float | None) -> float:
    if divergence is None:
        beta = 1.0 if beta is None else beta
        if not 0 <= beta <= 1:
            raise ValueError(f"beta: expected a number in [0, 1] (0 forward KL, 1 reverse KL), got {beta}")
        return beta
    if divergence not in DIVERGENCES:
        raise ValueError(f"divergence: expected one of {list(DIVERGENCES)}, got {divergence!r}")
    if beta is not None and beta != DIVERGENCES[divergence]:
        raise ValueError(
            f"divergence: {divergence!r} is `beta: {DIVERGENCES[divergence]}`, and `beta` is {beta}; remove one"
        )
    return DIVERGENCES[divergence]


class ReasoningDistillationTrainer(
    QuantizedBase, RowTemplates, ResumableRollouts, StringEnds, AdapterOnlySaving, DistillationTrainer
):
    """
    [`~trl.DistillationTrainer`] that loads its teacher, compares the vocabularies before, resumes exactly, mixes
    thinking and non-thinking prompts and knows stop strings.

    Where student and teacher pad their vocabulary to different widths, the loss sees the logits that both have; the
    saved student keeps all its rows. Logs `divergence`, nats a token, beside TRL's metrics. Takes the parent's
    arguments; `teacher_model` may be left out for the config's `teacher_model_name_or_path`. A teacher that is given
    as a model is taken to have the student's tokenizer.

    Example:

    ```python
    from trl_reasoning import ReasoningDistillationConfig, ReasoningDistillationTrainer
    from trl_reasoning.builtin import make_chain_dataset, resolve_model

    trainer = ReasoningDistillationTrainer(
        model=resolve_model("builtin:mini-untrained"),
        args=ReasoningDistillationConfig(
            output_dir="out",
            teacher_model_name_or_path="builtin:tiny",
            divergence="reverse",
            max_completion_length=64,
            max_steps=10,
            use_cpu=True,
            bf16=False,
        ),
        train_dataset=make_chain_dataset(size=512),
    )
    trainer.train()
    ```
    """

    args: ReasoningDistillationConfig

    _tag_names = ["trl", "distillation", "trl-reasoning"]
    _name = "On-policy distillation"
    _paper = {
        "title": "On-Policy Distillation of Language Models: Learning from Self-Generated Mistakes",
        "id": "2306.13649",
        "citation": textwrap.dedent("""\
            @inproceedings{agarwal2024onpolicy,
                title        = {{On-Policy Distillation of Language Models: Learning from Self-Generated Mistakes}},
                author       = {Rishabh Agarwal and Nino Vieillard and Yongchao Zhou and Piotr Stanczyk and Sabela
                                Ramos Garea and Matthieu Geist and Olivier Bachem},
                year         = 2024,
                booktitle    = {The Twelfth International Conference on Learning Representations},
            }"""),
    }

    def __init__(
        self,
        model: Any,
        teacher_model: Any = None,
        args: ReasoningDistillationConfig | None = None,
        train_dataset: Any = None,
        processing_class: Any = None,
        **kwargs: Any,
    ):
        if args is None:
            raise UserError("args: a ReasoningDistillationConfig, which names the output folder and the teacher")
        student = model if isinstance(model, str) else get_config_model_id(model.config)
        revision = (args.model_init_kwargs or {}).get("revision")  # type: ignore[union-attr]
        if processing_class is None:
            processing_class = AutoTokenizer.from_pretrained(
                student, revision=revision, trust_remote_code=args.trust_remote_code
            )
        if isinstance(teacher_model, str):
            args.teacher_model_name_or_path, teacher_model = teacher_model, None
        if teacher_model is None:
            if args.teacher_model_name_or_path is None:
                raise UserError("teacher_model_name_or_path: missing; distillation learns from a teacher, name it")
            check_teacher_tokenizer(args, processing_class, student, revision)
            teacher_model = load_teacher(args, **(args.teacher_model_init_kwargs or {}))  # type: ignore[arg-type]
            args.teacher_model_init_kwargs = None  # used, and the parent takes them for a teacher that is a name
        if args.thinking_share is not None:
            train_dataset = add_thinking_share(train_dataset, args.thinking_share, processing_class, args.seed)
        teacher_config, teacher_rows = teacher_model.config.get_text_config(), head_rows(teacher_model)
        # The parent refuses other numbers; here the loss is cut to the logits that both have.
        teacher_config.vocab_size = student_rows = vocabulary_rows(model, revision, args.trust_remote_code)
        try:
            super().__init__(
                model,
                teacher_model=teacher_model,
                args=args,
                train_dataset=train_dataset,
                processing_class=processing_class,
                **kwargs,
            )
        finally:
            teacher_config.vocab_size = teacher_rows
        self._shared_rows = min(student_rows, teacher_rows)
        check_whole_heads(self, self._shared_rows, student_rows, teacher_rows)
        if student_rows > self._shared_rows:  # no row of the teacher answers these
            self.generation_config.suppress_tokens = list(range(self._shared_rows, student_rows))

    def _generate_single_turn(self, prompt_ids: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.args.stop_strings:
            return super()._generate_single_turn(prompt_ids, *args, **kwargs)
        with self._generating_to_strings():
            completion_ids = super()._generate_single_turn(prompt_ids, *args, **kwargs)
        return self._trim_rows(completion_ids)

    def _compute_loss(self, unwrapped_student: Any, inputs: Any, num_items_in_batch: Any) -> Any:
        teacher = self.accelerator.unwrap_model(self.teacher_model)
        with narrow_head(unwrapped_student, self._shared_rows), narrow_head(teacher, self._shared_rows):
            loss, entropy_sum, tokens = super()._compute_loss(unwrapped_student, inputs, num_items_in_batch)
        total = loss.detach() * (tokens if num_items_in_batch is None else num_items_in_batch)
        self._divergence = torch.stack([total, tokens.to(total.dtype)])
        return loss, entropy_sum, tokens

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        output = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        # Gathered here, outside of the wrapped forward pass, as the parent does with its entropy.
        gathered: Any = self.accelerator.gather(self._divergence)
        total, tokens = gathered.view(-1, 2).sum(0).tolist()
        mode = "train" if model.training else "eval"
        self._metrics[mode]["divergence"].append(total / tokens if tokens else 0.0)
        return output
