"""A step reward that holds a model: process reward models, which score each step of a thought."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..rewards.steps import SPLITS, StepReward, StepScore, split_steps
from .backends import length_batches
from .loading import check_model_folder
from .reward_model import find_file, load_with_head
from .step_tokens import STEP_FORMAT_FILE, read_step_format, settle_step_format


if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class ProcessScorer:
    r"""
    The score of a process reward model, a token classification model, for each step of a completion.

    The model reads the prompt and then each step followed by a separator, see
    [`~trl_reasoning.generation.step_tokens.StepFormat`]; a step's score is what it says at the last token of its
    separator: the probability of label 1 with two labels, the logistic function of the logit with one.

    The object holds settings only and can be pickled; the model is loaded at the first use, in evaluation mode, once
    in each process.

    Args:
        model (`str`):
            Folder or hub id of a token classification model with one or two labels, for instance of a `method: prm`
            run; also the folder of its LoRA adapter alone.
        by (`"line"` or `"paragraph"`, *optional*, defaults to `"line"`):
            What a step is, see [`~trl_reasoning.rewards.steps.split_steps`].
        answer (`bool`, *optional*, defaults to `True`):
            Whether the visible answer is a step, too.
        plain_prompt (`bool`, *optional*):
            Whether the model reads the last user message as plain text, for models that were trained without a chat
            template. Otherwise messages go through the template of its tokenizer, where there is one. Needed for other
            models than those of `method: prm`, whose folders say it; false where nothing does.
        separator (`str`, *optional*):
            What follows each step, as in the model's training. As `plain_prompt`; a line break where nothing says it.
        dtype (`str`, *optional*, defaults to `"auto"`):
            Format of the weights, as for [`load_backend`].
        batch_size (`int`, *optional*, defaults to `16`):
            Most completions in one forward pass, at least 1.
        max_length (`int`, *optional*):
            Most tokens of prompt and steps; by default what the tokenizer allows. Steps beyond it get no score.
        revision (`str`, *optional*):
            Revision on the hub.

    Raises:
        ValueError: a value is outside its range or contradicts the model's training, or the folder `model` holds no
            such model.

    Reference: process supervision of DeepSeekMath (https://huggingface.co/papers/2402.03300), Section 4.1.3; labels as
    in Math-Shepherd (https://huggingface.co/papers/2312.08935).

    Example:

    ```python
    scorer = ProcessScorer("outputs/reward/process")
    scorer(["7+5-3=?"], ["<think>7+5=12\n12-3=9</think>9"])  # one list with three scores
    ```
    """

    __name__ = "process_model"
    columns: tuple[str, ...] = ()

    def __init__(
        self,
        model: str,
        by: str = "line",
        answer: bool = True,
        plain_prompt: bool | None = None,
        separator: str | None = None,
        dtype: str = "auto",
        batch_size: int = 16,
        max_length: int | None = None,
        revision: str | None = None,
    ):
        if by not in SPLITS:
            raise ValueError(f"by: expected one of {list(SPLITS)}, got {by!r}")
        if separator == "":
            raise ValueError("separator: expected a text, got an empty one")
        for name, value in (("batch_size", batch_size), ("max_length", max_length)):
            if value is not None and value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        check_model_folder(model, "ForTokenClassification")
        settle_step_format(
            read_step_format(Path(model) / STEP_FORMAT_FILE), model, separator=separator, plain_prompt=plain_prompt
        )
        self.path = model
        self.by = by
        self.answer = answer
        self.plain_prompt = plain_prompt
        self.separator = separator
        self.dtype = dtype
        self.batch_size = batch_size
        self.max_length = max_length
        self.revision = revision
        self._loaded: tuple[PreTrainedModel, PreTrainedTokenizerBase] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_loaded": None}

    def __call__(
        self,
        prompts: Sequence[Any],
        texts: Sequence[str],
        *,
        thought_opened: Sequence[bool | None] | None = None,
        **kwargs: Any,
    ) -> list[list[StepScore]]:
        opened = [False] * len(texts) if thought_opened is None else [bool(value) for value in thought_opened]
        spans = [
            split_steps(text, opened=is_open, by=self.by, answer=self.answer)
            for text, is_open in zip(texts, opened, strict=True)
        ]
        steps = [[text[start:end] for start, end in row] for text, row in zip(texts, spans, strict=True)]
        return [
            [StepScore(end, score) for (_, end), score in zip(row, scores, strict=True)]
            for row, scores in zip(spans, self.score(prompts, steps), strict=True)
        ]

    def score(self, prompts: Sequence[Any], steps: Sequence[Sequence[str]]) -> list[list[float | None]]:
        """
        Score steps.

        Args:
            prompts (`Sequence`):
                Messages or plain texts.
            steps (`Sequence[Sequence[str]]`):
                The steps of each prompt's completion, without separators.

        Returns:
            `list[list[float | None]]`: in [0, 1]; `None` for a step beyond `max_length`.
        """
        import torch

        model, tokenizer = self._load()
        step_format = settle_step_format(
            read_step_format(find_file(self.path, STEP_FORMAT_FILE, self.revision)),
            self.path,
            separator=self.separator,
            plain_prompt=self.plain_prompt,
        )
        limit = min(tokenizer.model_max_length, self.max_length or tokenizer.model_max_length)
        rows = [step_format.token_ids(tokenizer, prompt, row) for prompt, row in zip(prompts, steps, strict=True)]
        scores: list[list[float | None]] = [[None] * len(row) for row in steps]
        scored = [row for row, (_, places) in enumerate(rows) if places and places[0] < limit]
        for batch in length_batches([min(len(rows[row][0]), limit) for row in scored], self.batch_size):
            batch = [scored[index] for index in batch]
            inputs = tokenizer.pad(
                {"input_ids": [rows[row][0][:limit] for row in batch]}, padding_side="right", return_tensors="pt"
            )
            with torch.inference_mode():
                logits = model(**inputs.to(model.device)).logits.float()  # (N, T, labels)
            right = logits[..., 0].sigmoid() if logits.size(-1) == 1 else logits.softmax(-1)[..., 1]  # (N, T)
            for row, values in zip(batch, right.tolist(), strict=True):
                places = [place for place in rows[row][1] if place < limit]
                scores[row][: len(places)] = [values[place] for place in places]
        return scores

    def _load(self) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
        if self._loaded is None:
            self._loaded = load_process_model(self.path, dtype=self.dtype, revision=self.revision)
        return self._loaded


PROCESS_SCORERS: dict[str, Callable[..., StepReward]] = {"process_model": ProcessScorer}
"""Step rewards that hold a model, by the names that recipes use."""


def load_process_model(
    path: str, *, dtype: str = "auto", device: str | None = None, revision: str | None = None
) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
    """
    Load a process reward model in evaluation mode, and its tokenizer.

    Args:
        path (`str`):
            Folder or hub id of a token classification model, or of a LoRA adapter for one.
        dtype (`str`, *optional*, defaults to `"auto"`):
            Format of the weights, as for [`load_backend`].
        device (`str`, *optional*):
            `cpu`, `cuda`, ...; the process's by default.
        revision (`str`, *optional*):
            Revision on the hub.

    Returns:
        `tuple`: [`~transformers.PreTrainedModel`] whose `logits` are (N, T, 1) or (N, T, 2), and the tokenizer.

    Raises:
        [`~trl_reasoning.errors.UserError`]: the model has other labels, or no trained head.
    """
    from accelerate import PartialState

    target = device or str(PartialState().device)
    model, tokenizer = load_with_head("AutoModelForTokenClassification", path, dtype, target, revision)
    if model.config.num_labels not in (1, 2):
        raise UserError(f"process reward model {path}: has {model.config.num_labels} labels; expected 1 or 2")
    return model, tokenizer
