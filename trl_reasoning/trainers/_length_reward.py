"""Kimi k1.5's length reward in the policy trainers: whole groups across processes, and when its weight comes on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ..errors import UserError
from ..rewards import accuracy_gap, check_length_weight, kimi_length_rewards, length_judge


_HELDOUT = "heldout/accuracy"
# Why the length reward is not normalised within its group.
NOT_NORMALIZED = (
    "normalize_then_sum gives kimi_length the same spread as accuracy, so that no weight of it is sure to keep a "
    "short wrong answer below a long right one; write sum_then_normalize, or remove kimi_length"
)


@dataclass
class LengthRewardConfig:
    """
    When the length reward `kimi_length` comes on, for configurations that derive from [`~trl.GRPOConfig`] (list this
    class first).

    Kimi k1.5 ([paper](https://huggingface.co/papers/2501.12599), Section 2.3.3) trains without it first and then with
    a constant weight to the end; neither the weight nor the step is published. Without one of these keys it is on
    from the start. The weight of a generation batch is fixed when the batch is scored.

    Args:
        length_reward_start_step (`int`, *optional*):
            Its weight is 0 in generation batches that start before this optimizer step.
        length_reward_patience (`int`, *optional*):
            Its weight is 0 until held-out accuracy stops rising: until so many measurements in a row have brought no
            new best. Needs held-out measurements (`heldout` in a recipe, [`HeldoutCallback`] in Python); the first
            one sets the best to beat.
        length_reward_min_gain (`float`, *optional*, defaults to `0.0`):
            Accuracy in [0, 1] by which a measurement has to exceed the best to count as a rise; held-out accuracy is
            noisy, so a bare 0 may wait long.
    """

    length_reward_start_step: int | None = field(
        default=None, metadata={"help": "Optimizer step from which on the length reward has its weight; before, 0."}
    )
    length_reward_patience: int | None = field(
        default=None,
        metadata={"help": "Held-out measurements without a new best after which the length reward comes on."},
    )
    length_reward_min_gain: float = field(
        default=0.0, metadata={"help": "Held-out accuracy by which a measurement must beat the best to be a rise."}
    )

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]
        for key in ("length_reward_start_step", "length_reward_patience"):
            value = getattr(self, key)
            if value is not None and value < 1:
                raise ValueError(f"{key}: expected at least 1, got {value}; without the key it is on from the start")
        if self.length_reward_start_step is not None and self.length_reward_patience is not None:
            raise ValueError("length_reward_start_step: set together with length_reward_patience; keep one of the two")
        if not 0.0 <= self.length_reward_min_gain < 1.0:
            raise ValueError(
                f"length_reward_min_gain: expected an accuracy in [0, 1), got {self.length_reward_min_gain}"
            )
        if self.length_reward_min_gain and self.length_reward_patience is None:
            raise ValueError("length_reward_min_gain: read with length_reward_patience alone; set that, or remove it")


class LengthRewards:
    """
    Mixin for subclasses of [`~trl.GRPOTrainer`] with a [`LengthRewardConfig`].

    A length reward compares the completions of one problem, and a group may be spread over several processes. So each
    process judges its own rows, and the groups are put together once the judgements are gathered. The schedule reads
    the trainer's log history, which is part of every checkpoint, so that a resumed run switches where the
    uninterrupted one would have.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        # The parent keeps the caller's list, which may serve another trainer, too.
        functions: list[Any] = list(self.reward_funcs)  # type: ignore[has-type]
        self.reward_funcs = functions
        weights: list[float] = self.reward_weights.tolist()  # type: ignore[attr-defined]
        names: list[str] = self.reward_func_names  # type: ignore[attr-defined]
        gaps = {
            name: weight * accuracy_gap(reward) for name, weight, reward in zip(names, weights, functions, strict=True)
        }
        self._length_weights: dict[int, float] = {}  # column of the rewards: weight
        for column, reward in enumerate(functions):
            judge = length_judge(reward)
            if judge is not None:
                if self.num_generations == 1:  # type: ignore[attr-defined]
                    raise UserError(
                        "num_generations: kimi_length compares the completions of one prompt, and with 1 it is always "
                        "0; sample 2 or more, or remove the reward"
                    )
                check_length_weight(weights[column], gaps.get("accuracy_reward", 1.0))
                if self.multi_objective_aggregation == "normalize_then_sum":  # type: ignore[attr-defined]
                    raise UserError(f"multi_objective_aggregation: {NOT_NORMALIZED}")
                self._length_weights[column] = weights[column]
                functions[column] = judge
        for key in ("length_reward_start_step", "length_reward_patience"):
            if getattr(self.args, key) is not None and not self._length_weights:  # type: ignore[attr-defined]
                raise UserError(f"{key}: there is no length reward to switch on; add kimi_length to the rewards")

    def is_length_reward_on(self) -> bool:
        """Whether the length reward has its weight in the generation batch that is scored now."""
        args: Any = self.args  # type: ignore[attr-defined]
        state: Any = self.state  # type: ignore[attr-defined]
        if args.length_reward_start_step is not None:
            return state.global_step >= args.length_reward_start_step
        if args.length_reward_patience is not None:
            return has_stopped_rising(state.log_history, args.length_reward_patience, args.length_reward_min_gain)
        return True

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> torch.Tensor:
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)  # type: ignore[misc]
        if not self._length_weights:
            return rewards
        local = torch.tensor([len(ids) for ids in completion_ids_list], device=rewards.device)
        lengths: list[int] = self.accelerator.gather(local).tolist()  # type: ignore[attr-defined]  # (N_global,)
        is_training = self.model.training  # type: ignore[attr-defined]
        size: int = self.num_generations if is_training else self.num_generations_eval  # type: ignore[attr-defined]
        is_on = self.is_length_reward_on()
        for column, weight in self._length_weights.items():
            judged = rewards[:, column].tolist()
            scores: list[float | None] = []
            for start in range(0, len(lengths), size):
                rows = slice(start, start + size)
                right = [None if value != value else value > 0 for value in judged[rows]]  # NaN is not applicable
                scores += kimi_length_rewards(lengths[rows], right)
            filled = [torch.nan if score is None else score for score in scores]
            rewards[:, column] = torch.tensor(filled, dtype=rewards.dtype, device=rewards.device)
            self.reward_weights[column] = weight if is_on else 0.0  # type: ignore[attr-defined]
            self._metrics["train" if is_training else "eval"]["length_reward/weight"].append(weight if is_on else 0.0)  # type: ignore[attr-defined]
        return rewards


def has_stopped_rising(history: Iterable[Mapping[str, Any]], patience: int, min_gain: float = 0.0) -> bool:
    """
    Whether held-out accuracy has gone `patience` measurements in a row without a new best at any time so far.

    Args:
        history (`Iterable[Mapping[str, Any]]`):
            The trainer's logs in order; those with `heldout/accuracy` are measurements.
        patience (`int`):
            Measurements without a rise.
        min_gain (`float`, *optional*, defaults to `0.0`):
            What a measurement must exceed the best by.

    Returns:
        `bool`: once true for a history, true for every longer one.

    Example:

    ```python
    >>> history = [{"heldout/accuracy": value} for value in (0.5, 0.7, 0.69, 0.7)]
    >>> has_stopped_rising(history, 2), has_stopped_rising(history, 3), has_stopped_rising(history[:3], 2)
    (True, False, False)

    ```
    """
    best, waited = None, 0
    for accuracy in (log[_HELDOUT] for log in history if _HELDOUT in log):
        if best is None or accuracy > best + min_gain:
            best, waited = accuracy, 0
            continue
        waited += 1
        if waited >= patience:
            return True
    return False
