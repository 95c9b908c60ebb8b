"""The bias that makes demonstrations score 0 on average, set after training and saved beside the weights."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ..generation.reward_model import BIAS_FILE, set_score_bias
from ..losses.reward import demonstration_bias
from ._reward_rows import pad_replies


class CentredScores:
    """
    Mixin for trainers of reward models: adds the bias, and keeps it out of the weights that are saved.

    The heads of transformers have no bias, so it is written to a file of its own, which
    [`~trl_reasoning.generation.reward_model.load_reward_model`] reads. Training and checkpoints are without it: it
    does not change the loss.
    """

    args: Any
    accelerator: Any
    model: Any
    state: Any
    processing_class: Any

    score_bias: float | None = None
    """What is added to the scores; None before the end of training, and without demonstrations."""
    _demonstrations: list[list[int]]

    def centre_scores(self) -> None:
        """Set the bias so that the demonstrations score 0 on average. All processes call this together."""
        if not self._demonstrations:
            return
        self._set_bias(None)
        self._set_bias(demonstration_bias(self._score_demonstrations()))

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """The parent's `train`; the bias is set when all steps are done, otherwise when the model is saved."""
        self._set_bias(None)
        output = super().train(*args, **kwargs)  # type: ignore[misc]
        if self.state.global_step >= self.state.max_steps:
            self.centre_scores()
        return output

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Save the model with its bias. (Checkpoints are internal calls.)"""
        if not _internal_call and self.score_bias is None:
            self.centre_scores()
        super().save_model(output_dir, _internal_call)  # type: ignore[misc]

    def _save(self, output_dir: str | None = None, state_dict: dict | None = None) -> None:
        if state_dict is not None:
            state_dict = {name: weight for name, weight in state_dict.items() if not name.endswith("score.bias")}
        with self._without_bias():
            super()._save(output_dir, state_dict)  # type: ignore[misc]
        if not self.args.should_save:
            return
        file = Path(output_dir or self.args.output_dir) / BIAS_FILE
        if self.score_bias is None:
            file.unlink(missing_ok=True)  # of an earlier run into this folder
        else:
            content = {"bias": self.score_bias, "demonstrations": len(self._demonstrations)}
            file.write_text(json.dumps(content, indent=2) + "\n")

    def _set_bias(self, bias: float | None) -> None:
        if bias is not None or self.score_bias is not None:
            set_score_bias(self.accelerator.unwrap_model(self.model), bias)
        self.score_bias = bias

    @contextmanager
    def _without_bias(self) -> Iterator[None]:
        bias = self.score_bias
        self._set_bias(None)
        try:
            yield
        finally:
            self._set_bias(bias)

    @torch.no_grad()
    def _score_demonstrations(self) -> torch.Tensor:
        """(N,) scores of all demonstrations, each process passing its share of them."""
        rank, processes = self.accelerator.process_index, self.accelerator.num_processes
        total = len(self._demonstrations)
        # As many rows and passes in each process; those beyond the last demonstration are cut off below.
        own = [
            self._demonstrations[min(row, total - 1)]
            for row in range(rank, -(-total // processes) * processes, processes)
        ]
        was_training = self.model.training
        self.model.eval()
        parts = []
        size = self.args.per_device_eval_batch_size
        for start in range(0, len(own), size):
            batch = pad_replies(own[start : start + size], self.processing_class.pad_token_id)
            batch = {name: values.to(self.accelerator.device) for name, values in batch.items()}
            with self.accelerator.autocast():
                parts.append(self.model(**batch, use_cache=False).logits.squeeze(-1).float())
        self.model.train(was_training)
        gathered = self.accelerator.gather(torch.cat(parts))  # (processes * share,), process after process
        return gathered.view(processes, -1).T.flatten()[:total]
