"""The value function in the optimizer, in checkpoints and out of sight of what takes the policy alone."""

from collections.abc import Callable
from typing import Any

import torch

from ._value import NAME, ValueFunction, load_value, save_value, without_value


class TrainedValue:
    """
    Mixin for subclasses of [`~trl.GRPOTrainer`] with a `value_function` that hangs on the policy.

    It may have its own learning rate. A checkpoint holds its weights beside the policy's; a saved model does not.
    """

    value_function: ValueFunction
    args: Any
    accelerator: Any
    model: Any

    def create_optimizer(self, *args: Any, **kwargs: Any) -> Any:
        """The parent's optimizer, with groups for the value function where it has its own learning rate."""
        optimizer = super().create_optimizer(*args, **kwargs)  # type: ignore[misc]
        rate = self.args.value_learning_rate
        if rate is None:
            return optimizer
        own = set(map(id, self.value_function.trained_parameters().values()))
        for group in list(optimizer.param_groups):
            moved = [parameter for parameter in group["params"] if id(parameter) in own]
            group["params"] = [parameter for parameter in group["params"] if id(parameter) not in own]
            if moved:
                optimizer.add_param_group({**group, "params": moved, "lr": rate})
        return optimizer

    def _generate(self, prompts: list) -> Any:
        # An inference engine takes the policy's weights by name; the value function's are not its own.
        with without_value(self.accelerator.unwrap_model(self.model)):
            return super()._generate(prompts)  # type: ignore[misc]

    def _save(self, output_dir: str | None = None, state_dict: dict | None = None) -> None:
        if state_dict is not None:
            state_dict = {name: weight for name, weight in state_dict.items() if not name.startswith(f"{NAME}.")}
        with without_value(self.accelerator.unwrap_model(self.model)):
            super()._save(output_dir, state_dict)  # type: ignore[misc]

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)  # type: ignore[misc]
        if self.args.should_save:
            save_value(self.value_function, output_dir)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        with without_value(self.accelerator.unwrap_model(self.model)):
            super()._load_from_checkpoint(resume_from_checkpoint, model)  # type: ignore[misc]
        load_value(self.value_function, resume_from_checkpoint)


def rollout_statistics(
    mask: torch.Tensor,
    rewards: torch.Tensor,
    values: torch.Tensor,
    returns: torch.Tensor,
    kl: torch.Tensor,
    reduce: Callable[[torch.Tensor], torch.Tensor],
) -> dict[str, float]:
    """
    What a rollout looked like, over all processes.

    Args:
        mask, rewards, values, returns, kl (`torch.Tensor`):
            (N, T) of this process.
        reduce (`Callable`):
            Adds a vector of sums up over the processes.

    Returns:
        `dict[str, float]`: `objective/kl` and `objective/shaped_reward`, summed over a row's tokens and averaged over
        rows; `returns`, averaged over tokens; `explained_variance`, 1 - Var(R - V) / Var(R) over tokens.
    """
    weight = mask.double()
    gaps, returns = (returns - values).double(), returns.double()
    terms = (weight, kl * weight, rewards * weight, returns * weight, returns**2 * weight, gaps * weight)
    sums = [(mask != 0).any(dim=1).sum(), *(term.sum() for term in (*terms, gaps**2 * weight))]
    totals = reduce(torch.stack([value.double() for value in sums])).tolist()
    rows, tokens = max(totals[0], 1.0), max(totals[1], 1.0)
    spread = totals[5] / tokens - (totals[4] / tokens) ** 2
    unexplained = totals[7] / tokens - (totals[6] / tokens) ** 2
    return {
        "objective/kl": totals[2] / rows,
        "objective/shaped_reward": totals[3] / rows,
        "returns": totals[4] / tokens,
        "explained_variance": 1.0 - unexplained / spread if spread > 1e-12 else float("nan"),
    }
