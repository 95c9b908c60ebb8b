"""Exact resume of trainers that generate: prompt order, position in the generation window, and buffered rollouts."""

import os
from typing import Any

import torch
from trl.trainer.utils import RepeatSampler


class ResumableRepeatSampler(RepeatSampler):
    """
    TRL's sampler with the orders of finished epochs skipped on resume.

    The parent draws one permutation per pass from a generator that starts at the seed, so that a resumed run, whose
    first pass belongs to a later epoch, would replay the first epoch's order.
    """

    def skip_epochs(self, epochs: int) -> None:
        """Draw and discard the permutations of `epochs` finished passes."""
        if self.shuffle:
            for _ in range(epochs):
                torch.randperm(self.num_samples, generator=self.generator)


class ResumableRollouts:
    """
    Mixin for TRL's trainers that generate (GRPO, distillation): a resumed run goes on as the uninterrupted one would
    have.

    A checkpoint gets one `rollouts_<rank>.pt` per process with the micro-step counter and the buffered generation
    batch, since a checkpoint may fall inside a generation window (`num_iterations > 1`, or more steps per generation
    than per accumulation), and TRL would generate anew there.
    """

    _train_sampler: ResumableRepeatSampler | None = None  # stays None with an iterable dataset, which is not indexed

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        parent = super()._get_train_sampler(dataset)  # type: ignore[misc]
        self._train_sampler = ResumableRepeatSampler(
            data_source=parent.data_source,
            mini_repeat_count=parent.mini_repeat_count,
            batch_size=parent.batch_size,
            repeat_count=parent.repeat_count,
            shuffle=parent.shuffle,
            seed=parent.seed,
        )
        return self._train_sampler

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)  # type: ignore[misc]
        state = {"step": self._step, "buffered_inputs": self._buffered_inputs}
        torch.save(state, self._rollouts_file(output_dir))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)  # type: ignore[misc]
        if checkpoint is None:
            return
        path = self._rollouts_file(checkpoint)
        if not os.path.exists(path):
            raise FileNotFoundError(
                f"resume_from_checkpoint: {checkpoint} has no {os.path.basename(path)}. It was written by another "
                "trainer or with another number of processes; resume with the number of processes it was saved with."
            )
        device = self.accelerator.device  # type: ignore[attr-defined]
        # Several processes on one CPU call it cpu:0, which torch cannot load to.
        state = torch.load(path, map_location="cpu" if device.type == "cpu" else device, weights_only=True)
        self._step = state["step"]
        self._buffered_inputs = state["buffered_inputs"]
        # The tiny addend keeps a whole epoch that was stored as 1.9999999 whole.
        if self._train_sampler is not None:
            self._train_sampler.skip_epochs(int(self.state.epoch + 1e-6))  # type: ignore[attr-defined]

    def _rollouts_file(self, folder: str) -> str:
        return os.path.join(folder, f"rollouts_{self.args.process_index}.pt")  # type: ignore[attr-defined]
