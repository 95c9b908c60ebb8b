"""The pretraining mix of PPO-ptx: which rows an update sees, as tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..errors import UserError
from ..losses import PolicyTokens


@dataclass(frozen=True)
class PtxBatch:
    """
    One process's part of an update's rows.

    Args:
        input_ids, attention_mask, labels (`torch.Tensor`):
            (N, L), padded on the right; labels are -100 where there is no loss.
        scale (`float`):
            What the sum of the token losses is multiplied by to get this process's part of the mean over the update's
            tokens in all processes, given that gradients are averaged over the processes.
    """

    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    labels: torch.Tensor
    scale: float


class PretrainingMix:
    """
    Rows of text beside the rollouts, the same for an update however it is split.

    Which rows an update gets depends on its number and the seed alone, so that a resumed run goes on with the right
    ones.

    Args:
        dataset ([`~datasets.Dataset`]):
            Rows with `text` (loss on every token), with `prompt` and `completion` (loss on the completion) or with
            `messages` (loss on the last one).
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The policy's.
        batch_size (`int`):
            Rows of one update, in all processes together.
        max_length (`int`):
            Tokens of a row, the rest is cut.
        seed (`int`):
            Of the order.
        chat_template_kwargs (`dict`, *optional*):
            For the chat template, as for the rollouts' prompts.
    """

    def __init__(
        self,
        dataset: Any,
        tokenizer: Any,
        batch_size: int,
        max_length: int,
        seed: int,
        chat_template_kwargs: dict[str, Any] | None = None,
    ):
        self._dataset, self._tokenizer = dataset, tokenizer
        self._batch_size, self._max_length, self._seed = batch_size, max_length, seed
        self._template_kwargs = {"return_dict": True, **(chat_template_kwargs or {})}
        self._order: tuple[int, list[int]] = (-1, [])
        columns = set(dataset.column_names)
        if not ({"text"} & columns or {"messages"} & columns or {"prompt", "completion"} <= columns):
            raise UserError(
                f"ptx_dataset: expected the column text, messages, or prompt and completion; found {sorted(columns)}"
            )
        self._encode(0)

    def batch(self, update: int, rank: int, processes: int, part: tuple[float, float]) -> PtxBatch | None:
        """
        Rows of an update.

        Args:
            update (`int`):
                Number of the optimizer step, from 0.
            rank, processes (`int`):
                This process and the number of processes.
            part (`tuple[float, float]`):
                The share of the update, from 0 to 1, that the caller's pass covers.

        Returns:
            [`PtxBatch`], or None where no row falls into this part.
        """
        everyone = [self._encode(self._row(update * self._batch_size + place)) for place in range(self._batch_size)]
        tokens = sum(sum(label != -100 for label in labels) for _, labels in everyone)
        own = everyone[rank::processes]
        rows = own[round(part[0] * len(own)) : round(part[1] * len(own))]
        if not rows:
            return None
        width = max(len(ids) for ids, _ in rows)
        return PtxBatch(
            input_ids=_padded([ids for ids, _ in rows], width, self._tokenizer.pad_token_id),
            attention_mask=_padded([[1] * len(ids) for ids, _ in rows], width, 0),
            labels=_padded([labels for _, labels in rows], width, -100),
            scale=processes / max(tokens, 1),
        )

    def _row(self, place: int) -> int:
        epoch, index = divmod(place, len(self._dataset))
        if self._order[0] != epoch:
            generator = torch.Generator().manual_seed(self._seed + epoch)
            self._order = (epoch, torch.randperm(len(self._dataset), generator=generator).tolist())
        return self._order[1][index]

    def _encode(self, index: int) -> tuple[list[int], list[int]]:
        """Token ids of a row, and its labels; the first token has none, since nothing predicts it."""
        row = self._dataset[index]
        if "text" in row:
            ids, start = self._tokenizer(text=row["text"])["input_ids"], 1
        else:
            prompt, completion = row.get("prompt"), row.get("completion")
            if "messages" in row:
                prompt, completion = row["messages"][:-1], row["messages"][-1:]
            ids, start = self._joined(prompt, completion, index)
        ids = ids[: self._max_length]
        return ids, [-100] * min(start, len(ids)) + ids[start:]

    def _joined(self, prompt: Any, completion: Any, index: int) -> tuple[list[int], int]:
        if isinstance(prompt, str):
            start = self._tokenizer(text=prompt)["input_ids"]
            rest = self._tokenizer(text=completion, add_special_tokens=False)["input_ids"]
            return [*start, *rest, self._tokenizer.eos_token_id], len(start)
        template, kwargs = self._tokenizer.apply_chat_template, self._template_kwargs
        start = template(prompt, add_generation_prompt=True, **kwargs)["input_ids"]
        whole = template([*prompt, *completion], **kwargs)["input_ids"]
        if whole[: len(start)] != start:
            raise UserError(
                f"ptx_dataset: the chat template writes the prompt of row {index} differently once its reply is "
                "there; give the rows as plain text in a column `text`"
            )
        return whole, len(start)


def _padded(rows: Sequence[list[int]], width: int, fill: int) -> torch.Tensor:
    return torch.tensor([row + [fill] * (width - len(row)) for row in rows])


def ptx_loss(model: Any, batch: PtxBatch) -> torch.Tensor:
    r"""
    This process's part of $-\frac{1}{|x|}\sum_t \log\pi(x_t)$ over the update's pretraining tokens.

    Args:
        model ([`~transformers.PreTrainedModel`] or [`~peft.PeftModel`]):
            The policy with TRL's fused head.
        batch ([`PtxBatch`]):
            The rows.
    """
    labels = batch.labels.to(model.device)
    output = model(
        batch.input_ids.to(model.device),
        attention_mask=batch.attention_mask.to(model.device),
        labels=labels,
        fused_lm_head=True,
    )
    return -(output.log_probs * (labels[:, 1:] != -100)).sum() * batch.scale  # log_probs: (N, L - 1)


class PretrainingLoss:
    """Mixin for subclasses of [`~trl.GRPOTrainer`]: a term of `args.ptx_coef` times the loss on pretraining text."""

    _ptx: PretrainingMix | None = None
    _ptx_done = (-1, 0.0)  # optimizer step, and the share of it whose rows were used
    args: Any
    accelerator: Any
    model: Any
    state: Any

    def pretraining_loss(self, tokens: PolicyTokens) -> torch.Tensor | None:
        """This pass's part of the term; the passes of an optimizer step divide its rows among them."""
        if self._ptx is None or not self.model.training:
            return None
        step = self.state.global_step
        done = self._ptx_done[1] if self._ptx_done[0] == step else 0.0
        self._ptx_done = (step, done + tokens.share)
        rank, processes = self.accelerator.process_index, self.accelerator.num_processes
        rows = self._ptx.batch(step, rank, processes, (done, done + tokens.share))
        loss = torch.zeros((), device=tokens.per_token_logps.device)
        if rows is not None:
            # Not through the wrapper of several processes: they may have different numbers of these passes.
            with self.accelerator.autocast():
                loss = ptx_loss(self.accelerator.unwrap_model(tokens.model), rows)
        self._window_metrics.add_scalar("ptx_loss", loss.detach())  # type: ignore[attr-defined]
        return self.args.ptx_coef * loss
