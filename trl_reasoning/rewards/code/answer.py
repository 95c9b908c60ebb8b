"""The program in a completion."""

import ast
import functools
import re

from ...text import split_thought


_LANGUAGES = ("python", "py", "python3")
_FUTURE = re.compile(r"^from __future__ import [^\n(]+$", re.MULTILINE)
_STARTS = ("def ", "import ", "from ", "class ", "@", "async def ")


def extract_code(text: str, *, opened: bool = False, continues: bool = False) -> str | None:
    r"""
    Find the program in a completion: the last complete ```` ```python ```` block of the visible answer.

    Args:
        text (`str`):
            The completion.
        opened (`bool`, *optional*, defaults to `False`):
            Whether the prompt already ended inside the thought.
        continues (`bool`, *optional*, defaults to `False`):
            Whether the prompt gives code to be continued: then an answer without any block, whose first line is
            indented or starts a definition or import, is code as a whole.

    Returns:
        `str` or `None`: the code; where no block names Python, the last block that names no language. `None` where
        there is no code.

    Example:
    ```python
    >>> extract_code("<think>Add them.</think>\n```python\nprint(1 + 1)\n```")
    'print(1 + 1)'
    >>> extract_code("```python\nprint(1)") is None
    True

    ```
    """
    answer = split_thought(text, opened=opened).answer
    blocks, has_fence = _blocks(answer)
    for wanted in (_LANGUAGES, ("",)):
        found = [code for language, code in blocks if language in wanted and code.strip()]
        if found:
            return found[-1]
    if not continues or has_fence or not answer:
        return None
    # The answer is given without the blanks around it, and the first line's indentation is among them.
    start = text.rfind(answer)
    indentation = text[:start].rpartition("\n")[2]
    if indentation and not indentation.strip():
        return indentation + answer
    return answer if answer.startswith(_STARTS) else None


def build_program(code: str, code_prompt: str | None, entry_point: str | None) -> str:
    """
    Put the code that the prompt gives in front of the model's.

    The prompt's imports and helper functions are there in any case; where the model's code does not define the entry
    point again, it goes on where the prompt's code ends.

    Args:
        code (`str`):
            From [`extract_code`].
        code_prompt (`str`, *optional*):
            The code in the prompt.
        entry_point (`str`, *optional*):
            The function that is tested.

    Returns:
        `str`

    Example:
    ```python
    >>> print(build_program("    return x + 1", "def up(x):", "up"))
    def up(x):
        return x + 1

    ```
    """
    if not code_prompt:
        return code
    # Python wants these in front of everything else.
    futures = "".join(line + "\n" for line in _FUTURE.findall(code))
    code = _FUTURE.sub("", code)
    name = re.match(r"\w*", entry_point or "")
    if name and name.group() and _defines(code, name.group()):
        return futures + as_module(code_prompt) + code
    return f"{futures}{code_prompt.rstrip()}\n{code}"


def _defines(code: str, name: str) -> bool:
    return re.search(rf"^((async )?def|class) {name}\b|^{name} *[:=]", code, re.MULTILINE) is not None


@functools.lru_cache(maxsize=4096)
def as_module(code_prompt: str) -> str:
    """The prompt's code as whole statements: a function that it leaves open gets a body; "" for what is no Python."""
    for end in ("", "    pass\n"):
        whole = f"{code_prompt.rstrip()}\n{end}"
        try:
            ast.parse(whole)
        except (SyntaxError, ValueError):
            continue
        return whole + "\n"
    return ""


def _blocks(answer: str) -> tuple[list[tuple[str, str]], bool]:
    """Language and code of each complete block, and whether a fence was seen at all."""
    blocks: list[tuple[str, str]] = []
    opened: tuple[str, str] | None = None
    lines: list[str] = []
    has_fence = False
    for line in answer.split("\n"):
        bare = line.strip()
        marks = bare[: len(bare) - len(bare.lstrip("`"))]
        if opened is None:
            if len(marks) >= 3:
                has_fence = True
                words = bare[len(marks) :].split()
                opened, lines = (marks, words[0].lower() if words else ""), []
        elif bare == opened[0]:
            blocks.append((opened[1], "\n".join(lines)))
            opened = None
        else:
            lines.append(line.rstrip("\r"))
    return blocks, has_fence
