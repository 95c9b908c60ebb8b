"""
The embedded default: a task, a tokenizer and a small trained base model that ship with the package.

`builtin:chain` is arithmetic over a chain of operands, `builtin:chain_pairs` has two replies to each of its questions,
one of them preferred, `builtin:chain_steps` has worked solutions with a label for each step, `builtin:sums` asks for
sums in words, and `builtin:tiny` is a Qwen3-architecture model of about one million parameters whose base checkpoint
was made by `recipes/quickstart/tiny_base.yaml`. With them every method, recipe and command can be tried on a laptop
CPU in minutes and without a model hub.
"""

from collections.abc import Callable

from .chain import chain_steps, make_chain_dataset
from .pairs import make_chain_pairs_dataset
from .steps import make_chain_steps_dataset
from .sums import make_sums_dataset
from .tiny import BUILTIN_MODELS, build_tiny, resolve_model


BUILTIN_TASKS: dict[str, Callable] = {
    "chain": make_chain_dataset,
    "chain_pairs": make_chain_pairs_dataset,
    "chain_steps": make_chain_steps_dataset,
    "sums": make_sums_dataset,
}

__all__ = [
    "BUILTIN_MODELS",
    "BUILTIN_TASKS",
    "build_tiny",
    "chain_steps",
    "make_chain_dataset",
    "make_chain_pairs_dataset",
    "make_chain_steps_dataset",
    "make_sums_dataset",
    "resolve_model",
]
