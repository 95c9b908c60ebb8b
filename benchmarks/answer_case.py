"""One answer with a known verdict."""

import random
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Case:
    """An answer and a gold, whether they are equal, and the kind of rewriting or slip."""

    kind: str
    answer: str
    gold: str
    is_right: bool


def choose(draw: random.Random, kind: str, gold: str, spellings: list[str], slips: list[str]) -> Case:
    """Draw a right spelling or a slip of a gold answer."""
    is_right = draw.random() < 0.5
    return Case(kind, draw.choice(spellings if is_right else slips), gold, is_right)


def decimal_text(value: Fraction) -> str | None:
    """A value as a decimal, where it ends."""
    for digits in range(16):
        scaled = value * 10**digits
        if scaled.denominator == 1:
            return f"{scaled.numerator / 10**digits:.{digits}f}" if digits else str(scaled.numerator)
    return None
