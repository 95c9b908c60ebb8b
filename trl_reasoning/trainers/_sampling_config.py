"""The settings of `sampling`: which prompts a policy method trains on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import did_you_mean


SAMPLINGS = ("uniform", "curriculum", "prioritized")
CURRICULA = ("easy_to_hard", "uniform_then_hard")
# Keys that only some samplings read, with the values that stand for None there.
_READ_BY: dict[str, tuple[tuple[str, ...], Any]] = {
    "difficulty_column": (("curriculum", "prioritized"), None),
    "curriculum": (("curriculum",), "easy_to_hard"),
    "curriculum_steps": (("curriculum",), 0.5),
    "curriculum_start_fraction": (("curriculum",), None),
    "curriculum_hard_fraction": (("curriculum",), None),
    "curriculum_hard_threshold": (("curriculum",), None),
    "success_reward": (("curriculum", "prioritized"), None),
    "success_threshold": (("curriculum", "prioritized"), None),
    "success_rate_decay": (("curriculum", "prioritized"), 0.5),
    "priority_floor": (("prioritized",), 0.0),
}


@dataclass
class PromptSamplingConfig:
    r"""
    Settings of `sampling`, for configurations that derive from [`~trl.GRPOConfig`] (list this class first).

    `curriculum` and `prioritized` are the sampling strategies of Kimi k1.5
    ([paper](https://huggingface.co/papers/2501.12599), Section 2.3.4). Both decide on the prompts of a generation
    batch when it is loaded, which is up to one generation batch before it is used; with `dataloader_num_workers`
    above 0, a further `dataloader_num_workers * dataloader_prefetch_factor` micro-steps. A batch never holds a row
    twice. An epoch is as many draws as the data has rows, not each row once.

    Args:
        sampling (`str`, *optional*, defaults to `"uniform"`):
            `"uniform"`: TRL's order, a shuffle an epoch. `"curriculum"`: by difficulty, see `curriculum`.
            `"prioritized"`: a row is drawn with probability proportional to 1 minus its success rate in the rollouts
            so far (0 where it has none); evenly where all rows always succeed.
        difficulty_column (`str`, *optional*):
            Column of the data with one number a row. Needed by `sampling="curriculum"`; with `"prioritized"` its mean
            over the drawn prompts is logged.
        difficulty_reversed (`bool`, *optional*, defaults to `False`):
            Whether larger numbers are easier, as in a column of pass rates.
        curriculum (`str`, *optional*, defaults to `"easy_to_hard"`):
            `"easy_to_hard"`: drawn evenly from the easiest `curriculum_start_fraction` of the rows at step 0, a share
            that grows evenly to all rows within `curriculum_steps`. `"uniform_then_hard"`: from all rows, and after
            `curriculum_steps` from the hard rows alone. A row comes again once all others of the pool have come, so
            that rows which enter the pool late come before those that were drawn already.
        curriculum_steps (`float`, *optional*, defaults to `0.5`):
            Length of that phase in optimizer steps, or below 1 as a share of the run. A share refers to the run as it
            is set up: resumed with more `max_steps`, it ends later.
        curriculum_start_fraction (`float`, *optional*, defaults to `0.25`):
            For `"easy_to_hard"`: share of the rows at step 0, at least one generation batch.
        curriculum_hard_fraction (`float`, *optional*, defaults to `0.5`):
            For `"uniform_then_hard"`: share of the rows that count as hard. Rows as hard as the easiest of them count,
            too.
        curriculum_hard_threshold (`float`, *optional*):
            For `"uniform_then_hard"`, instead of the share: rows of at least this difficulty are hard (of at most
            this value with `difficulty_reversed`).
        success_reward (`str`, *optional*):
            Reward function that decides on success, by its name; by default the first.
        success_threshold (`float`, *optional*):
            A reward above it is a success; by default 0.5, or the middle between right and wrong of a reward that has
            its own values for these (`accuracy`, `cosine_length`). Rewards that do not apply (`None`) are not counted.
        success_rate_decay (`float`, *optional*, defaults to `0.5`):
            Weight of a row's earlier rollouts each time it is met again: 1 for the running mean over all, 0 for the
            last ones alone. Below 1, the rate follows the policy as it improves.
        priority_floor (`float`, *optional*, defaults to `0.0`):
            Least weight of a row in prioritised sampling. With 0, as in the paper, a row whose success rate is 1 is
            not met again while others are below 1, so that forgetting it goes unnoticed.
    """

    sampling: str = field(
        default="uniform", metadata={"help": "How prompts are drawn from the data.", "choices": list(SAMPLINGS)}
    )
    difficulty_column: str | None = field(
        default=None, metadata={"help": "Column with one number a row, for `sampling: curriculum`."}
    )
    difficulty_reversed: bool = field(
        default=False, metadata={"help": "Whether larger numbers are easier, as in a column of pass rates."}
    )
    curriculum: str | None = field(
        default=None, metadata={"help": "Kind of curriculum; `easy_to_hard`.", "choices": list(CURRICULA)}
    )
    curriculum_steps: float | None = field(
        default=None, metadata={"help": "Steps of the curriculum's first phase; below 1 a share of the run (0.5)."}
    )
    curriculum_start_fraction: float | None = field(
        default=None, metadata={"help": "Share of the rows, the easiest, that `easy_to_hard` starts with (0.25)."}
    )
    curriculum_hard_fraction: float | None = field(
        default=None, metadata={"help": "Share of the rows that `uniform_then_hard` takes as hard (0.5)."}
    )
    curriculum_hard_threshold: float | None = field(
        default=None, metadata={"help": "Difficulty from which a row is hard, instead of a share."}
    )
    success_reward: str | None = field(
        default=None, metadata={"help": "Reward function that decides on success; the first."}
    )
    success_threshold: float | None = field(
        default=None, metadata={"help": "A reward above it is a success (halfway)."}
    )
    success_rate_decay: float | None = field(
        default=None, metadata={"help": "Weight of earlier rollouts of a row; 1 for the mean over all (0.5)."}
    )
    priority_floor: float | None = field(
        default=None, metadata={"help": "Least weight of a row in prioritised sampling (0)."}
    )

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]
        _check_choice("sampling", self.sampling, SAMPLINGS)
        for key, (samplings, default) in _READ_BY.items():
            if getattr(self, key) is not None and self.sampling not in samplings:
                readers = " or ".join(f"`sampling: {name}`" for name in samplings)
                raise ValueError(
                    f"{key}: read with {readers} only, and this is `sampling: {self.sampling}`; remove it"
                )
            if getattr(self, key) is None and self.sampling in samplings:
                setattr(self, key, default)
        if self.difficulty_reversed and self.difficulty_column is None:
            raise ValueError("difficulty_reversed: there is no `difficulty_column` to reverse; name one or remove it")
        if self.sampling != "uniform" and not self.shuffle_dataset:  # type: ignore[attr-defined]
            raise ValueError(
                f"shuffle_dataset: false keeps the order of the data, and `sampling: {self.sampling}` draws at "
                "random; remove one of the two"
            )
        if self.sampling == "curriculum":
            self._check_curriculum()
        if self.sampling != "uniform":
            _check_share("success_rate_decay", self.success_rate_decay)
            _check_share("priority_floor", self.priority_floor)

    def _check_curriculum(self) -> None:
        _check_choice("curriculum", self.curriculum, CURRICULA)
        if self.difficulty_column is None:
            raise ValueError(
                "difficulty_column: missing; `sampling: curriculum` needs the data's column of difficulties"
            )
        steps = self.curriculum_steps
        if steps is None or steps <= 0 or (steps >= 1 and steps != int(steps)):
            raise ValueError(
                f"curriculum_steps: expected a number of steps, or a share of the run between 0 and 1, got {steps}"
            )
        is_growing = self.curriculum == "easy_to_hard"
        unread = ("curriculum_hard_fraction", "curriculum_hard_threshold")
        for key in unread if is_growing else ("curriculum_start_fraction",):
            if getattr(self, key) is not None:
                raise ValueError(f"{key}: not read with `curriculum: {self.curriculum}`; remove it")
        if is_growing:
            if self.curriculum_start_fraction is None:
                self.curriculum_start_fraction = 0.25
            _check_share("curriculum_start_fraction", self.curriculum_start_fraction)
        elif self.curriculum_hard_threshold is None:
            if self.curriculum_hard_fraction is None:
                self.curriculum_hard_fraction = 0.5
            _check_share("curriculum_hard_fraction", self.curriculum_hard_fraction)
        elif self.curriculum_hard_fraction is not None:
            raise ValueError(
                "curriculum_hard_threshold: set together with `curriculum_hard_fraction`; keep one of the two"
            )


def _check_choice(key: str, value: str | None, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"{key}: {value!r} is not one of {list(choices)}.{did_you_mean(str(value), choices)}")


def _check_share(key: str, value: float | None) -> None:
    if value is not None and not 0 <= value <= 1:
        raise ValueError(f"{key}: expected a share from 0 to 1, got {value}")
