"""`builtin:sums`: sums in words for a small instruction-tuned model that answers in a few tokens."""

import random
from typing import TYPE_CHECKING

from ..errors import UserError
from .chain import SPLITS, split_of


if TYPE_CHECKING:
    from datasets import Dataset


def make_sums_dataset(
    split: str = "train", *, size: int | None = None, low: int = 2, high: int = 20, seed: int = 0
) -> "Dataset":
    """
    Questions such as "What is 7 + 5? Reply with the number only.", every ordered pair once, shuffled.

    Args:
        split (`str`, *optional*, defaults to `"train"`):
            `"train"` or `"heldout"`, decided by a hash of the question's text: the two cannot overlap.
        size (`int`, *optional*):
            Number of rows; all questions of the split by default.
        low (`int`, *optional*, defaults to `2`):
            Least operand.
        high (`int`, *optional*, defaults to `20`):
            Greatest operand.
        seed (`int`, *optional*, defaults to `0`):
            Seed of the order.

    Returns:
        [`~datasets.Dataset`] with the columns `question`, `prompt` (messages), `completion` (messages), `solution`
        (`str`) and `difficulty` (number of digits of the sum).

    Raises:
        [`~trl_reasoning.errors.UserError`]: for an unknown split, an empty range, or more rows than the split has
            questions.
    """
    from datasets import Dataset

    if split not in SPLITS:
        raise UserError(f"split: expected one of {list(SPLITS)}, got {split!r}")
    if high < low:
        raise UserError(f"high: expected at least low ({low}), got {high}")
    rows = []
    for left in range(low, high + 1):
        for right in range(low, high + 1):
            question = f"What is {left} + {right}? Reply with the number only."
            if split_of(question) != split:
                continue
            answer = str(left + right)
            rows.append(
                {
                    "question": question,
                    "prompt": [{"role": "user", "content": question}],
                    "completion": [{"role": "assistant", "content": answer}],
                    "solution": answer,
                    "difficulty": len(answer),
                }
            )
    if size is not None and not 1 <= size <= len(rows):
        raise UserError(f"size: the split {split!r} has {len(rows)} questions from {low} to {high}, got {size}")
    random.Random(f"sums-{split}-{seed}").shuffle(rows)
    return Dataset.from_list(rows[:size])
