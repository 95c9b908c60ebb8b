"""Answers with a known verdict: equivalent rewritings of a gold answer and near misses, by the policy of `answers`."""

import random
from collections.abc import Callable
from fractions import Fraction

from answer_case import Case, choose, decimal_text
from number_cases import fraction, per_cent, power_of_ten, unit, whole


Maker = Callable[[random.Random], Case]


def make_case(draw: random.Random) -> Case:
    """
    Draw a case of any kind.

    Args:
        draw (`random.Random`):
            Source of all choices.

    Returns:
        `Case`
    """
    return draw.choice(MAKERS)(draw)


def prediction_of(answer: str, draw: random.Random) -> str:
    """A completion that gives an answer in one of the ways in which models mark it."""
    marks = (
        r"\boxed{%s}",
        r"The answer is $\boxed{%s}$.",
        r"So we get \[ \boxed{%s} \]",
        r"<think>Let me see. First 7, then \boxed{1}? No.</think>It is \boxed{%s}.",
        r"<think>ok</think><answer>\boxed{%s}</answer>",
        r"I first thought \boxed{3}. That was a slip of mine in the second line of the sum, so it is \boxed {%s}",
        r"\fbox{%s}",
        "**Final Answer:** $%s$",
        "The final answer is $%s$.",
    )
    return draw.choice(marks).replace("%s", answer)


def _root(draw: random.Random) -> Case:
    number, inside = draw.randint(2, 9), draw.choice((2, 3, 5, 6, 7, 10, 11))
    top = draw.randint(1, 9)
    style = draw.randint(0, 2)
    if style == 0:
        gold = rf"{number}\sqrt{{{inside}}}"
        spellings = [
            rf"\sqrt{{{number * number * inside}}}",
            rf"\sqrt{{{inside}}}\cdot {number}",
            rf"{number}\sqrt {{{inside}}}",
            rf"{number} \cdot {inside}^{{1/2}}",
            rf"\frac{{{number * inside}}}{{\sqrt{{{inside}}}}}",
        ]
        slips = [
            str(number),
            rf"{number + 1}\sqrt{{{inside}}}",
            rf"{number}\sqrt{{{inside + 1}}}",
            rf"-{number}\sqrt{{{inside}}}",
            rf"\sqrt{{{number * inside}}}",
            f"{number * inside**0.5:.4f}",
        ]
    elif style == 1:
        gold = rf"\frac{{{top}\sqrt{{{inside}}}}}{{{inside}}}"
        spellings = [rf"\frac{{{top}}}{{\sqrt{{{inside}}}}}", rf"\dfrac{{{top}\sqrt{inside}}}{{{inside}}}"]
        spellings[1:] = spellings[1:] if inside < 10 else []
        slips = [rf"\frac{{\sqrt{{{inside}}}}}{{{top}}}", rf"\frac{{{top}}}{{{inside}}}"]
        slips = [slip for slip in slips if slip != rf"\frac{{\sqrt{{{inside}}}}}{{{inside}}}" or top != 1]
        slips = [slip for slip in slips if top * top != inside or slip != slips[0]]
    else:
        # 1/(sqrt(a) - b) = (sqrt(a) + b)/(a - b^2)
        below = inside - number * number
        gold = rf"\frac{{{top}}}{{\sqrt{{{inside}}}-{number}}}"
        spellings = [rf"\frac{{{top}(\sqrt{{{inside}}}+{number})}}{{{below}}}", rf"{top}/(\sqrt{{{inside}}}-{number})"]
        slips = [
            rf"\frac{{{top}}}{{\sqrt{{{inside}}}+{number}}}",
            rf"\frac{{{top}(\sqrt{{{inside}}}-{number})}}{{{below}}}",
        ]
    return choose(draw, "root", gold, spellings, slips)


def _polynomial(draw: random.Random) -> Case:
    one, two = draw.sample([number for number in range(-7, 8) if number], 2)
    letter, other = draw.sample(("x", "n", "a", "t", "k"), 2)

    def quadratic(total: int, product: int, name: str = letter) -> list[str]:
        return [f"{name}^2", *([f"{total:+d}{name}"] if total else []), *([f"{product:+d}"] if product else [])]

    terms = quadratic(one + two, one * two)
    gold = "".join(terms)
    mixed = terms[:]
    draw.shuffle(mixed)
    spellings = [
        gold,
        "".join(term if term.startswith(("+", "-")) else f"+{term}" for term in mixed).removeprefix("+"),
        rf"\left({letter}{one:+d}\right)\left({letter}{two:+d}\right)",
        f"({letter}{two:+d})({letter}{one:+d})",
        f"{letter}({letter}{one + two:+d}){one * two:+d}",
        rf"\frac{{2{letter}^2{2 * (one + two):+d}{letter}{2 * one * two:+d}}}{{2}}",
        f"y={gold}",
    ]
    slips = [
        "".join(quadratic(one + two, one * two + 1)),
        "".join(quadratic(one + two + 1, one * two)),
        "".join(quadratic(one + two, one * two, other)),
        f"({letter}{-one:+d})({letter}{two:+d})",
        f"({letter}{one:+d})^2",
        str(one * two),
    ]
    if one + two:
        slips.append("".join(quadratic(-one - two, one * two)))
    return choose(draw, "polynomial", gold, spellings, slips)


