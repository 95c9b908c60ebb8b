"""The update phase without waste: rows by length, and no pass for rows that have no gradient."""

import contextlib
import itertools
import time
from typing import Any

import torch
from trl import GRPOTrainer

from ._packing import RowLengths, join_batches, plan_passes, row_lengths, split_to_count, take_rows
from ._scoring import PackedScoring


class PackedUpdate(PackedScoring):
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

    def __init__(self, *args: Any, **kwargs: Any):
        self._window: list[dict[str, Any]] = []
        self._window_seconds = 0.0
        super().__init__(*args, **kwargs)

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        """Collect a micro-batch; at the end of the accumulation window, pass the rows of all of them."""
        if not self._packs:
            return super().training_step(model, inputs, num_items_in_batch)  # type: ignore[misc]
        start = time.perf_counter()
        model.train()
        self._window.append(self._prepare_inputs(inputs))  # generates where a new generation batch begins
        self._step += 1
        loss = torch.zeros((), device=self.accelerator.device)  # type: ignore[attr-defined]
        if self.accelerator.gradient_state.sync_gradients:  # type: ignore[attr-defined]
            # The last ones, since a run that was broken off may have left some of its own.
            window, self._window = self._window[-self.current_gradient_accumulation_steps :], []  # type: ignore[attr-defined]
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
                taken |= {key: torch.zeros_like(taken[key]) for key in ("row_weights", "entropy_row_weights")}
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
        """Remember what a pass gave, for later steps on the same rows."""
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
