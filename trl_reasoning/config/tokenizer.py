"""The tokenizer of a run: loaded, changed as the recipe says, and checked."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import RecipeError, did_you_mean
from .recipe import Recipe


if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_PROBE = "7316"  # text that no template writes itself


def load_tokenizer(recipe: Recipe) -> "PreTrainedTokenizerBase":
    """
    Load the model's tokenizer and apply the recipe's `chat_template`, `eos_token` and `add_special_tokens`.

    Raises:
        RecipeError: There is no tokenizer there, or a token or template that does not exist.
    """
    from transformers import AutoTokenizer

    from ..data import DataError, resolve_chat_template

    path = resolve_model_path(recipe)
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(
            path,
            revision=recipe.setting("model_revision"),
            trust_remote_code=recipe.setting("trust_remote_code"),
        )
    except (OSError, ValueError) as error:
        raise RecipeError("model_name_or_path", f"no tokenizer in {path!r}: {error}") from error
    if recipe.get("chat_template") is not None:
        try:
            tokenizer.chat_template = resolve_chat_template(recipe.values["chat_template"], base_dir=recipe.base_dir)
        except DataError as error:
            raise RecipeError("chat_template", str(error).removeprefix("chat_template: ")) from error
    if recipe.get("add_special_tokens"):
        tokenizer.add_special_tokens({"additional_special_tokens": recipe.values["add_special_tokens"]})
    if recipe.get("eos_token") is not None:
        token = recipe.values["eos_token"]
        if token not in tokenizer.get_vocab():
            hint = did_you_mean(token, tokenizer.get_added_vocab())
            raise RecipeError("eos_token", f"{token!r} is not in the vocabulary of {path}.{hint}")
        tokenizer.eos_token = token
    if tokenizer.eos_token is None:
        raise RecipeError("eos_token", f"the tokenizer of {path} has no EOS token; name the token that ends a reply")
    return tokenizer


def resolve_model_path(recipe: Recipe) -> str:
    """The folder or hub id of the recipe's model; an error for an unknown builtin name or a folder without a model."""
    from ..builtin import resolve_model

    name = recipe.values["model_name_or_path"]
    try:
        path = resolve_model(name)
    except ValueError as error:
        raise RecipeError("model_name_or_path", str(error).removeprefix("model_name_or_path: ")) from error
    if is_hub_model(name) or (Path(path) / "config.json").is_file():
        return path
    if (Path(path) / "adapter_config.json").is_file():
        raise RecipeError(
            "model_name_or_path",
            f"{path} holds an adapter alone; name its base model here and the folder as `adapter_name_or_path`",
        )
    raise RecipeError("model_name_or_path", f"{path} is not a folder with a model (no config.json in it)")


def check_vocabulary(recipe: Recipe, tokenizer: "PreTrainedTokenizerBase") -> None:
    """
    New tokens need embedding rows; many models have spare ones.

    Raises:
        RecipeError: Names the numbers of both and the way to more rows.
    """
    tokens = recipe.get("add_special_tokens")
    if not tokens:
        return
    from transformers import AutoConfig

    path = resolve_model_path(recipe)
    settings: Any = {"trust_remote_code": recipe.setting("trust_remote_code")}
    config = AutoConfig.from_pretrained(path, revision=recipe.setting("model_revision"), **settings)
    rows = config.get_text_config().vocab_size
    if len(tokenizer) > rows:
        raise RecipeError(
            "add_special_tokens",
            f"with {', '.join(tokens)} the tokenizer has {len(tokenizer)} tokens and the model {rows} embedding rows; "
            f"call `model.resize_token_embeddings({len(tokenizer)})` once, save, and train from that folder",
        )


def is_hub_model(name: str) -> bool:
    """Whether a model's name can only be a hub id: nothing of that name lies on the disk."""
    return not name.startswith(("builtin:", ".", "/", "~")) and name.count("/") <= 1 and not Path(name).exists()


def check_end_token(recipe: Recipe, tokenizer: "PreTrainedTokenizerBase") -> None:
    """
    The token with which the chat template ends a reply must be the tokenizer's EOS.

    Where it is not, a model that was trained on the template never stops: generation waits for another token.

    Raises:
        RecipeError: Names both tokens and the setting that mends it.
    """
    end = template_end_token(tokenizer)
    if end is None:
        if recipe.spec.kind == "sft":
            raise RecipeError(
                "chat_template",
                f"writes no token after a reply, so the model would not learn to stop at {tokenizer.eos_token!r}",
            )
        return
    if end != tokenizer.eos_token:
        raise RecipeError(
            "eos_token",
            f"the chat template ends a reply with {end!r} and the tokenizer's EOS is {tokenizer.eos_token!r}, so that "
            f'generation would not stop; write `eos_token: "{end}"`',
        )
    if recipe.get("eos_token") is None:
        _check_generation_config(recipe, tokenizer)


def template_end_token(tokenizer: Any) -> str | None:
    """The added token that the chat template writes right after a reply, or None where it writes none."""
    messages = [{"role": "user", "content": _PROBE}, {"role": "assistant", "content": _PROBE}]
    rendered = tokenizer.apply_chat_template(messages, tokenize=False)
    tail = rendered.rpartition(_PROBE)[2].lstrip()
    ids = tokenizer(tail, add_special_tokens=False)["input_ids"] if tail else []
    token = tokenizer.convert_ids_to_tokens(ids[0]) if ids else None
    return token if token in tokenizer.get_added_vocab() else None


def check_assistant_mask(tokenizer: "PreTrainedTokenizerBase") -> None:
    """
    `assistant_only_loss` needs a chat template that marks the assistant's text.

    Raises:
        RecipeError: The template has no `{% generation %}` marks, and TRL knows no version of it that has.
    """
    from trl.chat_template_utils import get_training_chat_template, has_generation_markers

    template: Any = tokenizer.chat_template
    if has_generation_markers(template):
        return
    try:
        get_training_chat_template(tokenizer)
    except ValueError as error:
        raise RecipeError(
            "assistant_only_loss",
            "the chat template does not mark the assistant's text with {% generation %} and {% endgeneration %}, so "
            "that every token would be masked; choose a `chat_template` that does (for instance chatml_think), or "
            "give rows of `prompt` and `completion`",
        ) from error


def _check_generation_config(recipe: Recipe, tokenizer: "PreTrainedTokenizerBase") -> None:
    from transformers import GenerationConfig

    try:
        ids = GenerationConfig.from_pretrained(
            resolve_model_path(recipe), revision=recipe.setting("model_revision")
        ).eos_token_id
    except OSError:  # a model without generation_config.json takes the tokenizer's EOS
        return
    ids = [ids] if isinstance(ids, int) else ids
    if ids and tokenizer.eos_token_id not in ids:
        names = ", ".join(repr(tokenizer.convert_ids_to_tokens(index)) for index in ids)
        raise RecipeError(
            "eos_token",
            f"the tokenizer's EOS is {tokenizer.eos_token!r} and generation_config.json stops at {names}; write "
            f'`eos_token: "{tokenizer.eos_token}"` to stop at the tokenizer\'s',
        )
