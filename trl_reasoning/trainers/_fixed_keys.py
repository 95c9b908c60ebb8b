"""Keys that make a method: a configuration that says otherwise trains something else under its name."""

from collections.abc import Mapping
from typing import Any


def check_fixed_keys(args: Any, method: str, fixed: Mapping[str, tuple[Any, str]], otherwise: str = "") -> None:
    """
    Refuse values that contradict a method.

    Args:
        args ([`~trl.GRPOConfig`]):
            The configuration.
        method (`str`):
            The method's name.
        fixed (`Mapping[str, tuple[Any, str]]`):
            For each key the value that the method needs, and why.
        otherwise (`str`, *optional*):
            What to do where the key is wanted after all.

    Raises:
        ValueError: For the first key with another value.
    """
    for key, (wanted, reason) in fixed.items():
        value = getattr(args, key)
        if value != wanted:
            raise ValueError(f"{key}: {method} needs {wanted!r}, got {value!r} ({reason}); remove the key{otherwise}")
