"""`reward`: Bradley-Terry reward models on pairs and on rankings of several replies, as in InstructGPT."""

import textwrap
from dataclasses import dataclass, field
from typing import Any

import torch
from datasets import Dataset
from peft import PeftModel
from trl import RewardConfig, RewardTrainer

from ..data import DataError, parse_source
from ..data.rankings import check_pair_labels
from ..errors import UserError
from ..losses.reward import ordered_pairs, prompt_means, ranking_loss
from ._checkpointing import settle_activation_checkpointing
from ._quantized import QuantizedBase
from ._reward_rows import RankingCollator, tokenize_demonstrations, tokenize_rankings
from ._row_totals import RowTotals
from ._saving import AdapterOnlySaving
from ._score_bias import CentredScores


# Metric: sums of columns above and below the line.
_SHARES = {"accuracy": ("agreed", "decided"), "margin": ("margin", "prompts"), "mean_reward": ("reward", "replies")}


@dataclass
class ReasoningRewardConfig(RewardConfig):
    r"""
    [`~trl.RewardConfig`] for pairs and rankings (InstructGPT, [paper](https://huggingface.co/papers/2203.02155),
    Section 3.5).

    $$L = -\frac{1}{P}\sum_{p} \binom{K_p}{2}^{-1} \sum_{i \succ j} \log\sigma(r_i - r_j)$$

    over the P prompts of the optimizer step: all pairs of a prompt's K replies are one element of the batch, whatever
    K is, and each reply is passed through the model once. A pair is a prompt with K = 2. Ties are dropped; a prompt
    with ties has the mean over the pairs that are left. `per_device_train_batch_size` counts prompts.

    Args:
        preference_clamp (`list[float]`, *optional*):
            Clamp the soft labels of the column `preference` to this range; Constitutional AI
            ([paper](https://huggingface.co/papers/2212.08073)) uses `[0.4, 0.6]`.
        demonstrations (`dict`, *optional*):
            Rows (`prompt` and `completion`, or `messages`) that score 0 on average when training is done: a source
            with the keys of an entry of `datasets`; a relative path starts from the current folder.
        max_seconds (`float`, *optional*):
            Stop after this many seconds of training, at the end of a step; a checkpoint is saved.
    """

    _VALID_DICT_FIELDS = [*RewardConfig._VALID_DICT_FIELDS, "demonstrations"]

    preference_clamp: list[float] | None = field(
        default=None, metadata={"help": "Clamp soft labels to this range, for instance [0.4, 0.6]."}
    )
    demonstrations: dict[str, Any] | str | None = field(
        default=None, metadata={"help": "Source of demonstrations, which score 0 on average after training."}
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
        bounds = self.preference_clamp
        if bounds is not None and not (len(bounds) == 2 and 0.0 <= bounds[0] < bounds[1] <= 1.0):
            raise ValueError(
                f"preference_clamp: expected the least and the greatest probability, such as [0.4, 0.6], got {bounds}"
            )
        if self.demonstrations is not None:
            try:
                parse_source(self.demonstrations)  # type: ignore[arg-type]
            except DataError as error:
                raise ValueError(f"demonstrations: {str(error).removeprefix('datasets: ')}") from error


class ReasoningRewardTrainer(CentredScores, QuantizedBase, AdapterOnlySaving, RewardTrainer):
    """
    [`~trl.RewardTrainer`] for pairs and rankings, with ties, margins, soft labels and scores that are centred.

    Rows are pairs (`prompt`, `chosen`, `rejected`, optional `margin` or `preference`) or rankings (`prompt`,
    `replies`, `scores`). On pairs the loss, its gradient and one batch's metrics are those of the parent; the batches
    between two logs or of an evaluation count as one. Plain text ends with the end token, as it does when
    [`~trl_reasoning.generation.scorers.RewardModelScorer`] scores it. The score is read at the last token that is not
    the pad token.

    Takes the parent's arguments.

    Args:
        demonstrations ([`~datasets.Dataset`], *optional*):
            In place of `args.demonstrations`.

    Example:

    ```python
    from trl_reasoning.builtin import make_chain_pairs_dataset, resolve_model
    from trl_reasoning.trainers import ReasoningRewardConfig, ReasoningRewardTrainer

    trainer = ReasoningRewardTrainer(
        model=resolve_model("builtin:tiny"),
        args=ReasoningRewardConfig(output_dir="out", max_steps=50, use_cpu=True, bf16=False),
        train_dataset=make_chain_pairs_dataset(size=512),
    )
    trainer.train()
    ```
    """

    args: ReasoningRewardConfig

    # The loss is divided by the prompts of the whole optimizer step, so that no further mean is taken.
    loss_is_scaled_for_ga = True
    _tag_names = ["trl", "reward-trainer", "trl-reasoning"]
    _paper = {
        "title": "Training language models to follow instructions with human feedback",
        "id": "2203.02155",
        "citation": textwrap.dedent("""\
            @article{ouyang2022training,
                title        = {{Training language models to follow instructions with human feedback}},
                author       = {Long Ouyang and Jeff Wu and Xu Jiang and Diogo Almeida and Carroll L. Wainwright and
                                others},
                year         = 2022,
                eprint       = {arXiv:2203.02155},
            }"""),
    }

    def __init__(
        self,
        model: Any,
        args: ReasoningRewardConfig | None = None,
        train_dataset: Any = None,
        *,
        demonstrations: Dataset | None = None,
        **kwargs: Any,
    ):
        args = ReasoningRewardConfig("reward") if args is None else args
        _check_head(model, kwargs.get("peft_config"))
        if args.preference_clamp is not None and "preference" not in (train_dataset.column_names or []):
            raise UserError("preference_clamp: has no effect, the rows have no column `preference`; remove it")
        super().__init__(model, args=args, train_dataset=train_dataset, **kwargs)
        self._totals = RowTotals(self.accelerator)
        if kwargs.get("data_collator") is None:
            bounds: Any = None if args.preference_clamp is None else tuple(args.preference_clamp)
            pad_token_id: Any = self.processing_class.pad_token_id  # type: ignore[union-attr]
            self.data_collator = RankingCollator(pad_token_id, args.pad_to_multiple_of, bounds)  # type: ignore[arg-type]
        source = args.demonstrations if demonstrations is None else demonstrations
        self._demonstrations = (
            [] if source is None else tokenize_demonstrations(source, self.processing_class, args.max_length)  # type: ignore[arg-type]
        )

    def _prepare_dataset(self, dataset: Any, processing_class: Any, args: Any, dataset_name: str) -> Any:
        if not isinstance(dataset, Dataset):
            return super()._prepare_dataset(dataset, processing_class, args, dataset_name)
        if "reply_ids" in dataset.column_names:  # tokenized already
            return dataset
        if "replies" in dataset.column_names:
            return tokenize_rankings(dataset, processing_class, args, dataset_name)
        check_pair_labels(dataset)
        rows: Any = super()._prepare_dataset(dataset, processing_class, args, dataset_name)
        if not len(rows):
            raise UserError(f"max_length: no {dataset_name} pair fits into {args.max_length} tokens; raise it")
        return rows

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        self._signature_columns = list(
            dict.fromkeys([*(self._signature_columns or []), "preference", "reply_ids", "scores"])
        )

    def _get_num_items_in_batch(self, batch_samples: list, device: torch.device) -> torch.Tensor:
        """The prompts of the optimizer step, in all processes."""
        prompts = torch.tensor(sum(len(batch["sizes"]) for batch in batch_samples), device=device)
        return self.accelerator.gather(prompts).sum()  # type: ignore[union-attr]

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], use_cache=False)
        rewards = outputs.logits.squeeze(-1).float()  # (R,)
        sizes, ranks = inputs["sizes"], inputs["ranks"]
        prompts = torch.repeat_interleave(torch.arange(len(sizes), device=sizes.device), sizes)  # (R,)
        losses = ranking_loss(rewards, ranks, prompts, len(sizes), inputs.get("margin"), inputs.get("preference"))
        better, worse = ordered_pairs(ranks, prompts)
        if self.args.center_rewards_coefficient is not None:
            squares = (rewards[better] + rewards[worse]) ** 2
            losses = losses + self.args.center_rewards_coefficient * prompt_means(squares, prompts[better], len(sizes))
        if num_items_in_batch is None:
            loss = losses.mean()
        else:  # gradients are averaged over the processes
            loss = losses.sum() * self.accelerator.num_processes / num_items_in_batch
        gaps = (rewards[better] - rewards[worse]).detach()
        self._add_metrics(rewards.detach(), gaps, prompts[better], inputs)
        return (loss, outputs) if return_outputs else loss

    @torch.no_grad()
    def _add_metrics(
        self, rewards: torch.Tensor, gaps: torch.Tensor, prompts: torch.Tensor, inputs: dict[str, torch.Tensor]
    ) -> None:
        """The parent's metrics; each prompt counts once, whatever the batches and the processes were."""
        size, device = len(inputs["sizes"]), gaps.device
        right, is_decided = (gaps > 0).float(), torch.ones(size, device=device)
        if "preference" in inputs:
            preference = inputs["preference"]
            right = torch.where(preference[prompts] < 0.5, (gaps < 0).float(), right)
            is_decided = (preference != 0.5).float()  # a soft label of 0.5 can be neither met nor missed
        prompt_of = torch.repeat_interleave(torch.arange(size, device=device), inputs["sizes"])  # (R,)
        zeros = torch.zeros(size, device=device)
        columns = {
            "prompts": torch.ones(size, device=device),
            "replies": inputs["sizes"],
            "decided": is_decided,
            "agreed": prompt_means(right, prompts, size) * is_decided,
            "margin": prompt_means(gaps, prompts, size),
            "reward": zeros.index_add(0, prompt_of, rewards),
            "tokens": zeros.index_add(0, prompt_of, inputs["attention_mask"].sum(1).float()),
            "least": zeros.scatter_reduce(0, prompt_of, rewards, "amin", include_self=False),
            "most": zeros.scatter_reduce(0, prompt_of, rewards, "amax", include_self=False),
        }
        mode = self._mode()
        found = self._totals.add(mode, columns)
        if mode == "train":
            self._total_train_tokens += int(found["tokens"].sum())
        metrics = self._metrics[mode]
        metrics.update(self._totals.shares(mode, _SHARES))
        metrics["min_reward"] = [min([*metrics["min_reward"], found["least"].min().item()])]
        metrics["max_reward"] = [max([*metrics["max_reward"], found["most"].max().item()])]
        metrics["num_tokens"] = [self._total_train_tokens]

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        self._totals.clear(self._mode())
        super().log(logs, start_time)

    def _mode(self) -> str:
        return "train" if self.model.training else "eval"  # type: ignore[union-attr]


def _check_head(model: Any, peft_config: Any) -> None:
    """PEFT neither trains nor saves the head of an adapter for another task, unless it is told to."""
    config: Any = model.peft_config["default"] if isinstance(model, PeftModel) else peft_config
    if config is None or config.task_type == "SEQ_CLS" or "score" in (config.modules_to_save or []):
        return
    raise UserError(
        f"lora_task_type: an adapter for {config.task_type} does not train the score head and does not save it; "
        'expected SEQ_CLS (`LoraConfig(task_type="SEQ_CLS")`)'
    )
