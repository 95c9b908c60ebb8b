"""Stop strings on both generation backends; a row that one ends counts as complete."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ..generation.tokens import trim_at_stop


@contextmanager
def tokenizer_for_generate(model: Any, tokenizer: Any) -> Iterator[None]:
    """Hand `model.generate` the tokenizer that stop strings need; TRL calls it without."""
    model.generate = functools.partial(model.generate, tokenizer=tokenizer)
    try:
        yield
    finally:
        del model.generate


def settle_stop_strings(args: Any) -> None:
    """
    Check a config's `stop_strings`, and hand them to the engine where vLLM generates.

    Args:
        args ([`~transformers.TrainingArguments`]):
            With `stop_strings`, `use_vllm` and `generation_kwargs`; changed in place.

    Raises:
        ValueError: One of them is empty.
    """
    if args.stop_strings is not None and any(not string for string in args.stop_strings):
        raise ValueError(f"stop_strings: expected non-empty strings, got {args.stop_strings}")
    if args.stop_strings and args.use_vllm:
        kwargs = args.generation_kwargs if isinstance(args.generation_kwargs, dict) else {}
        args.generation_kwargs = {**kwargs, "stop": args.stop_strings, "include_stop_str_in_output": True}


class StringEnds:
    """
    Mixin for trainers of TRL that generate: the config's `stop_strings` end a completion.

    transformers pads a row that a stop string ended, which TRL, looking for EOS only, would take for sampled tokens of
    a cut completion. The padding is dropped here, and completeness is decided per row in `self._is_complete`.
    """

    @contextmanager
    def _generating_to_strings(self) -> Iterator[None]:
        """Around the parent's generation; the engine of vLLM has the strings from the config."""
        if self.use_vllm:  # type: ignore[attr-defined]
            yield
            return
        model = self.accelerator.unwrap_model(self.model)  # type: ignore[attr-defined]
        self.generation_config.stop_strings = self.args.stop_strings  # type: ignore[attr-defined]
        with tokenizer_for_generate(model, self._tokenizer):  # type: ignore[attr-defined]
            yield

    def _trim_rows(self, completion_ids: list[list[int]]) -> list[list[int]]:
        """Each row without its padding, and in `self._ended_by_string` whether a stop string ended it."""
        trimmed = []
        for ids in completion_ids:
            kept, reason = trim_at_stop(
                ids,
                self._tokenizer,  # type: ignore[attr-defined]
                self.args.stop_strings,  # type: ignore[attr-defined]
                self.eos_token_ids,  # type: ignore[attr-defined]
                self._tokenizer.pad_token_id,  # type: ignore[attr-defined]
            )
            trimmed.append(kept)
            self._ended_by_string.append(reason == "stop_string")
        return trimmed

    def _generate(self, prompts: list) -> Any:
        self._ended_by_string: list[bool] = []
        output = super()._generate(prompts)  # type: ignore[misc]
        completion_ids = output[1]
        ends = [*self.eos_token_ids, self._tokenizer.pad_token_id]  # type: ignore[attr-defined]
        by_string = self._ended_by_string or [False] * len(completion_ids)
        self._is_complete = [ended or ids[-1] in ends for ended, ids in zip(by_string, completion_ids, strict=True)]
        if self.args.stop_strings:  # type: ignore[attr-defined]
            self._correct_length_metrics(completion_ids)
        return output

    def _correct_length_metrics(self, completion_ids: list[list[int]]) -> None:
        """The parent counted rows that a stop string ended as cut."""
        mode = "train" if self.model.training else "eval"  # type: ignore[attr-defined]
        device = self.accelerator.device  # type: ignore[attr-defined]
        gather = self.accelerator.gather  # type: ignore[attr-defined]
        lengths = gather(torch.tensor([len(ids) for ids in completion_ids], device=device)).float()
        complete = gather(torch.tensor(self._is_complete, device=device))
        ended = lengths[complete] if complete.any() else torch.zeros(1, device=device)
        metrics = self._metrics[mode]  # type: ignore[attr-defined]
        metrics["completions/clipped_ratio"][-1] = 1.0 - complete.float().mean().item()
        metrics["completions/mean_terminated_length"][-1] = ended.mean().item()
        metrics["completions/min_terminated_length"][-1] = ended.min().item()
        metrics["completions/max_terminated_length"][-1] = ended.max().item()


class StopStrings(StringEnds):
    """[`StringEnds`] for subclasses of [`~trl.GRPOTrainer`], with log-probs, and with masks of cut completions."""

    def _generate_single_turn(self, prompt_ids: Any, *args: Any, **kwargs: Any) -> Any:
        self._ended_by_string = []
        if not self.args.stop_strings:  # type: ignore[attr-defined]
            return super()._generate_single_turn(prompt_ids, *args, **kwargs)  # type: ignore[misc]
        with self._generating_to_strings():
            completion_ids, logprobs = super()._generate_single_turn(prompt_ids, *args, **kwargs)  # type: ignore[misc]
        trimmed = self._trim_rows(completion_ids)
        if logprobs is not None:
            logprobs = [row[: len(ids)] for row, ids in zip(logprobs, trimmed, strict=True)]
        return trimmed, logprobs

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        # With stop strings the parent cannot tell a cut row; its masking of cut rows is done here instead.
        masks_cut_rows = bool(self.args.stop_strings) and self.args.mask_truncated_completions  # type: ignore[attr-defined]
        if masks_cut_rows:
            self.mask_truncated_completions = False
        output = super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        if masks_cut_rows:
            complete = torch.tensor(self._is_complete, device=output["completion_mask"].device).unsqueeze(1)
            loss_mask = output["completion_mask"] = output["completion_mask"] * complete
            if "tool_mask" in output:
                output["tool_mask"] = output["tool_mask"] * complete
                loss_mask = loss_mask * output["tool_mask"]
            output["num_items_in_batch"] = self.accelerator.gather(loss_mask.sum()).sum()  # type: ignore[attr-defined]
        return output
