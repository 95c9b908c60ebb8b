"""`builtin:chain_pairs`: two replies to a chain question, one preferred, with a length bias of a chosen size."""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from .chain import SPLITS, ChainQuestions, chain_steps, operand_counts, write_steps


if TYPE_CHECKING:
    from datasets import Dataset

Steps = list[tuple[int, str, int, int]]
_REPEATS = 3
# A wrong result is at most this far from the right one.
_SLIP = 6


def make_chain_pairs_dataset(
    split: str = "train",
    *,
    size: int = 1000,
    operands: int | Sequence[int] = (2, 7),
    seed: int = 0,
    length_bias: float = 0.0,
    long_share: float = 0.0,
    noise: float = 0.0,
    guess_share: float = 0.0,
    unique: bool = False,
) -> "Dataset":
    """
    Preference pairs on chain arithmetic in which length counts as much as is asked for.

    A reply has one of two forms: short (one line a step) or long (the same lines, and then sixteen dots that say
    nothing). There are three kinds of pairs:

    - `right`, a share of `1 - length_bias`: a right reply is preferred over a wrong one of the same form. The wrong
      one has a slip in one step, carried on to the answer, and as many characters in every line as the right one.
    - `longer`, a share of `length_bias`: both replies are right, and the long one is preferred over the short one.
    - `guess`, a share of `guess_share` of the pairs of the kind `right`: the wrong reply has an empty thought, as
      `builtin:tiny` writes it in four of ten cases.

    So with `length_bias` 0 the two replies of every pair are equally long, and correctness is all that tells them
    apart; with a bias, length is a second signal that has nothing to do with the first one. Splits are those of
    [`make_chain_dataset`]: held-out questions never occur among the training ones.

    Args:
        split (`str`, *optional*, defaults to `"train"`):
            `"train"` or `"heldout"`.
        size (`int`, *optional*, defaults to `1000`):
            Number of pairs.
        operands (`int` or `Sequence[int]`, *optional*, defaults to `(2, 7)`):
            One number of operands, or the least and the most (both included), at least 2.
        seed (`int`, *optional*, defaults to `0`):
            Seed of questions, kinds, forms, slips and noise.
        length_bias (`float`, *optional*, defaults to `0.0`):
            Share of pairs of the kind `longer`, in [0, 1].
        long_share (`float`, *optional*, defaults to `0.0`):
            Share of the pairs of the kind `right` whose two replies are both long, in [0, 1].
        noise (`float`, *optional*, defaults to `0.0`):
            Share of pairs, of any kind, whose two replies are swapped, in [0, 1].
        guess_share (`float`, *optional*, defaults to `0.0`):
            Share of the pairs of the kind `right` that become `guess`, in [0, 1]. The others stay as they are.
        unique (`bool`, *optional*, defaults to `False`):
            Whether running out of questions is an error, as in [`make_chain_dataset`].

    Returns:
        [`~datasets.Dataset`] with the columns `question`, `prompt`, `chosen`, `rejected` (messages), `solution`
        (`str`), `difficulty` (number of operands) and `pair_kind` (`right`, `longer` or `guess`).

    Raises:
        [`~trl_reasoning.errors.UserError`]: for an unknown split, an impossible range or share, or too few questions
            for unique rows.
    """
    from datasets import Dataset

    if split not in SPLITS:
        raise UserError(f"split: expected one of {list(SPLITS)}, got {split!r}")
    if size < 1:
        raise UserError(f"size: expected at least 1 row, got {size}")
    shares = {"length_bias": length_bias, "long_share": long_share, "noise": noise, "guess_share": guess_share}
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise UserError(f"{name}: expected a share in [0, 1], got {share}")
    counts = operand_counts(operands)
    rng = random.Random(f"chain-pairs-{split}-{seed}")
    # Draws of its own: a share of guesses changes no other pair.
    guess_rng = random.Random(f"chain-pairs-guesses-{split}-{seed}")
    pool = ChainQuestions(rng, split, no_repeats=unique or split == "heldout", unique=unique)
    rows = []
    for index in range(size):
        count = counts[index % len(counts)]
        question = pool.draw(count)
        steps = chain_steps(question)
        # Each row draws the same numbers whatever the shares are: sets of one seed differ in the pairs that change.
        is_longer, is_long, is_swapped = (rng.random() < share for share in (length_bias, long_share, noise))
        slipped = rng.choice(equal_length_slips(steps))
        is_guess = guess_rng.random() < guess_share and not is_longer
        if is_longer:
            better, worse = _reply(steps, is_long=True), _reply(steps, is_long=False)
        elif is_guess:
            better, worse = _reply(steps, is_long=is_long), _guess(slipped)
        else:
            better, worse = (_reply(work, is_long=is_long) for work in (steps, slipped))
        chosen, rejected = (worse, better) if is_swapped else (better, worse)
        rows.append(
            {
                "question": question,
                "prompt": [{"role": "user", "content": question}],
                "chosen": chosen,
                "rejected": rejected,
                "solution": str(steps[-1][3]),
                "difficulty": count,
                "pair_kind": "longer" if is_longer else "guess" if is_guess else "right",
            }
        )
    return Dataset.from_list(rows)


def equal_length_slips(steps: Steps) -> list[Steps]:
    """
    Every way to get one step wrong and carry it on, with lines as long as the right ones and a wrong answer.

    Args:
        steps (`list[tuple[int, str, int, int]]`):
            Of [`chain_steps`].

    Returns:
        `list[list[tuple[int, str, int, int]]]`: the slipped steps, at least one: the last result can always be another
        number of as many digits.

    Example:

    ```python
    >>> [slip[-1][3] for slip in equal_length_slips([(7, "+", 5, 12)])]
    [10, 11, 13, 14, 15, 16, 17, 18]

    ```
    """
    lengths = [len(write_steps([step])) for step in steps]
    slips = []
    for place, (_, _, _, right) in enumerate(steps):
        for wrong in range(max(0, right - _SLIP), right + _SLIP + 1):
            slipped = _carried(steps, place, wrong)
            is_wrong = slipped[-1][3] != steps[-1][3]
            has_lengths = [len(write_steps([step])) for step in slipped] == lengths
            if is_wrong and has_lengths and all(step[3] >= 0 for step in slipped):
                slips.append(slipped)
    return slips


def _carried(steps: Steps, place: int, wrong: int) -> Steps:
    """The steps with this result at this place, which the later ones take over."""
    slipped, total = [], steps[0][0]
    for index, (_, operator, number, _) in enumerate(steps):
        result = total + number if operator == "+" else total - number
        result = wrong if index == place else result
        slipped.append((total, operator, number, result))
        total = result
    return slipped


def _reply(steps: Steps, *, is_long: bool) -> list[dict[str, Any]]:
    """An assistant message with the steps, the last one repeated or not, and their result."""
    thought = write_steps([*steps, *[steps[-1]] * _REPEATS] if is_long else steps)
    return [{"role": "assistant", "content": f"<think>{thought}</think>{steps[-1][3]}"}]


def _guess(steps: Steps) -> list[dict[str, Any]]:
    """An assistant message with an empty thought and the result of the steps."""
    return [{"role": "assistant", "content": f"<think></think>{steps[-1][3]}"}]
