"""What happens between two iterations: a hook gets the policy's samples, to retrain a reward model for instance."""

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from accelerate.utils import gather_object

from ..rewards.replay import ReplayBuffer, ScoredSample, read_sample


IterationHook = Callable[[list[ScoredSample], list[ScoredSample], list[Any]], None]


class IterationSamples:
    """
    Mixin over [`RenewableReference`]: a hook at the end of each iteration.

    An iteration ends when the reference is renewed. Then, before the renewal, the hook gets the iteration's samples,
    history from a replay buffer, and the trainer's reward functions, which it may retrain in place; the samples then
    enter the buffer. That is where DeepSeekMath ([paper](https://huggingface.co/papers/2402.03300), Algorithm 1,
    line 11) trains its reward model again. Samples and buffer are part of the checkpoint.

    Example:

    ```python
    def retrain(samples, history, reward_funcs):
        train_on([*samples, *history], reward_funcs[0].model)

    trainer = ReasoningGRPOTrainer(args=ReasoningGRPOConfig("out", sync_ref_model=True, ref_model_sync_steps=400), ...)
    trainer.set_iteration_hook(retrain)
    ```
    """

    _iteration_hook: IterationHook | None = None

    def set_iteration_hook(self, hook: IterationHook, replay: ReplayBuffer | None = None) -> None:
        """
        Call `hook(samples, history, reward_funcs)` at the end of each iteration.

        Args:
            hook (`Callable`):
                Called in every process with the same samples: those of all processes.
            replay (`ReplayBuffer`, *optional*):
                Where history comes from; by default 10 % of what the hook gets, drawn with the run's seed.

        Raises:
            ValueError: The run has one iteration only, since its reference stays.
        """
        if not self.renews_reference:  # type: ignore[attr-defined]
            raise ValueError("sync_ref_model: an iteration ends when the reference is renewed; set it to true")
        self._iteration_hook = hook
        self._replay = ReplayBuffer(seed=self.args.seed) if replay is None else replay  # type: ignore[attr-defined]
        self._iteration_samples: list[ScoredSample] = []

    def renew_reference(self, mixup: float = 1.0) -> None:
        """End the iteration, then renew the reference."""
        if self._iteration_hook is not None:
            samples = gather_object(self._iteration_samples)
            self._iteration_hook(samples, self._replay.draw(len(samples)), self.reward_funcs)  # type: ignore[attr-defined]
            self._replay.add(samples)
            self._iteration_samples = []
        super().renew_reference(mixup)  # type: ignore[misc]

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> torch.Tensor:
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)  # type: ignore[misc]
        if self._iteration_hook is not None and self.model.training:  # type: ignore[attr-defined]
            first = self.accelerator.process_index * len(prompts)  # type: ignore[attr-defined]
            rows = rewards[first : first + len(prompts)].tolist()
            for prompt, completion, row in zip(prompts, completions, rows, strict=True):
                values = tuple(None if value != value else value for value in row)  # NaN differs from itself
                self._iteration_samples.append(ScoredSample(prompt, completion, values))
        return rewards

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)  # type: ignore[misc]
        if self._iteration_hook is not None:
            state: dict[str, Any] = {"samples": [asdict(sample) for sample in self._iteration_samples]}
            if self.args.process_index == 0:  # type: ignore[attr-defined]
                state["replay"] = self._replay.state_dict()
            with open(self._iteration_file(output_dir, self.args.process_index), "w") as file:  # type: ignore[attr-defined]
                json.dump(state, file)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)  # type: ignore[misc]
        if checkpoint is None or self._iteration_hook is None:
            return
        with open(self._iteration_file(checkpoint, self.args.process_index)) as file:  # type: ignore[attr-defined]
            self._iteration_samples = [read_sample(row) for row in json.load(file)["samples"]]
        with open(self._iteration_file(checkpoint, 0)) as file:
            self._replay.load_state_dict(json.load(file)["replay"])

    def _iteration_file(self, folder: str, process: int) -> str:
        return os.path.join(folder, f"iteration_{process}.json")
