"""Ready-made mappings from the columns of public data sets to the standard columns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .code_problems import convert_humaneval, convert_mbpp
from .dialogues import convert_hh_rlhf, convert_nectar, convert_ultrafeedback
from .errors import DataError
from .instructions import convert_ifeval, convert_rlvr_ifeval
from .problems import (
    convert_aime24,
    convert_amc23,
    convert_cmath,
    convert_countdown,
    convert_deepmath,
    convert_gsm8k,
    convert_math,
    convert_minerva_math,
    convert_olympiadbench,
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
        "amc23",
        "AMC 2023: problem -> question, answer (27.0) -> solution (27)",
        ("problem", "answer"),
        convert_amc23,
        {"question": "string", "solution": "string"},
    ),
    Adapter(
        "aime24",
        "AIME 2024: problem -> question, solution -> rationale, answer (025) -> solution (25)",
        ("problem", "solution", "answer"),
        convert_aime24,
        _PROBLEM,
    ),
    Adapter(
        "minerva_math",
        "Minerva's university science: problem -> question, solution -> rationale, its last box -> solution",
        ("problem", "solution"),
        convert_minerva_math,
        _PROBLEM,
        keeps=("type",),
    ),
    Adapter(
        "olympiadbench",
        "OlympiadBench: final_answer and unit -> solution, the first written solution -> rationale",
        ("question", "final_answer", "answer_type", "is_multiple_answer"),
        convert_olympiadbench,
        _PROBLEM,
        keeps=("answer_type", "is_multiple_answer", "unit", "subfield"),
    ),
    Adapter(
        "cmath",
        "CMATH: Chinese primary school problems, answer -> solution, grade -> difficulty (1 to 6)",
        ("question", "answer", "grade"),
        convert_cmath,
        {"question": "string", "solution": "string", "difficulty": "int64"},
    ),
    Adapter(
        "countdown",
        "Countdown: nums and target -> question, puzzle (it judges a reply), target -> solution; both columns stay",
        ("target", "nums"),
        convert_countdown,
        {"question": "string", "solution": "string", "puzzle": "string"},
        keeps=("target", "nums"),
    ),
    Adapter(
        "ifeval",
        "IFEval: prompt -> question, instruction_id_list and kwargs -> instructions (JSON text)",
        ("prompt", "instruction_id_list", "kwargs"),
        convert_ifeval,
        {"question": "string", "instructions": "string"},
    ),
    Adapter(
        "rlvr_ifeval",
        "RLVR-IFeval: the user's turn of messages -> question, ground_truth -> instructions (JSON text)",
        ("messages", "ground_truth"),
        convert_rlvr_ifeval,
        {"question": "string", "instructions": "string"},
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
        "humaneval",
        "HumanEval: prompt -> question and code_prompt, prompt + canonical_solution -> solution, test -> tests; "
        "for the reward code_tests",
        ("prompt", "canonical_solution", "test", "entry_point"),
        convert_humaneval,
        {
            "question": "string",
            "solution": "string",
            "tests": "list[string]",
            "entry_point": "string",
            "code_prompt": "string",
        },
        keeps=("task_id",),
    ),
    Adapter(
        "mbpp",
        "MBPP: text and the first test -> question, code -> solution, test_list -> tests; for the reward code_tests",
        ("text", "code", "test_list"),
        convert_mbpp,
        {"question": "string", "solution": "string", "tests": "list[string]", "test_setup": "string"},
        keeps=("task_id",),
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
