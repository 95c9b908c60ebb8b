"""The verdicts of a batch of samples: by the rules of the row's own task where it has some, else by its gold."""

from collections.abc import Sequence

from ..answers import Verdict, verify_batch
from ..rewards.puzzles import judge_puzzles


def judge_texts(
    texts: Sequence[str],
    golds: Sequence[str | None],
    puzzles: Sequence[str | None],
    opened: Sequence[bool],
    *,
    kind: str = "auto",
) -> list[Verdict]:
    """
    Judge samples.

    Args:
        texts (`Sequence[str]`):
            Completions with think tags.
        golds (`Sequence[str | None]`):
            Gold answer of each.
        puzzles (`Sequence[str | None]`):
            Entry of a task of reasoning-gym (column `puzzle`); such a row is judged by its task's scorer and is right
            with the full score alone. `None` for any other row.
        opened (`Sequence[bool]`):
            Whether each prompt ended inside the thought.
        kind (`str`, *optional*, defaults to `"auto"`):
            What the golds are, see [`~trl_reasoning.answers.verify`].

    Returns:
        `list[Verdict]`
    """
    rows = [row for row, puzzle in enumerate(puzzles) if puzzle is not None]
    judged, _ = judge_puzzles(
        [texts[row] for row in rows], [puzzles[row] for row in rows], [opened[row] for row in rows]
    )
    verdicts = dict(zip(rows, judged, strict=True))
    others = [row for row in range(len(texts)) if row not in verdicts]
    checked = verify_batch(
        [texts[row] for row in others],
        [golds[row] for row in others],
        kind=kind,
        opened=[opened[row] for row in others],
    )
    verdicts.update(zip(others, checked, strict=True))
    return [verdicts[row] for row in range(len(texts))]
