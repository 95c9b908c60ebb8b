"""The signs of a formula, one after the other."""

import re


_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?|\.\d+)|\\(?P<command>[A-Za-z]+)|(?P<letter>[A-Za-z])"
    r"|(?P<sign>\*\*|[-+*/^!(){}\[\]|_]))"
)
BRACKETS = frozenset("({|")
_NO_START = frozenset({"cdot", "times", "div", "rfloor", "rceil"})
END = ("", "")


class RefusedError(ValueError):
    """The text is no formula that the reader knows."""


class Cursor:
    """The tokens of one formula, each a kind (number, command, letter, sign) and its text, and where the reader is."""

    def __init__(self, text: str):
        self.tokens = _tokens(text)
        self.position = 0
        self.bars = 0

    @property
    def next(self) -> tuple[str, str]:
        """Kind and text of the token that comes next."""
        return self.tokens[self.position]

    def take(self, *values: str) -> bool:
        """Go past the next token when it is one of these signs or commands."""
        kind, value = self.next
        if kind in ("sign", "command") and value in values:
            self.position += 1
            return True
        return False

    def refuse_unless(self, holds: bool) -> None:
        """Refuse the formula when something does not hold."""
        if not holds:
            raise RefusedError

    def starts_factor(self) -> bool:
        """Whether the next token starts a factor that needs no sign before it."""
        kind, value = self.next
        if kind == "sign":
            return value in BRACKETS and not (value == "|" and self.bars)
        return kind == "letter" or (kind == "command" and value not in _NO_START)

    def opens_sum(self) -> bool:
        """Whether the bracket that comes next holds a sum."""
        depth = 0
        for _, value in self.tokens[self.position :]:
            depth += (value in ("(", "{")) - (value in (")", "}"))
            if depth == 1 and value in ("+", "-"):
                return True
            if depth == 0:
                break
        return False

    def lone_letter(self) -> str:
        """Go past a bracket that holds one letter."""
        opening, (kind, name), closing = (*self.tokens[self.position : self.position + 3], END, END)[:3]
        self.refuse_unless((opening[1], closing[1]) in (("(", ")"), ("{", "}")) and kind in ("letter", "command"))
        self.position += 3
        return name

    def is_degree(self) -> bool:
        """Go past a degree mark, when one comes next."""
        tokens = [value for _, value in self.tokens[self.position : self.position + 3]]
        length = 1 if tokens[0] == "circ" else 3 if tokens == ["{", "circ", "}"] else 0
        self.position += length
        return length > 0

    def subscript(self) -> str:
        """Go past an index and give its letters and digits."""
        end = self.position + 1
        if self.next[1] == "{":
            while self.tokens[end][1] not in ("}", ""):
                end += 1
            end += 1
        self.refuse_unless(self.next[1] == "{" or len(self.next[1]) == 1 or self.next[0] == "command")
        found = "".join(value for _, value in self.tokens[self.position : end] if value not in ("{", "}"))
        self.refuse_unless(found.isalnum() and end < len(self.tokens))
        self.position = end
        return found


def _tokens(text: str) -> list[tuple[str, str]]:
    found, position, text = [], 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise RefusedError(text)
        position = match.end()
        kind = match.lastgroup or ""
        found.append((kind, match[kind]))
    return [*found, END]
