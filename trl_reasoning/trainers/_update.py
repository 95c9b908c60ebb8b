"""The update phase without waste: rows by length, and no pass for rows that have no gradient."""

import contextlib
import itertools
import time
from typing import Any

import torch
from accelerate.utils import DistributedType
from trl import GRPOTrainer
from trl.models.utils import disable_gradient_checkpointing

from ._packing import RowLengths, join_batches, plan_passes, row_lengths, split_to_count, take_rows


class PackedUpdate:
    """
    Mixin over [`PolicyLoss`]: the rows of one optimizer step are passed in batches of like length.

    TRL pads each row to the longest completion of its generation batch, passes rows whose gradient is exactly 0
    (groups without a spread of rewards), and pays a second forward pass for the log-probs of the policy that sampled.
    Here the micro-batches of an accumulation window are collected, and at its end their rows are passed forward and
    backward in batches that are sorted by length and cut to their own longest row, each at most as large as one of
    TRL's. Every optimizer step holds the same rows with the same weights, so that the gradient is the same up to
    rounding. The log-probs of the sampling policy are those of the first pass.

    `args.pack_updates` set to false gives TRL's micro-batches. They are also used where the objective depends on how
    rows are grouped (`top_entropy_quantile`, the auxiliary loss of mixtures of experts), for rows with images, with
    `pad_to_multiple_of`, and under DeepSpeed and FSDP.
    """

    # Keys with one value per completion token. A method that adds one extends this.
    token_keys: frozenset[str] = frozenset(
        (
            "completion_ids",
            "completion_mask",
            "tool_mask",
            "old_per_token_logps",
            "ref_per_token_logps",
            "sampling_per_token_logps",
            "importance_sampling_ratio",
            "advantages",
        )
    )
    # Whether the log-probs of the sampling policy may wait for the first update; False for a method that needs them
    # at once.
    defers_old_logps = True

    def __init__(self, *args: Any, **kwargs: Any):
        self._window: list[dict[str, Any]] = []
        self._window_seconds = 0.0
        self._deferring = False
        super().__init__(*args, **kwargs)
        plugin_free = self.accelerator.distributed_type not in (  # type: ignore[attr-defined]
            DistributedType.DEEPSPEED,
            DistributedType.FSDP,
        )
        self._packs = bool(
            self.args.pack_updates  # type: ignore[attr-defined]
            and plugin_free
            and self.top_entropy_quantile == 1.0  # type: ignore[attr-defined]
            and not self.aux_loss_enabled  # type: ignore[attr-defined]
            and self.pad_to_multiple_of is None  # type: ignore[attr-defined]
            and not self._is_vlm  # type: ignore[attr-defined]
        )

    def needs_logps(self, batch: dict[str, Any]) -> torch.Tensor:
        """(N,) bool: rows whose sampling log-probs a later update will read; by default those with a gradient."""
        return self.has_gradient(batch)  # type: ignore[attr-defined]

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        if not self._packs:
            return super().training_step(model, inputs, num_items_in_batch)  # type: ignore[misc]
        start = time.perf_counter()
        model.train()
        self._window.append(self._prepare_inputs(inputs))  # generates where a new generation batch begins
        self._step += 1
        loss = torch.zeros((), device=self.accelerator.device)  # type: ignore[attr-defined]
        if self.accelerator.gradient_state.sync_gradients:  # type: ignore[attr-defined]
            window, self._window = self._window, []
            loss = self._update(model, window)
        self._window_seconds += time.perf_counter() - start
        if not self._window:
            self._metrics["train"]["step_time"].append(self._window_seconds)  # type: ignore[attr-defined]
            self._window_seconds = 0.0
        return loss

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        # What the dataloader gives is a list of rows; a dict is a batch of `_update`, which has all it needs.
        if self._packs and isinstance(generation_batch, dict):
            return generation_batch
        return super()._prepare_inputs(generation_batch)  # type: ignore[misc]

    def _update(self, model: Any, window: list[dict[str, Any]]) -> torch.Tensor:
        """Forward and backward for the micro-batches of one optimizer step; the sum of their losses."""
        later = self._chunks_of_later_steps()
        is_in_window = [any(chunk is other for other in window) for chunk in later]
        self._score([chunk for chunk, inside in zip(later, is_in_window, strict=True) if not inside])

        batch = self._join(window)
        lengths = row_lengths(batch)
        is_active = self.has_gradient(batch)  # type: ignore[attr-defined]
        self._window_logps = torch.full_like(batch["completion_mask"], torch.nan, dtype=torch.float32)  # (N, T)
        mask = self.loss_mask(batch)  # type: ignore[attr-defined]
        is_left_out = ~is_active & mask.any(dim=1)
        metrics = self._window_metrics  # type: ignore[attr-defined]
        metrics.leave_out(int((~is_active).sum()), int(mask[is_left_out].sum()))

        passes = plan_passes(lengths, is_active.nonzero().squeeze(1).tolist(), self._token_budget(window))
        passes, fillers = self._agree_on_passes(passes, lengths)
        total = torch.zeros((), device=self.accelerator.device)  # type: ignore[attr-defined]
        for number, rows in enumerate([*passes, *fillers]):
            taken = take_rows(batch, rows, lengths, self.token_keys)
            taken["share"] = 1.0 / (len(passes) + len(fillers))
            taken["is_filler"] = number >= len(passes)
            if taken["is_filler"]:
                taken["row_weights"] = torch.zeros_like(taken["row_weights"])
                taken["entropy_row_weights"] = torch.zeros_like(taken["entropy_row_weights"])
            is_last = number == len(passes) + len(fillers) - 1
            with contextlib.nullcontext() if is_last else self.accelerator.no_sync(model):  # type: ignore[attr-defined]
                total += super(GRPOTrainer, self).training_step(model, taken)  # type: ignore[misc]
        metrics.add_ratio("update/rows_left_out", int(is_left_out.sum()), len(is_active))
        padded = sum(lengths.padded(rows) for rows in passes)
        real = sum(lengths.prompt[row] + lengths.completion[row] for rows in passes for row in rows)
        metrics.add_ratio("update/padding", padded - real, padded)
        metrics.add_ratio("update/tokens", padded, 1)
        self._finish_window("train")  # type: ignore[attr-defined]
        self._hand_back_logps([chunk for chunk, inside in zip(later, is_in_window, strict=True) if inside], window)
        return total

    def _join(self, window: list[dict[str, Any]]) -> dict[str, Any]:
        """All rows of the window, with their weights and their number."""
        has_old = any("old_per_token_logps" in chunk for chunk in window)
        chunks = []
        for chunk in window:
            chunk = {
                **chunk,
                "row_weights": self.batch_row_weights(chunk),  # type: ignore[attr-defined]
                "entropy_row_weights": self.entropy_row_weights(chunk),  # type: ignore[attr-defined]
            }
            if has_old and "old_per_token_logps" not in chunk:
                # Two generation batches meet in this step; NaN says that the live policy sampled these rows.
                chunk["old_per_token_logps"] = torch.full_like(chunk["completion_mask"], torch.nan, dtype=torch.float)
            chunks.append(chunk)
        batch = join_batches(chunks, self.token_keys)
        batch["rows"] = torch.arange(len(batch["completion_mask"]), device=batch["completion_mask"].device)
        return batch

    def _token_budget(self, window: list[dict[str, Any]]) -> int:
        """Tokens of a pass: at most those of TRL's micro-batch."""
        if self.args.max_tokens_per_pass is not None:  # type: ignore[attr-defined]
            return self.args.max_tokens_per_pass  # type: ignore[attr-defined]
        rows = max(len(chunk["completion_mask"]) for chunk in window)
        return rows * max(chunk["prompt_ids"].size(1) + chunk["completion_ids"].size(1) for chunk in window)

    def _agree_on_passes(
        self, passes: list[list[int]], lengths: RowLengths
    ) -> tuple[list[list[int]], list[list[int]]]:
        """
        The same number of passes in every process, one at least, so that gradients are reduced together.

        A process that cannot split further fills up with passes of weight 0; without any pass the gradients would be
        None instead of 0, and the optimizer would leave out its momentum step.
        """
        count = max(len(passes), 1)
        if self.accelerator.num_processes > 1:  # type: ignore[attr-defined]
            counts: Any = self.accelerator.gather(torch.tensor([count], device=self.accelerator.device))  # type: ignore[attr-defined]
            count = int(counts.max())
        passes = split_to_count(passes, lengths, count)
        shortest = min(range(len(lengths.completion)), key=lambda row: lengths.prompt[row] + lengths.completion[row])
        return passes, [[shortest]] * (count - len(passes))

    def _chunks_of_later_steps(self) -> list[dict[str, Any]]:
        """Micro-batches that later steps use, sampled by the live policy, whose log-probs are not stored yet."""
        args: Any = self.args  # type: ignore[attr-defined]
        every = args.steps_per_generation * self.num_iterations  # type: ignore[attr-defined]
        done = self._step % every
        left = every - done if done else 0
        numbers = sorted({(self._step + ahead) % args.steps_per_generation for ahead in range(left)})
        chunks: list[dict[str, Any]] = [self._buffered_inputs[number] for number in numbers]  # type: ignore[attr-defined]
        return [chunk for chunk in chunks if "old_per_token_logps" not in chunk]

    def keep_logps(self, batch: dict[str, Any], per_token_logps: torch.Tensor) -> None:
        self._window_logps[batch["rows"], : per_token_logps.size(1)] = per_token_logps.float()

    def _hand_back_logps(self, chunks: list[dict[str, Any]], window: list[dict[str, Any]]) -> None:
        """Store the sampling log-probs, which the update's own passes gave, where later steps will look for them."""
        starts = itertools.accumulate((len(chunk["completion_mask"]) for chunk in window), initial=0)
        for start, chunk in zip(starts, window, strict=False):
            if any(chunk is other for other in chunks):
                rows, width = chunk["completion_mask"].shape
                chunk["old_per_token_logps"] = self._window_logps[start : start + rows, :width].clone()
        del self._window_logps
        self._score(chunks)

    def _score(self, chunks: list[dict[str, Any]]) -> None:
        """Log-probs under the live policy, for those rows of the chunks that need them and have none."""
        if not chunks:
            return
        batch = join_batches(chunks, self.token_keys)
        needs = self.needs_logps(batch)
        if "old_per_token_logps" in batch:
            needs = needs & batch["old_per_token_logps"].isnan().all(dim=1)
        logps = self._packed_logps(self.model, batch, needs.nonzero().squeeze(1).tolist(), self._token_budget(chunks))  # type: ignore[attr-defined]
        start = 0
        for chunk in chunks:
            rows, width = chunk["completion_mask"].shape
            fresh = logps[start : start + rows, :width]
            old = chunk.get("old_per_token_logps", torch.full_like(fresh, torch.nan))
            # What no pass gave is never read; it must not be NaN, which means "the live policy".
            chunk["old_per_token_logps"] = torch.where(old.isnan(), fresh, old)
            start += rows

    def _packed_logps(self, model: Any, batch: dict[str, Any], rows: list[int], budget: int) -> torch.Tensor:
        """(N, T) log-probs without gradient, by length; 0 for the other rows and for padding."""
        logps = torch.zeros_like(batch["completion_mask"], dtype=torch.float32)
        lengths = row_lengths(batch)
        keys = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")
        needed = {key: batch[key] for key in keys}
        # Not the wrapper of several processes: they may make different numbers of these passes.
        model = self.accelerator.unwrap_model(model)  # type: ignore[attr-defined]
        with torch.no_grad(), disable_gradient_checkpointing(model, self.args.gradient_checkpointing_kwargs):  # type: ignore[attr-defined]
            for taken_rows in plan_passes(lengths, rows, budget):
                taken = take_rows(needed, taken_rows, lengths, self.token_keys)
                width = taken["completion_ids"].size(1)
                values, _, _ = super()._get_per_token_logps_and_entropies(  # type: ignore[misc]
                    model,
                    torch.cat([taken["prompt_ids"], taken["completion_ids"]], dim=1),
                    torch.cat([taken["prompt_mask"], taken["completion_mask"]], dim=1),
                    width,
                )
                logps[torch.tensor(taken_rows, device=logps.device), :width] = values.float()
        return logps

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        # The parent names a batch size where it scores a whole generation batch, without gradient.
        if not self._packs or batch_size is None:
            return super()._get_per_token_logps_and_entropies(  # type: ignore[misc]
                model, input_ids, attention_mask, logits_to_keep, batch_size, **kwargs
            )
        if self._deferring:
            self._deferring = False
            return torch.zeros_like(input_ids[:, -logits_to_keep:], dtype=torch.float32), None, None
        prompt = input_ids.size(1) - logits_to_keep
        batch = {
            "prompt_ids": input_ids[:, :prompt],
            "prompt_mask": attention_mask[:, :prompt],
            "completion_ids": input_ids[:, prompt:],
            "completion_mask": attention_mask[:, prompt:],
        }
        rows = list(range(len(input_ids)))
        return self._packed_logps(model, batch, rows, batch_size * input_ids.size(1)), None, None

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        args: Any = self.args  # type: ignore[attr-defined]
        wants_old = args.gradient_accumulation_steps % (args.steps_per_generation * self.num_iterations) != 0  # type: ignore[attr-defined]
        corrects = self.use_vllm and self.vllm_importance_sampling_correction  # type: ignore[attr-defined]
        defers = (
            self._packs and self.defers_old_logps and wants_old and not corrects and self.model.training  # type: ignore[attr-defined]
        )
        self._deferring = defers
        output = super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        if defers:
            del output["old_per_token_logps"]
        return output
