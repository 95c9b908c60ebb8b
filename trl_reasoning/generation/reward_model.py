"""Reward models in memory: loading from a model or an adapter, what they read, and the bias of their scores."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..builtin import resolve_model
from ..errors import UserError
from .loading import default_device, dtype_of


if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

BIAS_FILE = "score_bias.json"
"""Beside the weights of a reward model: what is added to its scores; the heads of transformers have no bias."""


def load_reward_model(
    path: str, *, dtype: str = "auto", device: str | None = None, revision: str | None = None
) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
    """
    Load a reward model in evaluation mode, and its tokenizer.

    An adapter is merged into its base, in the base's `dtype`. A bias that was saved beside the weights becomes the
    bias of the head `score`.

    Args:
        path (`str`):
            Folder or hub id of a sequence classification model, or of a LoRA adapter for one.
        dtype (`str`, *optional*, defaults to `"auto"`):
            Format of the weights, as for [`load_backend`].
        device (`str`, *optional*):
            `cpu`, `cuda`, ...; the first accelerator where there is one.
        revision (`str`, *optional*):
            Revision on the hub.

    Returns:
        `tuple`: [`~transformers.PreTrainedModel`] whose `logits` are `(N, 1)`, and the tokenizer with a pad token.

    Raises:
        [`~trl_reasoning.errors.UserError`]: when the model has more than one label, or no trained head.
    """
    model, tokenizer = load_with_head("AutoModelForSequenceClassification", path, dtype, device, revision)
    if model.config.num_labels != 1:
        raise UserError(f"reward model {path}: has {model.config.num_labels} labels; a reward model has 1")
    bias = read_score_bias(path, revision)
    if bias is not None:
        set_score_bias(model, bias)
    # Where the model reads its score: the last token of a row that is not this one.
    model.config.get_text_config().pad_token_id = tokenizer.pad_token_id
    return model, tokenizer


def load_with_head(
    architecture: str, path: str, dtype: str, device: str | None, revision: str | None
) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
    """
    Load a model with a trained head, or the adapter of one, in evaluation mode; other arguments as above.

    Args:
        architecture (`str`):
            The class of transformers that loads it.

    Raises:
        [`~trl_reasoning.errors.UserError`]: weights are missing.
    """
    import torch
    import transformers

    target = torch.device(device or default_device())
    adapter = _adapter_settings(path, revision)
    base = path if adapter is None else resolve_model(adapter["base_model_name_or_path"])
    base_revision = revision if adapter is None else adapter.get("revision")
    settings: dict[str, Any] = {"dtype": dtype_of(dtype, target), "device_map": target, "revision": base_revision}
    model: Any
    with nullcontext() if adapter is None else _quietly():
        try:
            model, info = getattr(transformers, architecture).from_pretrained(
                base, output_loading_info=True, **settings, **({} if adapter is None else {"num_labels": 1})
            )
        except OSError as error:
            raise UserError(
                f"reward model {path}: there is no folder {base!r}, and it cannot be loaded from the hub: {error}"
            ) from error
    missing = set(info["missing_keys"])
    if adapter is not None and _has_head(path, revision):
        missing -= {"score.weight", "score.bias"}
    if missing:
        names = ", ".join(sorted(missing)[:3])
        raise UserError(
            f"reward model {path}: its files hold no weights for {names}, so that it would score at random"
        )
    if adapter is not None:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, path, revision=revision).merge_and_unload()
    has_tokenizer = adapter is None or find_file(path, "tokenizer_config.json", revision) is not None
    source, source_revision = (path, revision) if has_tokenizer else (base, base_revision)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source, revision=source_revision)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model.eval(), tokenizer


def scored_token_ids(tokenizer: "PreTrainedTokenizerBase", prompt: Any, reply: Any) -> list[int]:
    """
    The tokens of a prompt with its reply as a reward model reads them, in training and when it scores.

    Args:
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The reward model's.
        prompt (`str` or `list[dict]`):
            Plain text, which is followed by the reply and the end token, or messages, which go through the chat
            template together with the reply.
        reply (`str` or `list[dict]`):
            In the prompt's form.

    Returns:
        `list[int]`: the token ids.
    """
    if isinstance(prompt, str):
        ids: Any = tokenizer(text=prompt + reply)["input_ids"]
        if tokenizer.eos_token_id is not None and ids[-1:] != [tokenizer.eos_token_id]:
            ids = [*ids, tokenizer.eos_token_id]
        return ids
    return tokenizer.apply_chat_template([*prompt, *reply], tokenize=True, return_dict=True)["input_ids"]  # type: ignore[index, return-value]


def score_head(model: Any) -> "nn.Linear":
    """
    The layer that gives the score.

    Args:
        model ([`~transformers.PreTrainedModel`] or [`~peft.PeftModel`]):
            A sequence classification model with a linear head `score`.

    Raises:
        [`~trl_reasoning.errors.UserError`]: The model has another kind of head.
    """
    from peft import PeftModel
    from torch import nn

    base = model.get_base_model() if isinstance(model, PeftModel) else model
    head = dict(base.named_children()).get("score")
    trained = getattr(head, "modules_to_save", None)  # the copy that PEFT trains
    if trained is not None:
        head = trained["default"]
    if not isinstance(head, nn.Linear):
        raise UserError(f"model: {type(base).__name__} has no linear head `score`, to which a bias could be added")
    return head


def set_score_bias(model: Any, bias: float | None) -> None:
    """
    Add a number to all scores of a reward model.

    Args:
        model ([`~transformers.PreTrainedModel`] or [`~peft.PeftModel`]):
            Changed in place; the bias is not trained.
        bias (`float`, *optional*):
            The number; None for no bias.
    """
    import torch
    from torch import nn

    head: Any = score_head(model)
    if bias is None:
        head.bias = None
    else:
        value = torch.full((1,), bias, dtype=head.weight.dtype, device=head.weight.device)
        head.bias = nn.Parameter(value, requires_grad=False)


@contextmanager
def _quietly() -> Iterator[None]:
    """Without transformers' report of a missing head, which an adapter brings along; a head that it lacks raises."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def read_score_bias(path: str, revision: str | None = None) -> float | None:
    """
    The bias that was saved beside a reward model.

    Args:
        path (`str`):
            Folder or hub id.
        revision (`str`, *optional*):
            Revision on the hub.

    Returns:
        `float` or `None`: `None` for a model without one.
    """
    file = find_file(path, BIAS_FILE, revision)
    return None if file is None else json.loads(file.read_text())["bias"]


def _adapter_settings(path: str, revision: str | None) -> dict[str, Any] | None:
    """What `adapter_config.json` says where `path` is an adapter alone."""
    if (Path(path) / "config.json").is_file():
        return None
    file = find_file(path, "adapter_config.json", revision)
    return None if file is None else json.loads(file.read_text())


def _has_head(path: str, revision: str | None) -> bool:
    from peft.utils import load_peft_weights

    return any(name.endswith("score.weight") for name in load_peft_weights(path, device="cpu", revision=revision))


def find_file(path: str, name: str, revision: str | None = None) -> Path | None:
    """
    A file beside a model's weights.

    Args:
        path (`str`):
            Folder or hub id.
        name (`str`):
            Name of the file.
        revision (`str`, *optional*):
            Revision on the hub.

    Returns:
        `Path` or `None`: `None` where there is no such file, or it cannot be reached.
    """
    if Path(path).is_dir():
        file = Path(path) / name
        return file if file.is_file() else None
    from transformers.utils import cached_file

    found = cached_file(
        path,
        name,
        revision=revision,
        _raise_exceptions_for_gated_repo=False,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return None if found is None else Path(found)
