"""Check that golds verify against themselves and other honest spellings, and not against golds of other rows."""

import random
import re
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

from trl_reasoning.answers import verify_batch
from trl_reasoning.data import check_golds, load_source


FOLDER = Path(__file__).resolve().parent
_INTEGER = re.compile(r"-?\d+\Z")
_DECIMAL = re.compile(r"-?\d+\.\d+\Z")
_SCIENTIFIC = re.compile(r"(-?\d+(?:\.\d+)?)e(-?\d+)\Z")
_SLASH = re.compile(r"(-?)(\d+)/(\d+)\Z")
_UNITS = ("apples", "cm", "dollars")


def measure(_name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """
    Check all golds of all sets.

    Args:
        _name (`str`):
            Name of the experiment.
        settings (`dict[str, Any]`):
            `data` (folder), `sets` (file name and adapter), `others` (pairs a row) and `seeds` (the first draws them).

    Returns:
        `tuple[dict[str, Any], str]`: per set the rows, failures by row, spellings and pairs; and a summary.
    """
    folder, draw = FOLDER.parent / settings["data"], random.Random(settings["seeds"][0])
    figures = {}
    for name, adapter in settings["sets"].items():
        dataset = load_source({"path": str(folder / f"{name}.jsonl"), "adapter": adapter})
        started = time.monotonic()
        report = check_golds(dataset, limit=1.0, max_rows=None)
        failing = {failure.row for failure in report.failures}
        golds = [gold for row, gold in enumerate(dataset["solution"]) if row not in failing]
        spelled = [(text, gold) for gold in golds for text in spellings(gold)]
        others = [(rf"\boxed{{{other}}}", gold) for gold in golds for other in draw.sample(golds, settings["others"])]
        others = [(text, gold) for text, gold in others if text != rf"\boxed{{{gold}}}"]
        missed, accepted = _outcomes(spelled, is_right=False), _outcomes(others, is_right=True)
        figures[name] = {
            "rows": report.checked,
            "self_verifying": report.checked - len(failing),
            "failing_rows": [vars(failure) for failure in report.failures],
            "spellings": len(spelled),
            "spellings_not_right": missed,
            "pairs_of_rows": len(others),
            "pairs_right": accepted,
            "seconds": round(time.monotonic() - started, 1),
        }
    return figures, "; ".join(
        f"{name} {found['self_verifying']}/{found['rows']} golds, "
        f"{found['spellings'] - len(found['spellings_not_right'])}/{found['spellings']} spellings, "
        f"{len(found['pairs_right'])} of {found['pairs_of_rows']} pairs right"
        for name, found in figures.items()
    )


def spellings(gold: str) -> list[str]:
    """Completions that give the gold in another honest spelling."""
    texts = [
        f"<think>a thought</think>The answer is ${gold}$.",
        rf"**Answer:** \boxed{{{gold}}}",
        f"so\n#### {gold}",
        *(rf"So $\boxed{{{text}}}$." for text in _values(gold.strip().strip("$"))),
    ]
    return [text for text in texts if gold not in ("", text)]


def _values(gold: str) -> list[str]:
    values = [rf"\mathbf{{{gold}}}", f" {gold} "]
    if _INTEGER.match(gold):
        values += [f"{int(gold):,}", f"{gold}.0", rf"\${gold}", rf"x = {gold}", f"{2 * int(gold)}/2", f"{gold}."]
        values += [rf"{gold}\text{{ {unit}}}" for unit in _UNITS] + [f"{gold} {unit}" for unit in _UNITS]
    elif _DECIMAL.match(gold):
        number = Fraction(gold)
        values += [f"{gold}0", rf"\frac{{{number.numerator}}}{{{number.denominator}}}", f"{gold} cm"]
    elif scientific := _SCIENTIFIC.match(gold):
        mantissa, power = scientific.groups()
        values += [rf"{mantissa} \times 10^{{{power}}}", f"{mantissa} \\cdot 10^{power}", f"{gold.upper()}"]
    elif slash := _SLASH.match(gold):
        sign, above, below = slash.groups()
        values += [rf"{sign}\frac{{{above}}}{{{below}}}", rf"\dfrac{{{sign}{above}}}{{{below}}}", f"{gold} km"]
    else:
        values += [gold.replace(r"\frac", r"\dfrac"), gold.replace(" ", "") if "\\" not in gold else gold + " "]
        values += [re.sub(r"(?<!\\left)\(", r"\\left(", re.sub(r"(?<!\\right)\)", r"\\right)", gold))]
        parts = re.split(r"\s*,\s*", gold)
        if len(parts) > 1 and not re.search(r"[()\[\]{}]", gold):
            values += [", ".join(reversed(parts)), " and ".join(parts), rf"\{{{', '.join(parts)}\}}"]
    return values


def _outcomes(pairs: list[tuple[str, str]], *, is_right: bool) -> list[list[str]]:
    """The pairs that are right, or those that are not, each with its verdict."""
    verdicts = verify_batch([text for text, _ in pairs], [gold for _, gold in pairs])
    return [
        [text, gold, verdict.status, verdict.rule]
        for (text, gold), verdict in zip(pairs, verdicts, strict=True)
        if verdict.is_right is is_right
    ]
