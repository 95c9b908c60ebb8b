"""Rows that are drawn from a given optimizer step on, for trainers that derive from [`~trl.GRPOTrainer`]."""

import os
from collections.abc import Sequence
from typing import Any

import torch
from trl.trainer.utils import RepeatSampler

from ..data.source_spec import FROM_STEP
from ..errors import UserError
from ._samplers import CurriculumSampler
from ._success_rates import SuccessRates


_STATE_FILE = "late_rows.pt"


class FromStepSampler(CurriculumSampler):
    """
    Draws evenly from the rows whose step has come: [`CurriculumSampler`] with this step in place of the difficulty.

    Args:
        parent ([`~trl.trainer.utils.RepeatSampler`]):
            The sampler whose order is replaced.
        accumulation (`int`):
            Micro-steps of one optimizer step.
        starts (`Sequence[int]`):
            Optimizer step from which on each row may be drawn.

    Raises:
        UserError: There are fewer rows at step 0 than a generation batch has prompts.
    """

    def __init__(self, parent: RepeatSampler, accumulation: int, starts: Sequence[int]):
        rates = SuccessRates(parent.num_samples, decay=0.0)
        super().__init__(parent=parent, accumulation=accumulation, rates=rates, difficulties=starts, steps=0)
        self._pool_size = int(self.pool(0).sum())
        if self._pool_size < self.batch_size:
            raise UserError(
                f"from_step: a generation batch takes {self.batch_size} different prompts, and {self._pool_size} rows "
                "are there at step 0; give more rows an earlier step, or make the batch smaller"
            )

    def pool(self, update: int) -> torch.Tensor:
        return self.difficulties <= update

    def draw(self, update: int) -> list[int]:
        size = int(self.pool(update).sum())
        if size > self._pool_size:  # all rows begin a round together; in the old one mostly the new rows are left
            self._waiting[:] = True
            self._pool_size = size
        return super().draw(update)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "pool_size": self._pool_size}

    def load_state_dict(self, state: dict[str, Any], updates: int) -> None:
        super().load_state_dict(state, updates)
        self._pool_size = state["pool_size"]


class LateRows:
    """
    Mixin for subclasses of [`~trl.GRPOTrainer`]: the data's column `from_step` says when a row joins.

    A row is drawn for optimizer steps of at least this number, the first step being step 0. Data without the column is
    drawn in TRL's order. As with the other samplings of this package, an epoch is as many draws as the data has rows.
    Checkpoints hold the file `late_rows.pt`.
    """

    _late_rows: FromStepSampler | None = None

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        parent = super()._get_train_sampler(dataset)  # type: ignore[misc]
        args: Any = self.args  # type: ignore[attr-defined]
        rows = self.train_dataset if dataset is None else dataset  # type: ignore[attr-defined]
        if FROM_STEP not in (rows.column_names or ()):
            return parent
        if args.sampling != "uniform":
            raise UserError(f"sampling: `{args.sampling}` does not know `from_step`; write `sampling: uniform`")
        if not args.shuffle_dataset:
            raise UserError("shuffle_dataset: false keeps the order of the data, and `from_step` draws at random")
        self._late_rows = FromStepSampler(parent, args.gradient_accumulation_steps, rows[FROM_STEP])
        return self._late_rows

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)  # type: ignore[misc]
        # The state is the same in all processes.
        if self._late_rows is not None and self.args.should_save:  # type: ignore[attr-defined]
            torch.save(self._late_rows.state_dict(), os.path.join(output_dir, _STATE_FILE))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)  # type: ignore[misc]
        if checkpoint is None or self._late_rows is None:
            return
        path = os.path.join(checkpoint, _STATE_FILE)
        if not os.path.exists(path):
            raise FileNotFoundError(
                f"resume_from_checkpoint: {checkpoint} has no {_STATE_FILE}; it was written without rows of a later "
                "`from_step`. Resume with the data it was saved with."
            )
        state = torch.load(path, map_location="cpu", weights_only=True)
        self._late_rows.load_state_dict(state, self.state.global_step)  # type: ignore[attr-defined]
