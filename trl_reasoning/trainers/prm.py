"""`prm`: process reward models, which say of each step of a solution how likely it is right."""

import textwrap
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import set_seed
from trl import RewardConfig, RewardTrainer

from ..generation.step_tokens import StepFormat
from ..losses.prm import IGNORED, prm_loss
from ._checkpointing import settle_activation_checkpointing
from ._loading import HEADS, load_base
from ._quantized import QuantizedBase
from ._row_totals import RowTotals
from ._saving import AdapterOnlySaving
from ._step_data import StepCollator, prepare_steps


# Metric: sums of columns above and below the line.
_SHARES = {
    "accuracy": ("hits", "steps"),
    "accuracy_right": ("right_hits", "right"),
    "accuracy_wrong": ("wrong_hits", "wrong"),
    "mean_score": ("score", "steps"),
    "mean_label": ("label", "steps"),
}


@dataclass
class PRMConfig(RewardConfig):
    r"""
    Process reward models as in Math-Shepherd ([paper](https://huggingface.co/papers/2312.08935)), which
    DeepSeekMath's process supervision uses.

    $$ L = -\frac{1}{K} \sum_k y_k \log r_k + (1 - y_k) \log (1 - r_k), \quad r_k = \sigma(z(x, s_{1..k})) $$

    over the K labelled steps of an optimizer step, in all passes and processes; z is read at the last token of the
    separator that follows a step.

    Args:
        learning_rate (`float`, *optional*, defaults to `2e-5`):
            DeepSeekMath's for its reward models, from the base model with all weights. LoRA wants about 10 times it.
        separator (`str`, *optional*, defaults to `"\n"`):
            What follows each step. It is tokenized alone, so that it is the same tokens after every step.
        plain_prompt (`bool`, *optional*):
            Whether messages are read as the text of the last user message, without the chat template. Unset: for rows
            whose prompts are texts, so that the model reads a chat the same way.
        max_length (`int`, *optional*, defaults to `1024`):
            Most tokens of prompt and steps. Longer solutions are cut, and steps beyond the cut have no label.
        train_on_last_step_only (`bool`, *optional*, defaults to `False`):
            Whether only the label of each solution's last step is used, as in an outcome reward model.
        label_threshold (`float`, *optional*):
            In [0, 1). Labels above it count as 1 and others as 0; 0 makes Math-Shepherd's hard estimation of shares
            (some continuation ended right). Unset, labels are taken as they are, shares as soft targets.
        max_seconds (`float`, *optional*):
            Stop after this many seconds of training, at the end of a step; a checkpoint is saved.
    """

    learning_rate: float = field(default=2e-5, metadata={"help": "Initial learning rate."})
    separator: str = field(default="\n", metadata={"help": "What follows each step, tokenized alone."})
    plain_prompt: bool | None = field(
        default=None,
        metadata={"help": "Read messages as the last user message's text. Unset: where the rows' prompts are texts."},
    )
    max_length: int | None = field(
        default=1024, metadata={"help": "Most tokens of prompt and steps; steps beyond it have no label."}
    )
    train_on_last_step_only: bool = field(
        default=False, metadata={"help": "Use the label of each solution's last step only."}
    )
    label_threshold: float | None = field(
        default=None, metadata={"help": "Labels above it count as 1, others as 0. Unset: labels as they are."}
    )
    activation_checkpointing: bool | None = field(
        default=True, metadata={"help": "Whether to recompute activations in the backward pass, to save memory."}
    )
    max_seconds: float | None = field(
        default=None, metadata={"help": "Stop after this many seconds of training, at the end of a step."}
    )

    def __post_init__(self) -> None:
        settle_activation_checkpointing(self)
        super().__post_init__()
        if not self.separator:
            raise ValueError(r'separator: expected a text, got an empty one; the default is "\n"')
        if self.max_length is not None and self.max_length < 2:
            raise ValueError(f"max_length: expected at least 2 tokens, got {self.max_length}")
        if self.label_threshold is not None and not 0 <= self.label_threshold < 1:
            raise ValueError(f"label_threshold: expected a share in [0, 1), got {self.label_threshold}")
        if self.center_rewards_coefficient is not None:
            raise ValueError("center_rewards_coefficient: is for pairs and has no effect on steps; remove the key")


