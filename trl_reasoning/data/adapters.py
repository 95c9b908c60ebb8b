"""Ready-made mappings from the columns of public data sets to the standard columns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .dialogues import convert_hh_rlhf, convert_nectar, convert_ultrafeedback
from .errors import DataError
from .problems import (
    convert_countdown,
    convert_deepmath,
    convert_gsm8k,
    convert_math,
    convert_openr1_math,
    convert_svamp,
)
from .rows import Row, map_rows


if TYPE_CHECKING:
    from datasets import Dataset

_PROBLEM = {"question": "string", "rationale": "string", "solution": "string"}
_PAIR = {"prompt": "messages", "chosen": "messages", "rejected": "messages"}


@dataclass(frozen=True)
class Adapter:
    """
    A mapping from one data set's columns to the standard ones. Call it on a data set.

    Args:
        name (`str`):
            Name in recipes.
        summary (`str`):
            One line: which data set, and what becomes of its columns.
        needs (`tuple[str, ...]`):
            Columns that must be there.
        convert (`Callable[[Row], Row]`):
            Gives the standard columns of one row, or raises a `DataError`.
        outputs (`dict[str, str]`):
            The standard columns and their types.
        keeps (`tuple[str, ...]`, *optional*):
            Columns passed on where they exist.
    """

    name: str
    summary: str
    needs: tuple[str, ...]
    convert: Callable[[Row], Row]
    outputs: dict[str, str]
    keeps: tuple[str, ...] = ()

    def __call__(self, dataset: "Dataset") -> "Dataset":
        missing = [column for column in self.needs if column not in dataset.column_names]
        if missing:
            raise DataError(
                f"datasets: adapter {self.name!r} needs the columns {', '.join(self.needs)}, and {', '.join(missing)} "
                f"is missing (found: {', '.join(dataset.column_names)}); rename with "
                f"`columns: {{{missing[0]}: <their name>}}` or choose another adapter"
            )
        return map_rows(
            dataset, self.convert, outputs=self.outputs, keeps=self.keeps, label=f"datasets: adapter {self.name!r}"
        )


_ALL = (
    Adapter(
        "gsm8k",
        "GSM8K: the answer's worked text -> rationale, what follows #### -> solution",
        ("question", "answer"),
        convert_gsm8k,
        _PROBLEM,
    ),
    Adapter(
        "svamp",
        "SVAMP: Body + Question -> question, Answer (8.0) -> solution (8)",
        ("Body", "Question", "Answer"),
        convert_svamp,
        {"question": "string", "solution": "string"},
    ),
    Adapter(
        "math",
        "MATH: problem -> question, solution -> rationale, its last box -> solution, level -> difficulty (1 to 5)",
        ("problem", "solution"),
        convert_math,
        {**_PROBLEM, "difficulty": "int64"},
        keeps=("type",),
    ),
    Adapter(
        "countdown",
        "Countdown: nums and target -> question, target -> solution; both columns stay for a reward that checks them",
        ("target", "nums"),
        convert_countdown,
        {"question": "string", "solution": "string"},
        keeps=("target", "nums"),
    ),
    Adapter(
        "deepmath",
        "DeepMath-103K: final_answer -> solution, the thought of r1_solution_1 -> rationale, difficulty stays",
        ("question", "final_answer"),
        convert_deepmath,
        {**_PROBLEM, "difficulty": "float64"},
        keeps=("topic",),
    ),
    Adapter(
        "openr1_math",
        "OpenR1-Math: problem -> question, answer -> solution, the first verified generation's thought (else the "
        "written solution) -> rationale",
        ("problem", "answer", "solution"),
        convert_openr1_math,
        _PROBLEM,
        keeps=("problem_type", "source"),
    ),
    Adapter(
        "ultrafeedback",
        "UltraFeedback (binarized): chosen and rejected dialogues -> prompt, chosen, rejected messages",
        ("chosen", "rejected"),
        convert_ultrafeedback,
        _PAIR,
        keeps=("score_chosen", "score_rejected"),
    ),
    Adapter(
        "hh_rlhf",
        "HH-RLHF: chosen and rejected transcripts -> prompt, chosen, rejected messages, split at the last reply",
        ("chosen", "rejected"),
        convert_hh_rlhf,
        _PAIR,
    ),
    Adapter(
        "nectar",
        "Nectar: transcript and seven ranked answers -> prompt, replies messages and scores (minus the rank)",
        ("prompt", "answers"),
        convert_nectar,
        {"prompt": "messages", "replies": "list[messages]", "scores": "list[float64]"},
    ),
)

ADAPTERS: dict[str, Adapter] = {adapter.name: adapter for adapter in _ALL}
