"""What trainers that derive from [`~trl.GRPOTrainer`] log about tricked rewards: verdicts, thoughts, sampled texts."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from ..rewards import right_above
from ..rewards.routing import unrouted
from ..rewards.watch import NO_THOUGHT, THOUGHT_ASKED, verdict_shares
from ..text import THINK_CLOSE, THINK_OPEN, prompt_opens_thought, split_thought
from ._hacking import ACTIONS, HackingCallback


_STATUSES = ("right", "wrong", "unparsed", "timed_out", "unreadable_gold")


@dataclass
class RewardWatchConfig:
    """
    The watch for reward hacking, for configurations that derive from [`~trl.GRPOConfig`] (list this class first).

    Args:
        reward_watch (`"off"`, `"warn"` or `"stop"`, *optional*, defaults to `"warn"`):
            What happens when the training reward rises while held-out accuracy falls, or when answers appear without
            a thought: nothing, a warning, or a checkpoint and the end of the run. See
            [`~trl_reasoning.rewards.watch.HackingSigns`] for what counts as a sign. `"off"` also leaves out what the
            watch logs and the file `reward_samples.jsonl`.
    """

    reward_watch: str = field(
        default="warn", metadata={"help": "What happens at a sign of reward hacking.", "choices": list(ACTIONS)}
    )

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]
        if self.reward_watch not in ACTIONS:
            raise ValueError(f"reward_watch: expected one of {list(ACTIONS)}, got {self.reward_watch!r}")


class RewardWatch:
    """
    Mixin for subclasses of [`~trl.GRPOTrainer`] with a [`RewardWatchConfig`].

    Logs once a generation batch, over all processes:

    - `rewards/<name>/skipped`, the share of completions for which a reward is `None`; for a reward that judges answers
      also `right`, `wrong`, `unparsed` and `timed_out`; the five add up to 1;
    - `thoughts/missing`, the share with an answer and an empty or missing thought, of the completions whose prompt
      leaves room for a thought (one that ends behind `</think>`, as for a mode without thinking, does not);
    - `thoughts/asked`, the share of these completions that are asked for a thought: there is a `format` reward, or the
      prompt mentions or opens one.

    A second reward that notes the same column for the table of completions gets its own, `<name>/<column>`.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._verdicts: dict[int, list[str | None]] = {}  # of the rewards' columns, in this process
        self._noted_by: dict[str, int] = {}
        if self._watches:
            self.add_callback(HackingCallback(self.args.reward_watch, self.sampled_rows))  # type: ignore[attr-defined]

    @property
    def _watches(self) -> bool:
        return self.args.reward_watch != "off"  # type: ignore[attr-defined]

    def sampled_rows(self) -> list[dict[str, Any]]:
        """The completions of the last generation batch in all processes, with rewards and what these noted."""
        logs: Any = self._logs  # type: ignore[attr-defined]
        total = len(logs["prompt"])
        noted = {name: list(values) for name, values in logs["extra"].items() if len(values) == total}
        return [
            {
                "prompt": logs["prompt"][row],
                "completion": logs["completion"][row],
                "rewards": {name: _number(values[row]) for name, values in logs["rewards"].items()},
                "advantage": logs["advantages"][row],
                **{name: values[row] for name, values in noted.items()},
            }
            for row in range(total)
        ]

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> torch.Tensor:
        if not self._watches:
            return super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)  # type: ignore[misc]
        functions: list[Any] = self.reward_funcs  # type: ignore[has-type]
        self._verdicts = {}
        # Everything else sees the functions themselves: what they know besides their values is asked elsewhere.
        self.reward_funcs = [self._listen(column, function) for column, function in enumerate(functions)]
        try:
            rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)  # type: ignore[misc]
        finally:
            self.reward_funcs = functions
        codes = torch.full((len(prompts), len(functions)), -1, device=rewards.device)
        for column, statuses in self._verdicts.items():
            found = [-1 if status is None else _STATUSES.index(status) for status in statuses]
            codes[:, column] = torch.tensor(found, device=rewards.device)
        everyone: Any = self.accelerator.gather(codes)  # type: ignore[attr-defined]  # (N_global, F)
        metrics = self._metrics["train" if self.model.training else "eval"]  # type: ignore[attr-defined]
        for column, function in enumerate(functions):
            values = [_number(value) for value in rewards[:, column].tolist()]
            verdicts = [None if code < 0 else _STATUSES[code] for code in everyone[:, column].tolist()]
            threshold = right_above(function) if hasattr(unrouted(function), "threshold") else None
            for name, share in verdict_shares(values, verdicts, threshold).items():
                metrics[f"rewards/{self.reward_func_names[column]}/{name}"].append(share)  # type: ignore[attr-defined]
        return rewards

    def _listen(self, column: int, function: Any) -> Any:
        """The reward function, but what it notes for the table passes by here."""
        if isinstance(function, torch.nn.Module):
            return function
        log_extra = partial(self._note, column)
        if any(map(inspect.iscoroutinefunction, (function, type(function).__call__))):
            return _as_async(function, log_extra)
        return lambda **kwargs: function(**(kwargs | {"log_extra": log_extra}))

    def _note(self, column: int, name: str, values: list[Any]) -> None:
        if name == "verdict":
            self._verdicts[column] = values
        if self._noted_by.setdefault(name, column) != column:
            name = f"{self.reward_func_names[column]}/{name}"  # type: ignore[attr-defined]
        self._log_completion_extra(name, values)  # type: ignore[attr-defined]

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        if self._watches:
            self._log_thoughts(output)
        return output

    def _log_thoughts(self, output: dict[str, Any]) -> None:
        prompts, texts = (
            self._tokenizer.batch_decode(  # type: ignore[attr-defined]
                [ids[mask.bool()] for ids, mask in zip(output[f"{part}_ids"], output[f"{part}_mask"], strict=True)],
                skip_special_tokens=part == "completion",
            )
            for part in ("prompt", "completion")
        )
        names: list[str] = self.reward_func_names  # type: ignore[attr-defined]
        has_format = any(name.startswith("format_reward") for name in names)
        missing = asked = room = 0
        for prompt, text in zip(prompts, texts, strict=True):
            if prompt.rstrip().endswith(THINK_CLOSE):
                continue
            found = split_thought(text, opened=prompt_opens_thought(prompt))
            missing += found.answer != "" and found.thought == ""
            asked += has_format or THINK_OPEN in prompt
            room += 1
        counts = torch.tensor([[missing, asked, room]], device=output["prompt_ids"].device)
        missing, asked, room = self.accelerator.gather(counts).sum(0).tolist()  # type: ignore[attr-defined]
        if room:
            metrics = self._metrics["train" if self.model.training else "eval"]  # type: ignore[attr-defined]
            metrics[NO_THOUGHT].append(missing / room)
            metrics[THOUGHT_ASKED].append(asked / room)


def _number(value: float) -> float | None:
    return None if value != value else value


def _as_async(function: Callable[..., Any], log_extra: Callable[..., None]) -> Callable[..., Any]:
    async def listening(**kwargs: Any) -> Any:
        return await function(**(kwargs | {"log_extra": log_extra}))

    return listening
