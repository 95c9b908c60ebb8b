"""`builtin:chain`: chains of additions and subtractions, where thinking pays and longer chains are harder."""

import hashlib
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import UserError


if TYPE_CHECKING:
    from datasets import Dataset

SPLITS = ("train", "heldout")
STYLES = ("careful", "leaping", "wrong", "recheck", "guess")
# One question in ten is held out. The split is a property of the question's text, so no seed can make the two overlap.
_HELDOUT_SHARE = 10
# Questions with few operands run out: nothing new in this many draws in a row counts as that.
_MAX_DRAWS = 2000


def chain_steps(question: str) -> list[tuple[int, str, int, int]]:
    """
    The left-to-right steps of a chain question.

    Args:
        question (`str`):
            For instance `"7+5-3=?"`.

    Returns:
        `list[tuple[int, str, int, int]]`: one `(left, operator, right, result)` per operation.

    Example:

    ```python
    >>> chain_steps("7+5-3=?")
    [(7, '+', 5, 12), (12, '-', 3, 9)]

    ```
    """
    body = question.removesuffix("=?")
    numbers = [int(part) for part in body.replace("-", "+").split("+")]
    operators = [char for char in body if char in "+-"]
    steps, total = [], numbers[0]
    for operator, number in zip(operators, numbers[1:], strict=True):
        result = total + number if operator == "+" else total - number
        steps.append((total, operator, number, result))
        total = result
    return steps


def make_chain_dataset(
    split: str = "train",
    *,
    size: int = 1000,
    operands: int | Sequence[int] = (2, 7),
    seed: int = 0,
    styles: dict[str, float] | None = None,
    guess_accuracy: float = 0.2,
    unique: bool = False,
) -> "Dataset":
    """
    Chain arithmetic problems with worked thoughts, from a seed.

    Operands are 1 to 9 and no running total falls below 0. Rows go round the operand counts in turn, so that each
    difficulty has the same number of rows. Which split a question belongs to is decided by a hash of its text: train
    and held-out sets cannot overlap, whatever their seeds and sizes.

    Args:
        split (`str`, *optional*, defaults to `"train"`):
            `"train"` or `"heldout"`.
        size (`int`, *optional*, defaults to `1000`):
            Number of rows.
        operands (`int` or `Sequence[int]`, *optional*, defaults to `(2, 7)`):
            One number of operands, or the least and the most (both included), at least 2.
        seed (`int`, *optional*, defaults to `0`):
            Seed of questions, styles and guesses.
        styles (`dict[str, float]`, *optional*, defaults to `{"careful": 1.0}`):
            Shares of the worked thoughts: `careful` (one operation a step), `leaping` (two operations a step), `wrong`
            (one wrong step, carried on to a wrong answer), `recheck` (careful, then every step once more) and `guess`
            (an empty thought and a guess). The shares are weights; they need not add up to 1.
        guess_accuracy (`float`, *optional*, defaults to `0.2`):
            Share of guesses that happen to be right, in [0, 1].
        unique (`bool`, *optional*, defaults to `False`):
            Whether running out of questions is an error (there are 126 with two operands). Otherwise held-out
            questions repeat only once all are used, and training questions as the draw falls.

    Returns:
        [`~datasets.Dataset`] with the columns `question`, `prompt` (messages), `completion` (messages), `solution`
        (`str`), `difficulty` (number of operands) and `style`.

    Raises:
        [`~trl_reasoning.errors.UserError`]: for an unknown split or style, an impossible range, or too few questions
            for unique rows.
    """
    from datasets import Dataset

    if split not in SPLITS:
        raise UserError(f"split: expected one of {list(SPLITS)}, got {split!r}")
    counts = operand_counts(operands)
    shares = {"careful": 1.0} if styles is None else dict(styles)
    _check_styles(shares)
    if size < 1:
        raise UserError(f"size: expected at least 1 row, got {size}")
    if not 0 <= guess_accuracy <= 1:
        raise UserError(f"guess_accuracy: expected a share in [0, 1], got {guess_accuracy}")

    rng = random.Random(f"chain-{split}-{seed}")
    pool = ChainQuestions(rng, split, no_repeats=unique or split == "heldout", unique=unique)
    rows = []
    for index in range(size):
        count = counts[index % len(counts)]
        question = pool.draw(count)
        style = rng.choices(list(shares), weights=list(shares.values()))[0]
        thought, answer = _work(question, style, rng, guess_accuracy)
        rows.append(
            {
                "question": question,
                "prompt": [{"role": "user", "content": question}],
                "completion": [{"role": "assistant", "content": f"<think>{thought}</think>{answer}"}],
                "solution": str(chain_steps(question)[-1][3]),
                "difficulty": count,
                "style": style,
            }
        )
    return Dataset.from_list(rows)


