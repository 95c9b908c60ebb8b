"""
Values as data: a closed set of built-in types to JSON and back, without pickle.

None, bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set and frozenset. An object of a subclass
travels as the built-in value that it holds (a Counter as a dict); any other object does not travel.
"""

from typing import Any


DEPTH = 100


def encode(value: Any, depth: int = DEPTH) -> Any:
    """
    Give the JSON form of a value.

    Raises:
        TypeError: for an object of another type.
        ValueError: for a value that is nested too deeply, itself included.

    Example:
    ```python
    >>> encode((1, 0.5, {"a": None}))
    {'t': [1, {'f': '0x1.0000000000000p-1'}, {'d': [['a', None]]}]}

    ```
    """
    if value is None or value is True or value is False:
        return value
    if depth == 0:
        raise ValueError("nested too deeply")
    if isinstance(value, int):
        # As text: JSON's numbers have a limit of digits here, hexadecimal ones have none.
        return int(value) if -(1 << 62) < value < 1 << 62 else {"i": hex(value)}
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return {"f": float.hex(value)}
    if isinstance(value, complex):
        return {"c": [float.hex(value.real), float.hex(value.imag)]}
    if isinstance(value, bytes | bytearray):
        return {"b" if isinstance(value, bytes) else "y": bytes(value).hex()}
    if isinstance(value, dict):
        return {"d": [[encode(key, depth - 1), encode(item, depth - 1)] for key, item in dict.items(value)]}
    if isinstance(value, list):
        return [encode(item, depth - 1) for item in list.__iter__(value)]
    if isinstance(value, tuple):
        return {"t": [encode(item, depth - 1) for item in tuple.__iter__(value)]}
    if isinstance(value, set | frozenset):
        return {"s" if isinstance(value, set) else "z": [encode(item, depth - 1) for item in value]}
    raise TypeError(f"an object of type {type(value).__name__} is no plain data")


def decode(data: Any, depth: int = DEPTH) -> Any:
    """
    Give the value of a JSON form.

    Raises:
        ValueError: for what is no form of a value.

    Example:
    ```python
    >>> decode(encode((1, 0.5, {"a": {2, 3}})))
    (1, 0.5, {'a': {2, 3}})

    ```
    """
    if depth < 0:
        raise ValueError("nested too deeply")
    if data is None or isinstance(data, bool | int | str):
        return data
    if isinstance(data, list):
        return [decode(item, depth - 1) for item in data]
    if not isinstance(data, dict) or len(data) != 1:
        raise ValueError("not the form of a value")
    [(tag, content)] = data.items()
    try:
        return _DECODERS[tag](content, depth - 1)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("not the form of a value") from error


def update_in_place(old: Any, new: Any) -> Any:
    """
    Give `old` the content of `new`, as if the call had changed it in place.

    Returns:
        `Any`: `old` where it could take the content, with the containers inside it kept where they stand; else `new`.

    Example:
    ```python
    >>> inner = [1]
    >>> outer = [inner, 2]
    >>> update_in_place(outer, [[1, 5]]) is outer, inner, outer
    (True, [1, 5], [[1, 5]])

    ```
    """
    if type(old) is not type(new):
        return new
    if isinstance(old, list):
        old[:] = [*map(update_in_place, old, new), *new[len(old) :]]
    elif isinstance(old, bytearray):
        old[:] = new
    elif isinstance(old, set):
        old.clear()
        old.update(new)
    elif isinstance(old, dict):
        content = {key: update_in_place(old.get(key), item) for key, item in new.items()}
        old.clear()
        old.update(content)
    elif isinstance(old, tuple) and len(old) == len(new):
        kept = tuple(map(update_in_place, old, new))
        return old if all(a is b for a, b in zip(kept, old, strict=True)) else kept
    else:
        return new
    return old


def _integer(content: Any, depth: int) -> int:
    return int(content, 16)


def _float(content: Any, depth: int) -> float:
    return float.fromhex(content)


def _complex(content: Any, depth: int) -> complex:
    real, imaginary = content
    return complex(float.fromhex(real), float.fromhex(imaginary))


def _items(content: Any, depth: int) -> list[Any]:
    if not isinstance(content, list):
        raise ValueError("not the form of a value")
    return [decode(item, depth) for item in content]


def _dict(content: Any, depth: int) -> dict[Any, Any]:
    return {decode(key, depth): decode(item, depth) for key, item in content}


_DECODERS = {
    "i": _integer,
    "f": _float,
    "c": _complex,
    "b": lambda content, depth: bytes.fromhex(content),
    "y": lambda content, depth: bytearray.fromhex(content),
    "t": lambda content, depth: tuple(_items(content, depth)),
    "s": lambda content, depth: set(_items(content, depth)),
    "z": lambda content, depth: frozenset(_items(content, depth)),
    "d": _dict,
}
