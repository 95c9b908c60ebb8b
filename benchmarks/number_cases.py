"""Numbers with and without units, in many spellings, and near misses."""

import random
from fractions import Fraction

from answer_case import Case, choose, decimal_text


def whole(draw: random.Random) -> Case:
    number = draw.choice((draw.randint(0, 99), draw.randint(1_000, 9_999_999))) * draw.choice((1, 1, -1))
    gold = draw.choice((str(number), f"{number:,}"))
    spellings = [
        str(number),
        f"{number:,}",
        f"{number:,}".replace(",", "{,}"),
        f"{number}.0",
        rf"\text{{{number}}}",
        rf"\mathbf{{{number}}}",
        rf"{{{number}}}",
        f" {number} ",
        f"x = {number}",
        rf"\left({number}\right)",
        f"{number}".replace("-", "−"),
        rf"\frac{{{3 * number}}}{{3}}",
    ]
    slips = [number + 1, number - 1, -number, number * 10, number * 100, number // 10]
    return choose(draw, "whole number", gold, spellings, [str(slip) for slip in slips if slip != number])


def fraction(draw: random.Random) -> Case:
    value = Fraction(draw.randint(1, 40), draw.choice((2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 25)))
    sign = draw.choice(("", "-"))
    top, bottom = value.numerator, value.denominator
    factor = draw.randint(2, 5)
    gold = rf"{sign}\frac{{{top}}}{{{bottom}}}"
    spellings = [
        gold,
        rf"{sign}\dfrac{{{top}}}{{{bottom}}}",
        rf"{sign}\tfrac{{{top}}}{{{bottom}}}",
        f"{sign}{top}/{bottom}",
        rf"\frac{{{sign}{top}}}{{{bottom}}}",
        rf"{sign}\frac{{{factor * top}}}{{{factor * bottom}}}",
        rf"{sign}{top}\div {bottom}" if bottom > 1 else gold,
    ]
    if top < 10 and bottom < 10:
        spellings.append(rf"{sign}\frac{top}{bottom}")
    if top > bottom > 1:
        rest = top % bottom
        spellings += [
            rf"{sign}{top // bottom}\frac{{{rest}}}{{{bottom}}}",
            f"{sign}{top // bottom} {rest}/{bottom}",
        ]
    decimal = decimal_text(value)
    slips = [
        rf"{'' if sign else '-'}\frac{{{top}}}{{{bottom}}}",
        rf"{sign}\frac{{{top + 1}}}{{{bottom}}}",
        rf"{sign}\frac{{{top}}}{{{bottom + 1}}}",
        f"{sign}{top}",
        f"{sign}{float(10 * value):.6f}",
    ]
    if top != bottom:
        slips.append(rf"{sign}\frac{{{bottom}}}{{{top}}}")
    if decimal is None:
        slips.append(f"{sign}{float(value):.3f}")
    else:
        spellings += [f"{sign}{decimal}", f"{sign}{decimal}0" if "." in decimal else f"{sign}{decimal}"]
    return choose(draw, "fraction", gold, spellings, slips if bottom > 1 else slips[:3])


def per_cent(draw: random.Random) -> Case:
    number = draw.choice((draw.randint(1, 99), draw.randint(101, 300)))
    hundredth = decimal_text(Fraction(number, 100)) or ""
    spellings = [rf"{number}\%", f"{number}%", rf"{number}\text{{ percent}}", str(number), hundredth, rf"{number} \%"]
    slips = [rf"{number + 1}\%", rf"{hundredth}\%", str(10 * number), rf"-{number}\%"]
    return choose(draw, "per cent", rf"{number}\%", spellings, slips)


def unit(draw: random.Random) -> Case:
    number = draw.choice((str(draw.randint(2, 500)), f"{draw.randint(2, 50)}.5"))
    unit, same, other = draw.choice(
        (
            ("cm", ("centimeters", "centimetre"), "mm"),
            ("km", ("kilometers", "kilometres"), "cm"),
            ("hours", ("hour", "hr"), "minutes"),
            ("dollars", ("dollar", "USD"), "cents"),
            ("kg", ("kilograms", "kilogram"), "g"),
        )
    )
    gold = rf"{number}\text{{ {unit}}}"
    spellings = [number, rf"{number} \mathrm{{{unit}}}", f"{number} {unit}"]
    spellings += [rf"{number}\text{{ {name}}}" for name in same]
    slips = [rf"{number}\text{{ {other}}}", rf"1{number}\text{{ {unit}}}", f"{number}1"]
    return choose(draw, "unit", gold, spellings, slips)


def power_of_ten(draw: random.Random) -> Case:
    digit, decimals, power = draw.randint(1, 9), draw.randint(1, 9), draw.randint(-6, 9)
    value = Fraction(10 * digit + decimals, 10) * Fraction(10) ** power
    mantissa = f"{digit}.{decimals}"
    gold = rf"{mantissa} \times 10^{{{power}}}"
    plain = decimal_text(value) or ""
    spellings = [
        rf"{mantissa}\cdot 10^{{{power}}}",
        rf"{mantissa}×10^{{{power}}}",
        f"{mantissa}e{power}",
        rf"{digit}{decimals} \times 10^{{{power - 1}}}",
        plain,
    ]
    slips = [rf"{mantissa} \times 10^{{{power + 1}}}", rf"{mantissa} \times 10^{{{-power or 2}}}", f"-{plain}"]
    return choose(draw, "power of ten", gold, spellings, slips)
