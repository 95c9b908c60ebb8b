"""The outcome of one check of an answer."""

from dataclasses import dataclass
from typing import Literal


Status = Literal["right", "wrong", "unparsed", "unreadable_gold", "timed_out"]


@dataclass(frozen=True)
class Verdict:
    """Outcome of [`verify`].

    Args:
        status (`str`):
            `"right"`, `"wrong"`, `"unparsed"` (the prediction has no readable answer), `"unreadable_gold"` (nothing
            can be said about this row) or `"timed_out"` (the comparison was too large or took too long).
        extracted (`str` or `None`):
            Answer text found in the prediction.
        gold (`str` or `None`):
            Gold answer as it was read.
        rule (`str`):
            What decided: `"string"`, `"text"`, `"choice"`, `"time"`, `"number"`, `"percent"`, `"unit"`,
            `"unevaluated"`, `"list"`, `"matrix"`, `"interval"`, `"equation"`, `"math"`, `"math_error"`, `"too_large"`,
            `"time_limit"`, `"no_answer"` or `"no_gold"`.
    """

    status: Status
    extracted: str | None
    gold: str | None
    rule: str

    @property
    def is_right(self) -> bool:
        """Whether the answer is right."""
        return self.status == "right"

    @property
    def score(self) -> float | None:
        """`1.0` when right, `None` when the gold cannot be read, else `0.0`."""
        if self.status == "unreadable_gold":
            return None
        return float(self.is_right)
