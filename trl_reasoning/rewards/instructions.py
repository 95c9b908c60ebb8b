"""Reward for instructions that a program can verify: length, keywords, format, case, language."""

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from ..answers.verdict import Status, Verdict
from ..errors import did_you_mean
from ..text import visible_answer
from ._instruction_checks import CHECKS
from ._reward import Completion, LogExtra, LogMetric, Reward, read_rows
from ._verdicts import log_verdicts


Credit = Literal["all", "share"]
Instruction = tuple[str, dict[str, Any]]
INSTRUCTIONS = "instructions"
"""Column with the instructions of a prompt, as JSON text."""


def make_instructions_reward(credit: Credit = "all", loose: bool = False) -> Reward:
    """
    Make the instructions reward: whether the visible answer follows the instructions of its prompt.

    The instructions and their arguments are those of Google's IFEval data; the adapters `ifeval` and `rlvr_ifeval`
    make the column. Only the visible answer counts (what follows the thought), and an empty one follows none. A row
    whose instructions cannot be read gets `None`.

    Args:
        credit (`str`, *optional*, defaults to `"all"`):
            `"all"`: 1 where every instruction is followed, else 0 (IFEval's prompt level); `"share"`: the share of the
            instructions that are followed.
        loose (`bool`, *optional*, defaults to `False`):
            Whether an instruction counts as followed, too, when it is followed without the first line, the last line,
            both or any asterisks (IFEval's loose criterion). As a reward it invites such lines.

    Returns:
        [`Reward`]: needs the column `instructions`.

    Raises:
        ValueError: when `credit` is unknown.

    Reference: Instruction-Following Evaluation for Large Language Models (https://huggingface.co/papers/2311.07911),
    section 2; as a reward: Tulu 3 (https://huggingface.co/papers/2411.15124), section 6.

    Example:

    ```python
    >>> instructions = write_instructions(["punctuation:no_comma", "startend:quotation"], [{}, {}])
    >>> completions = ["<think>Hm, yes</think>\\"Yes\\"", "Yes", "Well, yes"]
    >>> make_instructions_reward("share")(["?"] * 3, completions, [[1]] * 3, instructions=[instructions] * 3)
    [1.0, 0.5, 0.0]

    ```
    """
    if credit not in get_args(Credit):
        hint = did_you_mean(str(credit), get_args(Credit))
        raise ValueError(f"credit: expected one of {', '.join(get_args(Credit))}, got {credit!r}.{hint}")
    return _InstructionsReward(credit, loose)


def write_instructions(ids: Sequence[str], arguments: Sequence[Mapping[str, Any] | None]) -> str:
    """
    The column `instructions` of one row, checked.

    Args:
        ids (`Sequence[str]`):
            Names such as `"length_constraints:number_words"`.
        arguments (`Sequence[Mapping[str, Any]]`):
            Arguments of each, for instance `{"num_words": 100, "relation": "less than"}`; those that are `None` count
            as absent.

    Returns:
        `str`: JSON text.

    Raises:
        ValueError: for an unknown instruction or argument, and for a missing one.
    """
    if len(ids) != len(arguments) or not ids:
        raise ValueError(f"expected as many instructions as arguments, and one or more, got {len(ids)}")
    rows = []
    for name, given in zip(ids, arguments, strict=True):
        kwargs = {key: value for key, value in (given or {}).items() if value is not None}
        _check(name, kwargs)
        rows.append({"id": name, "kwargs": kwargs})
    return json.dumps(rows, ensure_ascii=False)


def read_instructions(text: Any) -> list[Instruction]:
    """
    Read what [`write_instructions`] wrote.

    Raises:
        ValueError: it cannot be read.
    """
    try:
        found = [(row["id"], dict(row["kwargs"])) for row in json.loads(text)]
    except (TypeError, KeyError, RecursionError, ValueError) as error:
        raise ValueError(f"no instructions: {str(text)[:80]!r}") from error
    if not found:
        raise ValueError("no instructions: an empty list")
    for name, kwargs in found:
        _check(name, kwargs)
    return found


def follows(answer: str, name: str, kwargs: Mapping[str, Any], *, loose: bool = False) -> bool:
    """
    Whether a visible answer follows one instruction.

    Example:

    ```python
    >>> follows("one two three", "length_constraints:number_words", {"num_words": 3, "relation": "at least"})
    True

    ```
    """
    texts = _loose_texts(answer) if loose else [answer]
    return any(text.strip() and CHECKS[name](text, **kwargs) for text in texts)


def _check(name: str, kwargs: Mapping[str, Any]) -> None:
    if name not in CHECKS:
        raise ValueError(f"unknown instruction {name!r}.{did_you_mean(str(name), CHECKS)}")
    parameters = list(inspect.signature(CHECKS[name]).parameters.values())[1:]
    required = [parameter.name for parameter in parameters if parameter.default is inspect.Parameter.empty]
    known = [parameter.name for parameter in parameters]
    if not set(required) <= kwargs.keys() or not kwargs.keys() <= set(known):
        raise ValueError(
            f"{name}: expected the arguments {', '.join(known) or 'none'}, got {', '.join(kwargs) or '-'}"
        )
    try:
        CHECKS[name]("An answer.", **kwargs)
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{name}: an argument of a wrong type: {dict(kwargs)!r}") from error


def _loose_texts(text: str) -> list[str]:
    lines = text.strip().split("\n")
    cut = [text, *("\n".join(lines[part]).strip() for part in (slice(1, None), slice(-1), slice(1, -1)))]
    return cut + [re.sub(r"\*", "", part) for part in cut]


class _InstructionsReward:
    __name__ = "instructions_reward"
    columns: tuple[str, ...] = (INSTRUCTIONS,)

    def __init__(self, credit: Credit, loose: bool):
        self.credit: Credit = credit
        self.loose = loose

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        *,
        instructions: Sequence[str | None],
        thought_opened: Sequence[bool | None] | None = None,
        log_metric: LogMetric | None = None,
        log_extra: LogExtra | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        texts, opened = read_rows(completions, thought_opened)
        scores: list[float | None] = []
        verdicts = []
        for text, is_open, row in zip(texts, opened, instructions, strict=True):
            answer = visible_answer(text, opened=is_open)
            status: Status
            try:
                wanted = read_instructions(row)
            except ValueError:
                status, score = "unreadable_gold", None
            else:
                followed = [follows(answer, name, given, loose=self.loose) for name, given in wanted]
                status = "right" if all(followed) else "wrong" if answer else "unparsed"
                score = float(all(followed)) if self.credit == "all" else sum(followed) / len(followed)
            scores.append(score)
            verdicts.append(Verdict(status, answer or None, row, "instructions"))
        log_verdicts(verdicts, completion_ids, log_metric, log_extra)
        return scores
