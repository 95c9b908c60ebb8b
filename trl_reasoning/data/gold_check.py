"""Whether gold answers verify against themselves, checked when the data is loaded."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .columns import check_has, rename_hint
from .errors import DataError


if TYPE_CHECKING:
    from datasets import Dataset

_EXAMPLES = 3
# Columns that may hold the golds when the gold column does not, most telling first.
_OTHER_COLUMNS = ("answer", "final_answer", "gold", "ground_truth", "target", "label", "result", "solution")


@dataclass(frozen=True)
class GoldFailure:
    """
    A gold that does not verify against itself.

    Args:
        row (`int`):
            Its row.
        gold (`str` or `None`):
            Its text.
        status, rule (`str`):
            What the verdict says; `"control_character"` for a text that has lost a backslash.
    """

    row: int
    gold: str | None
    status: str
    rule: str


@dataclass(frozen=True)
class GoldReport:
    """
    What [`check_golds`] found.

    Args:
        column (`str`):
            The gold column.
        rows (`int`):
            Rows of the data set.
        checked (`int`):
            Golds that were checked.
        failures (`tuple[GoldFailure, ...]`):
            Those that do not verify against themselves.
    """

    column: str
    rows: int
    checked: int
    failures: tuple[GoldFailure, ...]

    @property
    def failing_share(self) -> float:
        """Failures over checked golds, in [0, 1]."""
        return len(self.failures) / self.checked if self.checked else 0.0

    def summary(self) -> str | None:
        """One line with the share and examples, or `None` when every gold verifies."""
        if not self.failures:
            return None
        examples = "; ".join(
            f"row {failure.row} ({failure.rule}): {_shortened(failure.gold)}" for failure in self.failures[:_EXAMPLES]
        )
        return (
            f"column `{self.column}`: {len(self.failures)} of {self.checked} golds do not verify against themselves "
            f"({self.failing_share:.1%}), so no answer to these rows scores; {examples}"
        )


def check_golds(
    dataset: "Dataset",
    column: str = "solution",
    limit: float = 0.02,
    *,
    kind: str = "auto",
    max_rows: int | None = 2000,
) -> GoldReport:
    """
    Check that each gold is a string, can be read as an answer, and is right when a model writes just it into a box.

    A gold that fails is a sample that no reward can score; a few are usual and only cost their samples, many mean that
    the wrong column was taken, or that its text is damaged.

    Args:
        dataset ([`~datasets.Dataset`]):
            Rows with the gold column.
        column (`str`, *optional*, defaults to `"solution"`):
            The gold column.
        limit (`float`, *optional*, defaults to `0.02`):
            Share of failing golds, in [0, 1], above which it is an error.
        kind (`str`, *optional*, defaults to `"auto"`):
            What the golds are, as in [`answers.verify`].
        max_rows (`int`, *optional*, defaults to `2000`):
            Check at most this many golds, spread evenly over the rows from row 0 on, because reading mathematics takes
            milliseconds each; `None` checks all. Types are checked in every row.

    Returns:
        [`GoldReport`]

    Raises:
        `DataError`: when a gold is not a string (with its row), or more than `limit` of them fail (with the likely
        cause).
    """
    check_has(dataset, column, "checking golds")
    # Every `step`-th row, so that at most `max_rows` are read.
    step = 1 if max_rows is None else max(1, -(-len(dataset) // max_rows))
    texts = []
    for row, gold in enumerate(dataset[column]):
        if gold is not None and not isinstance(gold, str):
            raise DataError(
                f"column `{column}`, row {row}: a gold should be a string, got {type(gold).__name__} {gold!r} (a "
                "column that mixes strings and numbers reads as numbers). Write each gold as text in the data, or set "
                f"`columns: {{{column}: {column}}}`, which turns numbers into text"
            )
        if row % step == 0:
            texts.append((row, gold))
    failures = _failures(texts, kind)
    report = GoldReport(column, len(dataset), len(texts), tuple(failures))
    if report.failing_share > limit:
        raise DataError(
            f"{report.summary()}. The limit is {limit:.1%} (`max_failing_golds`). "
            f"Likely cause: {_likely_cause(dataset, report, kind)}"
        )
    return report


def _failures(golds: list[tuple[int, str | None]], kind: str) -> list[GoldFailure]:
    from trl_reasoning.answers import has_control_character, self_check_batch

    verdicts = self_check_batch([gold for _, gold in golds], kind)
    return [
        GoldFailure(
            row, gold, verdict.status, "control_character" if has_control_character(gold or "") else verdict.rule
        )
        for (row, gold), verdict in zip(golds, verdicts, strict=True)
        if not verdict.is_right
    ]


def _likely_cause(dataset: "Dataset", report: GoldReport, kind: str) -> str:
    column, golds = report.column, [failure.gold for failure in report.failures]
    empty = sum(not (gold or "").strip() for gold in golds)
    if 2 * empty > len(golds):
        other = _filled_column(dataset, column)
        if other:
            row, text = other[1]
            return (
                f"column `{column}` is empty and column `{other[0]}` holds the answers (row {row}: "
                f"{_shortened(text)}). Set `columns: {{{column}: {other[0]}}}` in the source"
            )
        if empty < report.checked:
            return f"column `{column}` is empty in some rows; leave them out or fill them in"
        return f"column `{column}` is empty.{rename_hint(dataset, column)}"
    damaged = [failure for failure in report.failures if failure.rule == "control_character"]
    if 2 * len(damaged) > len(golds):
        return (
            r"the text holds control characters, as `\frac` becomes a form feed and `rac` in a plain "
            "string literal; write the data with raw strings or doubled backslashes"
        )
    if 2 * sum(len((gold or "").split()) > 6 for gold in golds) > len(golds):
        return (
            f"column `{column}` holds worked solutions without a marked answer (`#### 5`, "
            rf"`\boxed{{5}}`).{rename_hint(dataset, column)}"
        )
    if kind != "auto":
        return f"the answers are not what `kind: {kind}` of the reward says; without it each is read as it is"
    return f"another column holds the answers, or they are no mathematics.{rename_hint(dataset, column)}"


def _filled_column(dataset: "Dataset", column: str) -> tuple[str, tuple[int, str]] | None:
    """A column with readable answers, with its first row and text."""
    from trl_reasoning.answers import is_readable_gold

    for name in _OTHER_COLUMNS:
        if name == column or name not in dataset.column_names:
            continue
        for row, value in enumerate(dataset[name]):
            text = value if isinstance(value, str) else "" if value is None else str(value)
            if text.strip():
                if is_readable_gold(text):
                    return name, (row, text)
                break
    return None


def _shortened(gold: str | None) -> str:
    text = repr(gold)
    return text if len(text) <= 80 else f"{text[:77]}..."
