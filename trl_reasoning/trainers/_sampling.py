"""Curriculum and prioritised sampling of prompts, for trainers that derive from [`~trl.GRPOTrainer`]."""

import math
import os
from collections.abc import Sequence
from typing import Any

import torch
from datasets import Dataset
from trl.trainer.utils import RepeatSampler

from ..data import read_difficulties
from ..errors import UserError, did_you_mean
from ..rewards import right_above
from ._samplers import (
    CurriculumSampler,
    EasyToHardSampler,
    PrioritizedSampler,
    PromptSampler,
    UniformThenHardSampler,
    updates_per_pass,
)
from ._success_rates import SuccessRates


# Added to the training rows, so that a rollout can be traced to its row.
ROW_COLUMN = "sampling_row"
_STATE_FILE = "sampling.pt"


def find_success_reward(wanted: str | None, names: Sequence[str]) -> str:
    """
    The reward function that `success_reward` means.

    Args:
        wanted (`str`, *optional*):
            A name, with or without `_reward` at its end; None means the first.
        names (`Sequence[str]`):
            Names of the reward functions, as they are logged.

    Raises:
        UserError: There is no such reward function.
    """
    if wanted is None:
        return names[0]
    for name in (wanted, f"{wanted}_reward"):
        if name in names:
            return name
    raise UserError(
        f"success_reward: `{wanted}` is not one of the reward functions ({', '.join(names)})."
        f"{did_you_mean(wanted, names)}"
    )


