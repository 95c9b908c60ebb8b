"""`builtin:tiny` and smaller: models of the Qwen3 architecture with a tokenizer of single characters."""

import os
import string
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError


if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

EOS, PAD, UNKNOWN = "<|end|>", "<|pad|>", "<|unknown|>"
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
BUILTIN_MODELS = {
    "tiny": "the trained base checkpoint, made by recipes/quickstart/tiny_base.yaml",
    "tiny-untrained": "the same architecture with random weights (seed 0), written to the user's cache folder",
    "mini-untrained": "a quarter of its parameters and the same tokenizer, random weights (seed 0): a student for it",
}
# Settings of each architecture: 0.80 and 0.25 million parameters.
_SIZES: dict[str, dict[str, Any]] = {
    "tiny": {
        "hidden_size": 128,
        "intermediate_size": 384,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
    "mini": {
        "hidden_size": 64,
        "intermediate_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
    },
}


def resolve_model(path: str) -> str:
    """
    The folder or hub id behind a model name.

    Args:
        path (`str`):
            `builtin:tiny`, `builtin:tiny-untrained`, `builtin:mini-untrained`, a local folder or a hub id.

    Returns:
        `str`: a local folder for the builtin names, any other string unchanged.

    Raises:
        [`~trl_reasoning.errors.UserError`]: for an unknown builtin name.
    """
    if not path.startswith("builtin:"):
        return path
    name = path.removeprefix("builtin:")
    if name == "tiny":
        return str(files("trl_reasoning") / "builtin" / "tiny_base")
    if name in BUILTIN_MODELS:
        return str(_untrained_folder(name.removesuffix("-untrained")))
    known = ", ".join(f"builtin:{known}" for known in BUILTIN_MODELS)
    raise UserError(f"model_name_or_path: no builtin model {path!r}; known: {known}")


def build_tokenizer() -> "PreTrainedTokenizerFast":
    """
    A tokenizer with one token per printable ASCII character.

    The think tags are single added tokens that are not special, as in Qwen3: decoding with `skip_special_tokens=True`
    keeps them, so that rewards can see them. The pad token differs from EOS.

    Returns:
        [`~transformers.PreTrainedTokenizerFast`] with the template of `templates/builtin_tiny.jinja`.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    special = [PAD, EOS, UNKNOWN, *ROLES]
    characters = [char for char in string.printable if char not in "\r\x0b\x0c\t"]
    vocabulary = {token: index for index, token in enumerate([*special, "<think>", "</think>", *characters])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")  # type: ignore[assignment]
    tokenizer.decoder = decoders.Fuse()  # type: ignore[assignment]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in ("<think>", "</think>")])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=EOS,
        pad_token=PAD,
        unk_token=UNKNOWN,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
    )
    fast.chat_template = (files("trl_reasoning") / "templates" / "builtin_tiny.jinja").read_text()
    return fast


def build_tiny(folder: str | Path, *, seed: int = 0, size: str = "tiny") -> Path:
    """
    Write the untrained model and its tokenizer to a folder.

    Args:
        folder (`str` or `Path`):
            Where to write; made if it does not exist.
        seed (`int`, *optional*, defaults to `0`):
            Seed of the random weights.
        size (`"tiny"` or `"mini"`, *optional*, defaults to `"tiny"`):
            About 0.8 or 0.25 million parameters; the tokenizer is the same.

    Returns:
        `Path`: the folder.
    """
    import torch
    from safetensors.torch import save_file
    from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

    tokenizer = build_tokenizer()
    eos, pad = (tokenizer.get_vocab()[token] for token in (EOS, PAD))
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        **_SIZES[size],
        head_dim=32,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=eos,
        pad_token_id=pad,
        use_cache=True,
        architectures=["Qwen3ForCausalLM"],
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(config)
    model.generation_config = GenerationConfig(eos_token_id=eos, pad_token_id=pad, do_sample=True)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # Not `model.save_pretrained`, which writes in the first process of a distributed run only.
    weights = {name: tensor for name, tensor in model.state_dict().items() if name != "lm_head.weight"}  # tied
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    for part in (config, model.generation_config, tokenizer):
        part.save_pretrained(folder)
    return folder


def _untrained_folder(size: str) -> Path:
    """The untrained model in the cache folder, made once; the rename makes two processes safe."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "trl_reasoning"
    folder = cache / f"{size}-untrained-v1"
    if not (folder / "config.json").exists():
        scratch = build_tiny(cache / f"{size}-untrained-{os.getpid()}", size=size)
        try:
            scratch.rename(folder)
        except OSError:  # another process was first
            if not (folder / "config.json").exists():
                raise
    return folder
