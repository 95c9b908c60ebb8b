"""Completions with a known verdict for the kinds of answers that `measure_verify_speed` compares."""

import json
import random
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from answer_cases import make_case, prediction_of

from trl_reasoning.answers.compare import split_items
from trl_reasoning.answers.formula import read
from trl_reasoning.answers.normalize import read_value
from trl_reasoning.data.golds import last_boxed


@dataclass(frozen=True)
class Check:
    """A completion, its gold and whether it is right; `None` where only a person could say."""

    prediction: str
    gold: str
    is_right: bool | None


HOSTILE = (
    (r"9^{9^{9^{9^9}}}", "1"),
    (r"\log_{3}(\log_{9}(\log_{27}(3^{3^{3^{3^{3}}}})))", "1"),
    (r"100000000!", "5"),
    (r"((2^{99999})^{99999})^{99999}", "3"),
    (r"(x+1)^{5000}", r"(x+1)^{5000}+1"),
    (r"\sum_{n=1}^{1000000000}\frac{1}{n^3}", "2"),
    (r"\prod_{k=1}^{10000000}(x+k)", "x"),
    (r"\{\#q7 8830 {2,2-5-11 ??(;7 ALPHA9 ", "41.07"),
    ("{" * 2000 + "1" + "}" * 2000, "2"),
    ("7" * 5000, "7"),
    (r"\frac{1}{" * 60 + "x" + "}" * 60, "2x"),
    (r"\sqrt{" * 100 + "2" + "}" * 100, "2"),
    (r"(x^{999}-1)(x^{998}-1)", r"(x^{999}-1)(x^{997}-1)(x+1)"),
    (r"(a+b+c+d)^{60}", r"(a+b+c+d)^{59}(a+b+c+e)"),
    (r"\lim_{n\to\infty}(1+1/n)^{n^{n}}", "e"),
    (r"\gcd(10^{500}!,7)", "7"),
    (r"\binom{10^9}{10^8}", "3"),
    (r"\int_0^{1} x^{x^{x^{x}}} dx", "3"),
)


def gsm8k_checks(folder: Path, draw: random.Random, count: int, *, thought: int = 0) -> list[Check]:
    """Answers to GSM8K after their own rationale, half of them wrong; a thought is repeated up to some length."""
    lines = (folder / "data" / "gsm8k_train.jsonl").read_text(encoding="utf-8").splitlines()
    checks = []
    for line in draw.sample(lines, count):
        rationale, _, gold = json.loads(line)["answer"].partition("####")
        gold, thoughts = gold.strip(), rationale.strip()
        while len(thoughts) < thought:
            thoughts += f"\nWait, let me check that again. {rationale.strip()}"
        value = Fraction(gold.replace(",", ""))
        is_right = draw.random() < 0.5
        answer = gold if is_right else str(draw.choice((value + 1, value - 1, 2 * value + 1, 10 * value + 3)))
        mark = draw.choice((r"\boxed{%s}", r"The answer is $\boxed{%s}$.", "The answer is %s.", "#### %s"))
        checks.append(Check(f"<think>{thoughts}</think>{mark.replace('%s', answer)}", gold, is_right))
    return checks


def math_golds(folder: Path) -> list[str]:
    """LaTeX golds of minerva_math, olympiadbench and amc23."""
    data = folder / "data"
    golds = [
        answer
        for line in (data / "olympiadbench.jsonl").read_text(encoding="utf-8").splitlines()
        for answer in json.loads(line)["final_answer"]
    ]
    for line in (data / "minerva_math.jsonl").read_text(encoding="utf-8").splitlines():
        golds.append(last_boxed(json.loads(line)["solution"]) or "")
    for line in (data / "amc23.jsonl").read_text(encoding="utf-8").splitlines():
        golds.append(str(int(json.loads(line)["answer"])))
    return [gold.strip().strip("$") for gold in dict.fromkeys(golds) if gold.strip() and gold.count("$") in (0, 2)]


def math_checks(golds: list[str], draw: random.Random, count: int) -> list[Check]:
    """Golds beside rewritings of themselves, slips and other golds, and generated formulas; about half are right."""
    checks = []
    while len(checks) < count:
        if draw.random() < 0.3:
            case = make_case(draw)
            checks.append(Check(prediction_of(case.answer, draw), case.gold, case.is_right))
            continue
        gold = draw.choice(golds)
        is_right = draw.random() < 0.6
        answer = rewritten(gold, draw) if is_right else slip(gold, golds, draw)
        checks.append(Check(rf"<think>I think so.</think>The answer is $\boxed{{{answer}}}$.", gold, is_right or None))
        if not is_right and answer.endswith("+1"):
            checks[-1] = Check(checks[-1].prediction, gold, False)
    return checks


def rewritten(gold: str, draw: random.Random) -> str:
    """Another way to write a gold answer."""
    ways = [
        gold,
        gold.replace(r"\frac", r"\dfrac"),
        gold.replace(" ", ""),
        gold.replace("(", r"\left(").replace(")", r"\right)"),
    ]
    if r"\left" in gold or r"\text" in gold or r"\mathrm" in gold or r"\operatorname" in gold or "or" in gold:
        ways = [gold, gold.replace(r"\frac", r"\dfrac")]
    if " " in gold and any(character.isalpha() for character in gold):
        ways = [way for way in ways if " " in way]  # a blank may end the name of a command
    if is_one_formula(gold):
        ways += [rf"\frac{{2({gold})}}{{2}}", rf"({gold})+1-1", rf"{gold}"]
    return draw.choice(ways)


def slip(gold: str, golds: list[str], draw: random.Random) -> str:
    """A wrong answer: one more, or another problem's gold (which may be equal by chance)."""
    if is_one_formula(gold) and draw.random() < 0.5:
        return f"{gold}+1"
    return draw.choice(golds)


def is_one_formula(gold: str) -> bool:
    """Whether a gold is one formula, which one more makes wrong: no list, equation, unit or plain number."""
    value = read_value(gold)
    is_plain = value.text.lstrip("-").replace(".", "").isdigit()
    return not (value.unit or value.percent or is_plain or split_items(value.text)) and read(value.text) is not None


def hostile_checks() -> list[Check]:
    """Answers made to hang, to fill the memory or to break the reader; all are wrong or have no readable answer."""
    return [Check(rf"The answer is \boxed{{{answer}}}", gold, None) for answer, gold in HOSTILE]