class PromptSampling:
    """
    Mixin for subclasses of [`~trl.GRPOTrainer`] whose configuration has [`PromptSamplingConfig`]'s settings.

    With `sampling="uniform"` nothing changes. Otherwise the order of TRL's sampler is replaced, each training row
    gets its number in the column `sampling_row` (reward functions see it, too), and success rates are counted from the
    gathered rewards, so that all processes draw the same rows. Checkpoints hold the file `sampling.pt` with rates,
    past draws and generator.

    Logged once a generation batch: `sampling/mean_success_rate` (over the rows with rollouts), `sampling/seen` (their
    share of the data), `sampling/difficulty` (mean over the batch) and, for a curriculum, `sampling/pool` (share of
    the data that is drawn from).
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.args.sampling != "uniform":  # type: ignore[attr-defined]
            self._prepare_sampling()

    def _prepare_sampling(self) -> None:
        args: Any = self.args  # type: ignore[attr-defined]
        dataset = self.train_dataset  # type: ignore[has-type]
        if not isinstance(dataset, Dataset):
            raise UserError(
                f"sampling: {args.sampling} draws rows by their number, which a {type(dataset).__name__} cannot give; "
                "load the data whole (streaming off), or write `sampling: uniform`"
            )
        prompts = args.generation_batch_size // args.num_generations
        if len(dataset) < prompts:
            raise UserError(
                f"sampling: a generation batch takes {prompts} different prompts and the data has {len(dataset)}; use "
                "more rows or a smaller batch"
            )
        names: list[str] = self.reward_func_names  # type: ignore[attr-defined]
        self._success_reward = find_success_reward(args.success_reward, names)
        function: Any = self.reward_funcs[names.index(self._success_reward)]  # type: ignore[attr-defined]
        given = args.success_threshold
        self._success_threshold: float = right_above(function) if given is None else given
        self._difficulties = None
        if args.difficulty_column is not None:
            self._difficulties = read_difficulties(dataset, args.difficulty_column)
        if args.curriculum == "uniform_then_hard":
            self._check_hard_rows(prompts)
        if ROW_COLUMN in dataset.column_names:
            dataset = dataset.remove_columns(ROW_COLUMN)
        self.train_dataset = dataset.add_column(ROW_COLUMN, list(range(len(dataset))))  # type: ignore[call-arg]

    def _check_hard_rows(self, prompts: int) -> None:
        """Settle from which difficulty on a row is hard, on the scale where more is harder."""
        args: Any = self.args  # type: ignore[attr-defined]
        ordered = sorted(self._harder_is_more())
        if args.curriculum_hard_threshold is None:
            count = max(math.ceil(args.curriculum_hard_fraction * len(ordered)), prompts)
            self._hard_from = ordered[-count]
            return
        sign = -1.0 if args.difficulty_reversed else 1.0
        self._hard_from = sign * args.curriculum_hard_threshold
        found = sum(difficulty >= self._hard_from for difficulty in ordered)
        if found < prompts:
            raise UserError(
                f"curriculum_hard_threshold: {found} rows are as hard as {args.curriculum_hard_threshold:g}, and a "
                f"generation batch takes {prompts} different prompts; choose a milder threshold"
            )

    def _harder_is_more(self) -> list[float]:
        sign = -1.0 if self.args.difficulty_reversed else 1.0  # type: ignore[attr-defined]
        return [sign * difficulty for difficulty in self._difficulties or ()]

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()  # type: ignore[misc]
        # With `remove_unused_columns` the loader keeps these columns alone.
        if ROW_COLUMN not in self._signature_columns:  # type: ignore[has-type]
            self._signature_columns = [*self._signature_columns, ROW_COLUMN]  # type: ignore[has-type]

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        parent = super()._get_train_sampler(dataset)  # type: ignore[misc]
        if self.args.sampling == "uniform":  # type: ignore[attr-defined]
            return parent
        self._prompt_sampler = self._make_sampler(parent)
        return self._prompt_sampler

    def _make_sampler(self, parent: RepeatSampler) -> PromptSampler:
        args: Any = self.args  # type: ignore[attr-defined]
        common: dict[str, Any] = {
            "parent": parent,
            "accumulation": args.gradient_accumulation_steps,
            "rates": SuccessRates(parent.num_samples, args.success_rate_decay),
        }
        if args.sampling == "prioritized":
            return PrioritizedSampler(**common, floor=args.priority_floor)
        steps = args.curriculum_steps
        if steps < 1:
            per_pass = updates_per_pass(parent, args.gradient_accumulation_steps)
            total = args.max_steps if args.max_steps > 0 else math.ceil(args.num_train_epochs * per_pass)
            steps = max(1, round(steps * total))
        common |= {"difficulties": self._harder_is_more(), "steps": int(steps)}
        if args.curriculum == "easy_to_hard":
            return EasyToHardSampler(**common, start_fraction=args.curriculum_start_fraction)
        return UniformThenHardSampler(**common, hard_from=self._hard_from)

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        if self.args.sampling != "uniform" and self.model.training:  # type: ignore[attr-defined]
            self._count_successes(inputs)
        return output

    def _count_successes(self, inputs: Any) -> None:
        device = self.accelerator.device  # type: ignore[attr-defined]
        local = torch.tensor([row[ROW_COLUMN] for row in inputs], device=device)
        rows = self.accelerator.gather(local).cpu()  # type: ignore[attr-defined]  # (N_global,)
        # The completions table holds the gathered rewards after all corrections, those of this batch last.
        table = self._logs["rewards"][self._success_reward]  # type: ignore[attr-defined]
        rewards = torch.tensor(list(table)[-len(rows) :])  # (N_global,)
        sampler = self._prompt_sampler
        sampler.rates.update(rows, rewards, self._success_threshold)

        seen = sampler.rates.seen
        metrics = {
            "mean_success_rate": sampler.rates.rates[seen].mean().item(),
            "seen": seen.double().mean().item(),
        }
        if self._difficulties is not None:
            metrics["difficulty"] = torch.tensor(self._difficulties, dtype=torch.float64)[rows].mean().item()
        if isinstance(sampler, CurriculumSampler):
            metrics["pool"] = sampler.pool(self.state.global_step).double().mean().item()  # type: ignore[attr-defined]
        for name, value in metrics.items():
            self._metrics["train"][f"sampling/{name}"].append(value)  # type: ignore[attr-defined]

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)  # type: ignore[misc]
        # The state is the same in all processes.
        if self.args.sampling != "uniform" and self.args.should_save:  # type: ignore[attr-defined]
            torch.save(self._prompt_sampler.state_dict(), os.path.join(output_dir, _STATE_FILE))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)  # type: ignore[misc]
        if checkpoint is None or self.args.sampling == "uniform":  # type: ignore[attr-defined]
            return
        path = os.path.join(checkpoint, _STATE_FILE)
        if not os.path.exists(path):
            raise FileNotFoundError(
                f"resume_from_checkpoint: {checkpoint} has no {_STATE_FILE}; it was written with `sampling: uniform` "
                "or by another trainer. Resume with the settings it was saved with."
            )
        state = torch.load(path, map_location="cpu", weights_only=True)
        self._prompt_sampler.load_state_dict(state, self.state.global_step)  # type: ignore[attr-defined]