class PRMTrainer(QuantizedBase, AdapterOnlySaving, RewardTrainer):
    """
    [`~trl.RewardTrainer`] on step-labelled solutions, for a token classification model with one label.

    Rows have `prompt` (messages or text), `steps` and `labels`, see
    [`~trl_reasoning.data.step_rows.check_step_rows`]. Rows without a label within `max_length` are left out, and a
    warning says how many. A saved folder says in `process_reward.json` how the model reads, and
    [`~trl_reasoning.generation.process_scorer.ProcessScorer`] goes by it.

    Logs `accuracy` (score and label on the same side of 0.5; both count as right at 0.5), the same for right and for
    wrong steps, `mean_score`, `mean_label` and `num_tokens`, each over all steps since the last log.

    Args:
        model (`str` or [`~transformers.PreTrainedModel`] or [`~peft.PeftModel`]):
            Folder or hub id of any language model or of a process reward model with one label, or such a model
            loaded. A model without a head for steps gets a random one.
        args ([`PRMConfig`], *optional*):
            The configuration.
        train_dataset ([`~datasets.Dataset`]):
            The rows.
        eval_dataset ([`~datasets.Dataset`], *optional*):
            Rows of the same form.
        quantization_config ([`~transformers.BitsAndBytesConfig`], *optional*):
            For a model that is named.
        kwargs:
            As of [`~trl.RewardTrainer`].
    """

    args: PRMConfig

    loss_is_scaled_for_ga = True  # by the number of labelled steps

    _tag_names = ["trl", "prm", "trl-reasoning"]
    _name = "Process reward"
    _paper = {
        "title": "Math-Shepherd: Verify and Reinforce LLMs Step-by-step without Human Annotations",
        "id": "2312.08935",
        "citation": textwrap.dedent("""\
            @article{wang2023mathshepherd,
                title        = {{Math-Shepherd: Verify and Reinforce LLMs Step-by-step without Human Annotations}},
                author       = {Peiyi Wang and Lei Li and Zhihong Shao and R. X. Xu and Damai Dai and Yifei Li and
                                Deli Chen and Y. Wu and Zhifang Sui},
                year         = 2023,
                eprint       = {arXiv:2312.08935},
            }"""),
    }

    def __init__(
        self,
        model: Any,
        args: PRMConfig | None = None,
        train_dataset: Any = None,
        *,
        quantization_config: Any = None,
        peft_config: Any = None,
        **kwargs: Any,
    ):
        args = PRMConfig() if args is None else args
        if peft_config is not None:
            _settle_adapter(peft_config)
        if isinstance(model, str):
            model = _load(model, args, quantization_config)
        is_text = train_dataset is not None and isinstance(next(iter(train_dataset)).get("prompt"), str)
        plain = is_text if args.plain_prompt is None else args.plain_prompt
        self._format = StepFormat(separator=args.separator, plain_prompt=plain)
        super().__init__(
            model=model,
            args=args,
            data_collator=StepCollator(args.pad_to_multiple_of),  # type: ignore[arg-type]
            train_dataset=train_dataset,
            peft_config=peft_config,
            **kwargs,
        )
        self._totals = RowTotals(self.accelerator)
        # Whatever the model's forward takes: the number of labelled steps has to reach `compute_loss`.
        self.model_accepts_loss_kwargs = True

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        labels = inputs["labels"]  # (N, T)
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], use_cache=False)
        logits = outputs.logits.squeeze(-1).float()  # (N, T)
        loss = prm_loss(logits, labels, num_steps=num_items_in_batch)
        if num_items_in_batch is not None and self.args.average_tokens_across_devices:
            loss = loss * self.accelerator.num_processes  # gradients are averaged over processes
        self._count(logits.detach(), labels, inputs["attention_mask"])
        return (loss, outputs) if return_outputs else loss

    def _count(self, logits: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor) -> None:
        is_step = labels != IGNORED  # (N, T)
        scores = logits.sigmoid()  # (N, T)
        is_right = labels >= 0.5  # (N, T)
        hits = (scores >= 0.5) == is_right  # (N, T)
        columns = {
            "steps": is_step,
            "right": is_step & is_right,
            "wrong": is_step & ~is_right,
            "hits": is_step & hits,
            "right_hits": is_step & is_right & hits,
            "wrong_hits": is_step & ~is_right & hits,
            "score": torch.where(is_step, scores, 0.0),
            "label": torch.where(is_step, labels, 0.0),
            "tokens": mask,
        }
        mode = self._mode()
        found = self._totals.add(mode, {name: column.sum(1) for name, column in columns.items()})  # (N,) each
        if mode == "train":
            self._total_train_tokens += int(found["tokens"].sum())
        self._metrics[mode].update(self._totals.shares(mode, _SHARES))
        self._metrics[mode]["num_tokens"] = [self._total_train_tokens]

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        self._totals.clear(self._mode())
        super().log(logs, start_time)

    def _mode(self) -> str:
        model: Any = self.model
        return "train" if model.training else "eval"

    def _prepare_dataset(self, dataset: Any, processing_class: Any, args: Any, dataset_name: str) -> Any:
        return prepare_steps(dataset, processing_class, self._format, args, dataset_name)

    def _set_signature_columns_if_needed(self) -> None:
        self._signature_columns = ["input_ids", "step_ends", "step_labels"]

    def _save(self, output_dir: str | None = None, state_dict: dict | None = None) -> None:
        super()._save(output_dir, state_dict)
        if self.args.should_save:
            self._format.save(output_dir or str(self.args.output_dir))


def _settle_adapter(peft_config: Any) -> None:
    """The head is trained whole and saved with the adapter; with another task PEFT would do neither."""
    if peft_config.task_type is None:
        peft_config.task_type = "TOKEN_CLS"
    if peft_config.task_type != "TOKEN_CLS":
        raise ValueError(
            f"peft_config: a process reward model needs task_type TOKEN_CLS, got {peft_config.task_type}; otherwise "
            "its head is neither trained nor saved"
        )
    # `all-linear` spares the heads of other tasks by itself.
    if peft_config.exclude_modules is None:
        peft_config.exclude_modules = list(HEADS)


def _load(path: str, args: PRMConfig, quantization_config: Any) -> Any:
    """A token classification model with one label; a new head is drawn from the run's seed."""
    settings: Any = args.model_init_kwargs or {}
    options: dict[str, Any] = dict(settings)
    if quantization_config is not None:
        options["quantization_config"] = quantization_config
    args.model_init_kwargs = None  # used up: the parent is given an instance
    set_seed(args.seed)
    return load_base(path, args, "AutoModelForTokenClassification", **options)
