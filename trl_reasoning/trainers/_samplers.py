"""Which prompts a generation batch gets: a curriculum by difficulty, and priorities by success rate."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from trl.trainer.utils import RepeatSampler

from ..errors import UserError
from ._success_rates import SuccessRates, draw_distinct, priorities


def updates_per_pass(sampler: RepeatSampler, accumulation: int) -> int:
    """Optimizer steps of one pass, of `accumulation` micro-steps each; the last one may have fewer."""
    micro_steps = sampler.num_samples // sampler.batch_size * sampler.repeat_count
    return math.ceil(micro_steps / accumulation)


class PromptSampler(RepeatSampler):
    """
    [`~trl.trainer.utils.RepeatSampler`] that draws the prompts of a generation batch when the batch is asked for.

    The structure stays: each prompt `mini_repeat_count` times in a row, each batch of `batch_size` prompts
    `repeat_count` times, and as many batches a pass as the data has room for. What a pass has drawn is kept: a resumed
    run replays its first batches, which are not drawn anew.

    Args:
        parent ([`~trl.trainer.utils.RepeatSampler`]):
            The sampler whose order is replaced.
        accumulation (`int`):
            Micro-steps of one optimizer step.
        rates ([`SuccessRates`]):
            Success rates, updated by the trainer.
    """

    def __init__(self, parent: RepeatSampler, accumulation: int, rates: SuccessRates):
        super().__init__(
            data_source=parent.data_source,
            mini_repeat_count=parent.mini_repeat_count,
            batch_size=parent.batch_size,
            repeat_count=parent.repeat_count,
            seed=parent.seed,
        )
        self.accumulation = accumulation
        self.rates = rates
        self.passes = 0  # that were begun
        self.draws: list[list[int]] = []  # of the current pass
        self._replays = False

    def draw(self, update: int) -> list[int]:
        """`batch_size` different rows for the generation batch whose first optimizer step is `update`."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[int]:
        if not self._replays:
            self.passes += 1
            self.draws = []
        self._replays = False
        first_update = (self.passes - 1) * updates_per_pass(self, self.accumulation)
        for window in range(self.num_samples // self.batch_size):
            if window == len(self.draws):
                self.draws.append(self.draw(first_update + window * self.repeat_count // self.accumulation))
            for _ in range(self.repeat_count):
                for row in self.draws[window]:
                    for _ in range(self.mini_repeat_count):
                        yield row

    def state_dict(self) -> dict[str, Any]:
        """Everything that later draws depend on, as tensors and numbers."""
        return {
            "sampler": type(self).__name__,
            "rows": self.num_samples,
            "batch_size": self.batch_size,
            "passes": self.passes,
            "draws": torch.tensor(self.draws, dtype=torch.long).reshape(-1, self.batch_size),
            "generator": self.generator.get_state(),
            "successes": self.rates.successes,
            "trials": self.rates.trials,
        }

    def load_state_dict(self, state: dict[str, Any], updates: int) -> None:
        """
        Go on from a state.

        Args:
            state (`dict`):
                From `state_dict`.
            updates (`int`):
                Optimizer steps that were made; where they end a pass, the next one begins.

        Raises:
            UserError: The state belongs to other data, another batch size or another sampling.
        """
        own = self.state_dict()
        for key in ("sampler", "rows", "batch_size"):
            if state[key] != own[key]:
                raise UserError(
                    f"resume_from_checkpoint: its sampling has {key} {state[key]}, and this run has {own[key]}; "
                    "resume with the same data and settings"
                )
        self.passes = state["passes"]
        self.draws = state["draws"].tolist()
        self._replays = self.passes > updates // updates_per_pass(self, self.accumulation)
        self.generator.set_state(state["generator"])
        self.rates.successes, self.rates.trials = state["successes"], state["trials"]


class PrioritizedSampler(PromptSampler):
    """Draws rows with probability proportional to 1 - success rate, see [`priorities`]; `floor` as there."""

    def __init__(self, *args: Any, floor: float, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.floor = floor

    def draw(self, update: int) -> list[int]:
        return draw_distinct(priorities(self.rates.rates, self.floor), self.batch_size, self.generator)


class CurriculumSampler(PromptSampler):
    """
    Draws evenly from a pool of rows that depends on the optimizer step.

    A row of the pool is drawn again once all others were: with the whole data as the pool, this is a shuffle.

    Args:
        difficulties (`Sequence[float]`):
            One finite number a row; more is harder.
        steps (`int`):
            Optimizer steps of the first phase.
    """

    def __init__(self, *args: Any, difficulties: Sequence[float], steps: int, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.steps = steps
        self.difficulties = torch.tensor(difficulties, dtype=torch.float64)  # (R,)
        self._waiting = torch.ones(self.num_samples, dtype=torch.bool)  # (R,) rows not drawn in this round

    def pool(self, update: int) -> torch.Tensor:
        """Whether each row may be drawn for optimizer step `update`, (R,)."""
        raise NotImplementedError

    def draw(self, update: int) -> list[int]:
        pool = self.pool(update)
        drawn = self._some(pool & self._waiting, self.batch_size)
        self._waiting[drawn] = False
        if len(drawn) < self.batch_size:  # the round is over; rows of this batch stay for the next one
            self._waiting[pool] = True
            others = pool.clone()
            others[drawn] = False
            first = self._some(others, self.batch_size - len(drawn))
            self._waiting[first] = False
            drawn = torch.cat([drawn, first])
        return drawn.tolist()

    def _some(self, candidates: torch.Tensor, count: int) -> torch.Tensor:
        rows = candidates.nonzero().squeeze(1)
        return rows[torch.randperm(len(rows), generator=self.generator)[:count]]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "waiting": self._waiting}

    def load_state_dict(self, state: dict[str, Any], updates: int) -> None:
        super().load_state_dict(state, updates)
        self._waiting = state["waiting"]


class EasyToHardSampler(CurriculumSampler):
    """
    [`CurriculumSampler`] whose pool grows from the easiest rows to the whole data.

    Args:
        start_fraction (`float`):
            Share of the data in the pool at step 0, at least one batch; it grows evenly to 1 within `steps`. Rows of
            equal difficulty enter in a random order.
    """

    def __init__(self, *args: Any, start_fraction: float, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.start_fraction = start_fraction
        shuffled = torch.randperm(self.num_samples, generator=self.generator)
        easiest_first = shuffled[self.difficulties[shuffled].argsort(stable=True)]
        self._ranks = easiest_first.argsort()  # (R,) place of each row in that order

    def pool(self, update: int) -> torch.Tensor:
        share = self.start_fraction + (1 - self.start_fraction) * min(update / self.steps, 1.0)
        return self._ranks < max(math.ceil(share * self.num_samples), self.batch_size)


class UniformThenHardSampler(CurriculumSampler):
    """
    [`CurriculumSampler`] whose pool is the whole data for `steps`, and from then on the hard rows alone.

    Args:
        hard_from (`float`):
            Least difficulty of a hard row.
    """

    def __init__(self, *args: Any, hard_from: float, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.hard_from = hard_from

    def pool(self, update: int) -> torch.Tensor:
        return torch.ones_like(self._waiting) if update < self.steps else self.difficulties >= self.hard_from
