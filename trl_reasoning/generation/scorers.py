"""Rewards that hold a model: reward models with a scalar head, and the table of all scorers."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..errors import UserError
from ..rewards.routing import unrouted
from ..text import completion_text
from .backends import length_batches
from .judge import JudgeScorer
from .loading import check_model_folder
from .reward_model import load_reward_model, scored_token_ids
from .views import Conversation, Sees, process_device, shown_parts


if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class RewardModelScorer:
    r"""
    The score of a reward model, a sequence classification model with one label, as a reward.

    $$ r_i = \mathrm{RM}(x_i, v(y_i)) $$

    with the view $v$: the final answer alone or the whole completion. DeepSeek-R1 shows its helpfulness model the
    final answer only, so that the thought stays free, and its safety model everything.

    Messages go through the chat template of the reward model's own tokenizer; plain text is the prompt, the
    completion and the end token, one after the other, as [`~trl.RewardTrainer`] trains on them. An answer is what
    [`~trl_reasoning.text.split_thought`] calls so: a thought that never closes leaves it empty.

    The object holds settings only and can be pickled; the model is loaded at the first use, in evaluation mode, on the
    device that accelerate chose for the process. Scorers of one model share it.

    Args:
        model (`str`):
            Folder or hub id of a model, or of a LoRA adapter for one.
        sees (`"answer"` or `"everything"`, *optional*, defaults to `"everything"`):
            What the model is shown of a completion.
        empty_score (`float`, *optional*):
            Score of an empty answer where `sees` is `"answer"`. By default the model scores the empty reply.
        dtype (`str`, *optional*, defaults to `"auto"`):
            Format of the weights, as for [`load_backend`].
        device (`str`, *optional*):
            Another device than the process's.
        batch_size (`int`, *optional*, defaults to `16`):
            Most rows in one forward pass, at least 1.
        max_length (`int`, *optional*):
            Most tokens of prompt and completion together; by default what the tokenizer allows.
        truncation_side (`"left"` or `"right"`, *optional*, defaults to `"left"`):
            Where longer texts are cut. `"left"` keeps the end, at which the model reads its score.
        revision (`str`, *optional*):
            Revision on the hub.

    Raises:
        ValueError: when a value is outside its range, or the folder `model` holds no reward model.

    Reference: DeepSeek-R1 (https://huggingface.co/papers/2501.12948), section 2.3.4.

    Example:

    ```python
    scorer = RewardModelScorer("outputs/reward/helpful", sees="answer")
    scorer(["What is 9-5?"], ["<think>9-5 is 4.</think>4"], [[1]])  # a list with one number
    scorer.model  # the model itself, loaded; scorer.path names it
    ```
    """

    __name__ = "reward_model"
    columns: tuple[str, ...] = ()

    def __init__(
        self,
        model: str,
        sees: Sees = "everything",
        empty_score: float | None = None,
        dtype: str = "auto",
        device: str | None = None,
        batch_size: int = 16,
        max_length: int | None = None,
        truncation_side: Literal["left", "right"] = "left",
        revision: str | None = None,
    ):
        if sees not in get_args(Sees):
            raise ValueError(f"sees: expected one of {', '.join(get_args(Sees))}, got {sees!r}")
        if truncation_side not in ("left", "right"):
            raise ValueError(f"truncation_side: expected left or right, got {truncation_side!r}")
        for name, value in (("batch_size", batch_size), ("max_length", max_length)):
            if value is not None and value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        if empty_score is not None and sees != "answer":
            raise ValueError("empty_score: has no effect with `sees: everything`; remove it, or write `sees: answer`")
        check_model_folder(model, "ForSequenceClassification")
        self.path = model
        self.sees: Sees = sees
        self.empty_score = empty_score
        self.dtype = dtype
        self.device = device
        self.batch_size = batch_size
        self.max_length = max_length
        self.truncation_side = truncation_side
        self.revision = revision

    @property
    def model_paths(self) -> dict[str, str]:
        """The folders or hub ids that it loads, by parameter."""
        return {"model": self.path}

    @property
    def model(self) -> "PreTrainedModel":
        """The reward model, loaded at the first use."""
        return self._load()[0]

    @property
    def tokenizer(self) -> "PreTrainedTokenizerBase":
        """The reward model's own tokenizer."""
        return self._load()[1]

    def __call__(
        self,
        prompts: Sequence[Conversation],
        completions: Sequence[Conversation],
        completion_ids: Sequence[Sequence[int]],
        *,
        thought_opened: Sequence[bool | None] | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        opened = [False] * len(prompts) if thought_opened is None else [bool(value) for value in thought_opened]
        views = [
            shown_parts(prompt, completion_text(completion, opened=is_open), is_open, self.sees)
            for prompt, completion, is_open in zip(prompts, completions, opened, strict=True)
        ]
        scored = [row for row, (_, reply) in enumerate(views) if reply or self.empty_score is None]
        scores: list[float | None] = [self.empty_score] * len(views)
        for row, score in zip(scored, self.score([views[row] for row in scored]), strict=True):
            scores[row] = score
        return scores

    def score(self, pairs: Sequence[tuple[Conversation, str]]) -> list[float]:
        """
        Score replies as they are, whatever `sees` says.

        Args:
            pairs (`Sequence[tuple]`):
                Prompt (messages or plain text) and reply of each row.

        Returns:
            `list[float]`: the scores.
        """
        import torch

        model, tokenizer = self._load()
        rows = [self._token_ids(tokenizer, prompt, reply) for prompt, reply in pairs]
        scores = [0.0] * len(rows)
        for batch in length_batches([len(ids) for ids in rows], self.batch_size):
            inputs = tokenizer.pad(
                {"input_ids": [rows[row] for row in batch]}, padding_side="right", return_tensors="pt"
            )
            with torch.inference_mode():
                logits = model(**inputs.to(model.device)).logits[:, 0]  # (N,)
            for row, score in zip(batch, logits.float().tolist(), strict=True):
                scores[row] = score
        return scores

    def _token_ids(self, tokenizer: "PreTrainedTokenizerBase", prompt: Conversation, reply: str) -> list[int]:
        is_text = isinstance(prompt, str)
        if not is_text and tokenizer.chat_template is None:
            raise UserError(
                f"reward_funcs: the prompts are messages, but the tokenizer of the reward model {self.path} has no "
                "chat template; take a model that has one, or a `prompt_template` of plain text"
            )
        ids = scored_token_ids(tokenizer, prompt, reply if is_text else [{"role": "assistant", "content": reply}])
        limit = min(tokenizer.model_max_length, self.max_length or tokenizer.model_max_length)
        return ids[-limit:] if self.truncation_side == "left" else ids[:limit]

    def _load(self) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
        return _load_once(self.path, self.dtype, self.device or process_device(), self.revision)


SCORERS: dict[str, Callable[..., Any]] = {"judge": JudgeScorer, "reward_model": RewardModelScorer}
"""Rewards that hold a model, by the names that recipes use."""


def held_models(rewards: Iterable[Any]) -> "list[PreTrainedModel]":
    """
    The reward models that reward functions hold, loaded, those included that score some rows only.

    Args:
        rewards (`Iterable`):
            Reward functions of a trainer.

    Returns:
        `list[PreTrainedModel]`: in their order.
    """
    return [scorer.model for scorer in map(unrouted, rewards) if isinstance(scorer, RewardModelScorer)]


@functools.cache
def _load_once(
    path: str, dtype: str, device: str, revision: str | None
) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
    return load_reward_model(path, dtype=dtype, device=device, revision=revision)
