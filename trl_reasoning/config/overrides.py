"""Overrides of a recipe's keys from the command line: `--learning_rate 2e-6 --heldout.every 5`."""

from collections.abc import Sequence
from typing import Any

import yaml

from .errors import RecipeError


def parse_overrides(arguments: Sequence[str]) -> list[tuple[str, Any]]:
    """
    Read `--key value` and `--key=value` pairs; a key alone is true.

    A value is read as YAML, so that lists and mappings can be given: `--reward_weights "[1.0, 0.5]"`.

    Args:
        arguments (`Sequence[str]`):
            The words of the command line.

    Returns:
        `list[tuple[str, Any]]`: dotted keys and their values, in order.

    Raises:
        RecipeError: A word is neither a key nor the value of one.

    Example:

    ```python
    >>> parse_overrides(["--max_steps", "5", "--heldout.every=2", "--use_peft"])
    [('max_steps', 5), ('heldout.every', 2), ('use_peft', True)]

    ```
    """
    pairs: list[tuple[str, Any]] = []
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("--") or word == "--":
            hint = f" A list is written `--{pairs[-1][0]} [a, b]`." if pairs else ""
            raise RecipeError(None, f"{word!r} is not an override; write `--key value`.{hint}")
        key, equals, text = word[2:].partition("=")
        if equals:
            pairs.append((key, _parse_value(text)))
        elif words and not words[0].startswith("--"):
            pairs.append((key, _parse_value(words.pop(0))))
        else:
            pairs.append((key, True))
    return pairs


def apply_override(values: dict[str, Any], key: str, value: Any) -> None:
    """
    Set a dotted key inside a recipe's values; a number is an index into a list.

    Example:

    ```python
    >>> values = {"datasets": [{"path": "a.jsonl"}]}
    >>> apply_override(values, "datasets.0.path", "b.jsonl")
    >>> apply_override(values, "heldout.every", 5)
    >>> values
    {'datasets': [{'path': 'b.jsonl'}], 'heldout': {'every': 5}}

    ```
    """
    *parents, last = key.split(".")
    target: Any = values
    for depth, part in enumerate(parents):
        if isinstance(target, list):
            target = target[_index(target, part, key)]
        else:
            if target.get(part) is None:
                target[part] = {}
            target = target[part]
        if not isinstance(target, dict | list):
            raise RecipeError(key, f"`{'.'.join(parents[: depth + 1])}` has no keys below it, it is {target!r}")
    if isinstance(target, list):
        target[_index(target, last, key)] = value
    else:
        target[last] = value


def _index(target: list[Any], part: str, key: str) -> int:
    if not part.isdecimal() or int(part) >= len(target):
        raise RecipeError(key, f"{part!r} is not a place in a list of {len(target)} entries (the first is 0)")
    return int(part)


def _parse_value(text: str) -> Any:
    """YAML for numbers, lists and mappings in braces; any other text stays as typed (`Answer: yes`, `# note`)."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    if isinstance(value, dict) and not text.lstrip().startswith("{"):
        return text
    if value is None and text.strip().lower() not in ("null", "~"):
        return text
    return value
