"""Gates before rewards, for trainers that derive from [`~trl.GRPOTrainer`]."""

from dataclasses import dataclass, field
from typing import Any

import torch

from ..errors import UserError
from ..rewards.combine import gate_rewards, read_gates


@dataclass
class RewardGatesConfig:
    """
    Rewards that count only where another one reaches a value, for configurations that derive from
    [`~trl.GRPOConfig`] (list this class first).

    The rules of combination of a run's rewards are three: their weighted sum (`reward_weights`), gates, and, in `grpo`
    and `grpo_ps`, `multi_objective_aggregation: normalize_then_sum`, which gives each reward mean 0 and standard
    deviation 1 within its group before the weighted sum. Gates come first, and a `None` takes no part in any of them.

    Args:
        reward_gates (`dict[str, Any]`, *optional*):
            For the name of a reward the name of the one that opens its gate, as in `{format: accuracy}`: a right form
            is then worth nothing on a wrong answer. In full `{format: {reward: accuracy, at_least: 1.0, otherwise:
            0.0}}`, see [`~trl_reasoning.rewards.combine.read_gates`].
    """

    reward_gates: dict[str, Any] | None = field(
        default=None, metadata={"help": "For a reward's name the one that has to reach a value for it to count."}
    )


class RewardGates:
    """
    Mixin for subclasses of [`~trl.GRPOTrainer`] with a [`RewardGatesConfig`].

    The logged `rewards/<name>/mean` is that of the values that count, so that `reward` is their weighted sum. Of a
    reward with a gate the log also has `rewards/<name>/ungated_mean` and `rewards/<name>/gate_open`, the share of the
    rows with an open gate among those where both rewards apply.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        gates = self.args.reward_gates or {}  # type: ignore[attr-defined]
        names: list[str] = self.reward_func_names  # type: ignore[attr-defined]
        try:
            self._gates = read_gates(gates, dict(zip(names, self.reward_funcs, strict=True)))  # type: ignore[attr-defined]
        except ValueError as error:
            raise UserError(str(error)) from error

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> torch.Tensor:
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)  # type: ignore[misc]
        if not any(self._gates):
            return rewards
        columns = [[None if value != value else value for value in column] for column in rewards.T.tolist()]
        gated = gate_rewards(columns, self._gates)
        metrics = self._metrics["train" if self.model.training else "eval"]  # type: ignore[attr-defined]
        for place, gate in enumerate(self._gates):
            if gate is None:
                continue
            name = self.reward_func_names[place]  # type: ignore[attr-defined]
            both = [
                (value, opener)
                for value, opener in zip(columns[place], gated[gate.reward], strict=True)
                if value is not None and opener is not None
            ]
            ungated = [value for value, _ in both]
            is_open = [float(gate.is_open(opener)) for _, opener in both]
            for key, values in (("ungated_mean", ungated), ("gate_open", is_open)):
                metrics[f"rewards/{name}/{key}"].append(sum(values) / len(values) if values else torch.nan)
        filled = [[torch.nan if value is None else value for value in column] for column in gated]
        return torch.tensor(filled, dtype=rewards.dtype, device=rewards.device).T