def operand_counts(operands: int | Sequence[int]) -> list[int]:
    """The numbers of operands that rows go round."""
    low, high = (operands, operands) if isinstance(operands, int) else (operands[0], operands[-1])
    if low < 2 or high < low:
        raise UserError(f"operands: expected 2 <= least <= most, got {operands}")
    return list(range(low, high + 1))


def _check_styles(shares: dict[str, float]) -> None:
    unknown = sorted(set(shares) - set(STYLES))
    if unknown:
        raise UserError(f"styles: unknown {unknown}, expected some of {list(STYLES)}")
    if any(share < 0 for share in shares.values()) or sum(shares.values()) <= 0:
        raise UserError(f"styles: expected shares >= 0 with a positive sum, got {shares}")


class ChainQuestions:
    """Draws the questions of one split; without repeats, while there are new ones."""

    def __init__(self, rng: random.Random, split: str, *, no_repeats: bool, unique: bool):
        self.rng = rng
        self.split = split
        self.no_repeats = no_repeats
        self.unique = unique
        self.seen: set[str] = set()
        self.exhausted: set[int] = set()  # operand counts

    def draw(self, count: int) -> str:
        """A question with this many operands."""
        if self.no_repeats and count not in self.exhausted:
            for _ in range(_MAX_DRAWS):
                question = self._draw_any(count)
                if question not in self.seen:
                    self.seen.add(question)
                    return question
            if self.unique:
                raise UserError(
                    f"size: the split {self.split!r} has no further question with {count} operands; ask for fewer "
                    "rows, for more operands, or set unique to false"
                )
            self.exhausted.add(count)
        return self._draw_any(count)

    def _draw_any(self, count: int) -> str:
        while True:
            total = self.rng.randint(1, 9)
            question = str(total)
            for _ in range(count - 1):
                number = self.rng.randint(1, 9)
                operator = "-" if number <= total and self.rng.random() < 0.5 else "+"
                total = total + number if operator == "+" else total - number
                question += f"{operator}{number}"
            question += "=?"
            if split_of(question) == self.split:
                return question


def split_of(question: str) -> str:
    """The split that a question belongs to, by a hash of its text."""
    digest = hashlib.sha256(question.encode()).digest()
    return "heldout" if digest[0] % _HELDOUT_SHARE == 0 else "train"


def _work(question: str, style: str, rng: random.Random, guess_accuracy: float) -> tuple[str, int]:
    """The thought and the answer that a worker of this style writes."""
    steps = chain_steps(question)
    answer = steps[-1][3]
    if style == "guess":
        return "", answer if rng.random() < guess_accuracy else _near(answer, rng)
    if style == "wrong":
        steps = _with_slip(steps, rng)
        return write_steps(steps), steps[-1][3]
    if style == "leaping":
        return _leaps(steps), answer
    if style == "recheck":
        return f"{write_steps(steps)}\ncheck\n{write_steps(steps)}", answer
    return write_steps(steps), answer


def _near(answer: int, rng: random.Random) -> int:
    """A wrong value at most 6 away, never negative."""
    return rng.choice([value for value in range(max(0, answer - 6), answer + 7) if value != answer])


def write_steps(steps: list[tuple[int, str, int, int]]) -> str:
    """One line a step."""
    return "\n".join(f"{left}{operator}{right}={result}" for left, operator, right, result in steps)


def _with_slip(steps: list[tuple[int, str, int, int]], rng: random.Random) -> list[tuple[int, str, int, int]]:
    """The same operations with one wrong result, which the later steps take over."""
    wrong_at = rng.randrange(len(steps))
    slipped, total = [], steps[0][0]
    for index, (_, operator, number, _) in enumerate(steps):
        result = total + number if operator == "+" else total - number
        if index == wrong_at:
            result = _near(max(result, 0), rng)
        slipped.append((total, operator, number, result))
        total = result
    return slipped


def _leaps(steps: list[tuple[int, str, int, int]]) -> str:
    """Two operations a line; a last single one stands alone."""
    lines = []
    for index in range(0, len(steps), 2):
        pair = steps[index : index + 2]
        left = pair[0][0]
        lines.append(f"{left}" + "".join(f"{step[1]}{step[2]}" for step in pair) + f"={pair[-1][3]}")
    return "\n".join(lines)