def _power(draw: random.Random) -> Case:
    base, shift = draw.choice((2, 3, 5)), draw.randint(1, 3)
    gold = f"{base}^{{n+{shift}}}"
    spellings = [
        rf"{base**shift}\cdot {base}^n",
        f"{base}^{{{shift}+n}}",
        rf"\frac{{{base}^{{n+{shift + 1}}}}}{{{base}}}",
    ]
    slips = [f"{base}^{{n-{shift}}}", f"{base}^{{n}}+{shift}", f"{base + 1}^{{n+{shift}}}", rf"{base}^{{n+{shift}}}-1"]
    return choose(draw, "power", gold, spellings, slips)


def _constant(draw: random.Random) -> Case:
    top, bottom = draw.choice((1, 3, 5, 7)), draw.choice((2, 4, 8))
    gold = rf"\frac{{{top}\pi}}{{{bottom}}}"
    front = "" if top == 1 else str(top)
    spellings = [
        rf"\frac{{{top}}}{{{bottom}}}\pi" if top < bottom else gold,
        rf"{front}\pi/{bottom}",
        f"{top}pi/{bottom}" if top > 1 else f"pi/{bottom}",
        rf"{decimal_text(Fraction(top, bottom))}\pi",
        rf"\frac{{{2 * top}\pi}}{{{2 * bottom}}}",
    ]
    slips = [
        rf"\frac{{{top + 1}\pi}}{{{bottom}}}",
        rf"-{gold}",
        rf"\frac{{{top}}}{{{bottom}}}",
        f"{top * 3.14159 / bottom:.4f}",
    ]
    return choose(draw, "pi", gold, spellings, slips)


def _values(draw: random.Random) -> Case:
    values = draw.sample(range(-20, 60), draw.randint(2, 5))
    mixed = draw.sample(values, len(values))
    other = [*values[:-1], values[-1] + 1]
    if values[-1] + 1 in values:
        other = [*values[:-1], 99]
    style = draw.choice(("set", "list", "tuple"))
    write = {"set": r"\{%s\}", "list": "%s", "tuple": "(%s)"}[style]
    gold = write.replace("%s", ", ".join(map(str, values)))
    spellings = [gold, write.replace("%s", ",  ".join(f"{value}.0" for value in values))]
    slips = [", ".join(map(str, group)) for group in (values[:-1], [*values, 77], other)]
    if style == "tuple":
        spellings.append(rf"\left({', '.join(map(str, values))}\right)")
        slips += [", ".join(map(str, reversed(values)))]
        slips = [write.replace("%s", slip) for slip in slips if "," in slip] + [f"[{', '.join(map(str, values))}]"]
    else:
        spellings.append(write.replace("%s", ", ".join(map(str, mixed))))
        spellings.append(
            rf"\left\{{{', '.join(map(str, mixed))}\right\}}" if style == "set" else " and ".join(map(str, mixed))
        )
        slips = [write.replace("%s", slip) for slip in slips]
    return choose(draw, style, gold, spellings, slips)


def _interval(draw: random.Random) -> Case:
    low = draw.randint(-9, 9)
    high = low + draw.randint(1, 9)
    left, right = draw.choice("(["), draw.choice(")]")
    gold = f"{left}{low},{high}{right}"
    sign = {"(": "<", "[": r"\le", ")": "<", "]": r"\le"}
    spellings = [
        gold,
        rf"\left{left}{low}, {high}\right{right}",
        rf"{low} {sign[left]} x {sign[right]} {high}",
        rf"x\in {gold}",
    ]
    slips = [
        f"{'[' if left == '(' else '('}{low},{high}{right}",
        f"{left}{low},{high}{')' if right == ']' else ']'}",
        f"{left}{low},{high + 1}{right}",
        f"{left}{low - 1},{high}{right}",
        rf"{low} {sign[left]} x {sign[right]} {high + 1}",
    ]
    return choose(draw, "interval", gold, spellings, slips)


def _choice(draw: random.Random) -> Case:
    letter, other = draw.sample("ABCDE", 2)
    spellings = [
        letter,
        f"({letter})",
        rf"\text{{{letter}}}",
        rf"\textbf{{({letter})}}",
        f"{letter}. 12",
        f"{letter}) 5",
    ]
    return choose(draw, "choice", letter, spellings, [other, f"({other})", rf"\text{{{other}}}", f"{other}. 12"])


def _words(draw: random.Random) -> Case:
    name, other = draw.sample(("Evelyn", "Carla", "Tuesday", "even", "Yes", "No", "ellipse"), 2)
    return choose(
        draw,
        "word",
        name,
        [name, rf"\text{{{name}}}", name.lower(), name.upper()],
        [other, rf"\text{{{other}}}", name[0]],
    )


MAKERS: tuple[Maker, ...] = (
    whole,
    fraction,
    per_cent,
    unit,
    power_of_ten,
    _root,
    _polynomial,
    _power,
    _constant,
    _values,
    _interval,
    _choice,
    _words,
)
