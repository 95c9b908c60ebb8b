"""Formulas in program notation (`2*(x+1)**3/5`), read without `eval` and without recursion."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any


MAX_LENGTH = 2000
MAX_DIGITS = 40
# Bounds of what `value_of` computes: a larger number is no answer of any task here, and takes time or memory to make.
MAX_EXPONENT = 1000
MAX_SIZE = 10**400
_MAX_DENOMINATOR = 10**4000  # of sums of fractions that are no larger than a text may be

_TOKEN = re.compile(r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_]+)|(?P<sign>\*\*|[-+*/^(),]))", re.ASCII)
_SPELLINGS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "[": "(", "]": ")"})
# Precedence and whether the operator groups to the right; `neg` is a minus in front of a value.
_OPERATORS = {
    "+": (1, False),
    "-": (1, False),
    "*": (2, False),
    "/": (2, False),
    "neg": (3, True),
    "**": (4, True),
}

Token = tuple[str, Any]


class ExpressionError(ValueError):
    """The text is not a formula of the allowed kind, or its value is undefined or too large."""


def read_expression(
    text: str,
    *,
    operators: Sequence[str] = ("+", "-", "*", "/"),
    names: Sequence[str] = (),
    functions: Collection[str] = (),
) -> list[Token]:
    """
    Read a formula into postfix order (operands, then their operator), by two stacks.

    Args:
        text (`str`):
            For instance `"(3 + 4) * 2"`. The signs × · ÷ − and square brackets are read as * * / - and parentheses.
        operators (`Sequence[str]`, *optional*, defaults to `("+", "-", "*", "/")`):
            Those allowed, of `+ - * / **`; `^` is another spelling of `**`. A minus in front of a value is allowed
            where `neg` is among them.
        names (`Sequence[str]`, *optional*):
            Variables and constants allowed.
        functions (`Collection[str]`, *optional*):
            Functions of one argument allowed.

    Returns:
        `list[tuple[str, Any]]`: `("number", Fraction)`, `("name", str)`, `("operator", str)`, `("function", str)`.

    Raises:
        [`ExpressionError`]: the text is anything else.

    Example:

    ```python
    >>> read_expression("2*(1+3)")
    [('number', Fraction(2, 1)), ('number', Fraction(1, 1)), ('number', Fraction(3, 1)), ('operator', '+'), \
('operator', '*')]

    ```
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"longer than {MAX_LENGTH} characters")
    output: list[Token] = []
    stack: list[Token] = []
    wants_operand = True
    for kind, token in _tokens(text.translate(_SPELLINGS), functions):
        if kind == "number" or (kind == "name" and token not in functions):
            if not wants_operand:
                raise ExpressionError(f"no operator before {token!r}")
            if kind == "name" and token not in names:
                raise ExpressionError(f"unknown name {token!r}")
            output.append((kind, token))
            wants_operand = False
        elif kind == "name" or token == "(":
            if not wants_operand:
                raise ExpressionError(f"no operator before {token!r}")
            stack.append(("function" if kind == "name" else "sign", token))
        elif token == ")":
            if wants_operand:
                raise ExpressionError("nothing in front of ')'")
            while stack and stack[-1] != ("sign", "("):
                output.append(stack.pop())
            if not stack:
                raise ExpressionError("a ')' too many")
            stack.pop()
            if stack and stack[-1][0] == "function":
                output.append(stack.pop())
        else:
            if wants_operand and token == "-":
                token = "neg"
            if token not in operators or (wants_operand and token != "neg"):
                raise ExpressionError(f"operator {token!r} is not allowed here")
            _push(token, stack, output)
            wants_operand = True
    if wants_operand:
        raise ExpressionError("ends in the middle")
    while stack:
        if stack[-1] == ("sign", "("):
            raise ExpressionError("a '(' too many")
        output.append(stack.pop())
    return output


def _tokens(text: str, functions: Collection[str]) -> list[Token]:
    tokens: list[Token] = []
    position, text = 0, text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(f"unexpected {text[position : position + 10]!r}")
        position = match.end()
        if match["number"]:
            if len(match["number"]) > MAX_DIGITS:
                raise ExpressionError(f"a number of more than {MAX_DIGITS} digits")
            tokens.append(("number", Fraction(match["number"])))
        elif match["name"]:
            tokens.append(("name", match["name"]))
        else:
            tokens.append(("sign", "**" if match["sign"] == "^" else match["sign"]))
    for index, (kind, token) in enumerate(tokens):
        if kind == "name" and token in functions and tokens[index + 1 : index + 2] != [("sign", "(")]:
            raise ExpressionError(f"function {token!r} without parentheses")
    return tokens


def _push(token: str, stack: list[Token], output: list[Token]) -> None:
    precedence, to_right = _OPERATORS[token]
    # A minus in front of a value is a prefix: it takes nothing from the stack, whatever stands there.
    while token != "neg" and stack and stack[-1][0] == "operator":
        other = _OPERATORS[stack[-1][1]][0]
        if other < precedence or (other == precedence and to_right):
            break
        output.append(stack.pop())
    stack.append(("operator", token))


def value_of(
    tokens: Sequence[Token],
    values: Mapping[str, Any] | None = None,
    functions: Mapping[str, Callable[[Any], Any]] | None = None,
    number: Callable[[Fraction], Any] = lambda value: value,
) -> Any:
    """
    The value of a formula.

    Args:
        tokens (`Sequence`):
            Of [`read_expression`].
        values (`Mapping[str, Any]`, *optional*):
            Value of each name.
        functions (`Mapping[str, Callable]`, *optional*):
            The functions.
        number (`Callable`, *optional*):
            Makes a number of another kind of each fraction in the text; exact fractions otherwise.

    Raises:
        [`ExpressionError`]: division by zero, or a number that is too large.

    Example:

    ```python
    >>> value_of(read_expression("8/(3-8/3)"))
    Fraction(24, 1)

    ```
    """
    stack: list[Any] = []
    try:
        for kind, token in tokens:
            if kind == "number":
                result = number(token)
            elif kind == "name":
                result = (values or {})[token]
            elif kind == "function":
                result = (functions or {})[token](stack.pop())
            elif token == "neg":
                result = -stack.pop()
            else:
                right = stack.pop()
                result = _apply(token, stack.pop(), right)
            if not abs(result) < MAX_SIZE or (isinstance(result, Fraction) and result.denominator > _MAX_DENOMINATOR):
                raise ExpressionError("a value too large")
            stack.append(result)
    except (ZeroDivisionError, ValueError, OverflowError, TypeError) as error:
        raise ExpressionError(str(error)) from error
    return stack[0]


def _apply(operator: str, left: Any, right: Any) -> Any:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if operator == "/":
        return left / right
    if not abs(right) <= MAX_EXPONENT:
        raise ExpressionError("an exponent too large")
    if isinstance(left, Fraction):
        if right.denominator != 1 or left.numerator.bit_length() * abs(right) > 10_000:
            raise ExpressionError("a power that is not a small whole one")
        return left ** int(right)
    return left**right
