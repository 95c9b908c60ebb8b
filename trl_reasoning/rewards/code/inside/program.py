"""The model's side of assert tests: runs its program, then answers calls. The other side trusts nothing of it."""

import sys
import types
from typing import Any

from .channel import ClosedError, receive, send
from .codec import decode, encode


def serve(source: int, sink: int, most: int) -> None:
    """Load the program of the first message, then answer each call with its result as data."""
    job = receive(source, 64 << 20)
    module = types.ModuleType("program")
    sys.modules["program"] = module  # dataclasses look their module up
    try:
        exec(compile(job["program"], "program.py", "exec"), module.__dict__)
    except BaseException as error:
        send(sink, {"error": _described(error)})
        return
    send(sink, {})
    entries: dict[str, Any] = {}
    while True:
        try:
            call = receive(source, most)
        except ClosedError:
            return
        if call["entry"] not in entries:
            entries[call["entry"]] = compile(call["entry"], "entry point", "eval")
        reply = _answer(entries[call["entry"]], module.__dict__, call)
        try:
            send(sink, reply)
        except (RecursionError, MemoryError) as error:
            send(sink, {"error": _described(error)})


def _answer(entry: Any, namespace: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    arguments = [decode(value) for value in call["arguments"]]
    keywords = {key: decode(value) for key, value in call["keywords"].items()}
    reply: dict[str, Any] = {}
    try:
        result = eval(entry, namespace)(*arguments, **keywords)
        reply["value"] = encode(result)
    except BaseException as error:
        reply["error"] = _described(error)
    try:
        # What the call changed in place; arguments that are now no data any more stay as they were for the tests.
        before = [*call["arguments"], *call["keywords"].values()]
        after = [encode(value) for value in (*arguments, *keywords.values())]
        changed = {str(place): new for place, new in enumerate(after) if new != before[place]}
        if changed:
            reply["changed"] = changed
    except (TypeError, ValueError, RecursionError, MemoryError):
        pass
    return reply


def _described(error: BaseException) -> list[Any]:
    name = next((kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"), "Exception")
    try:
        is_key = isinstance(error, KeyError) and len(error.args) == 1 and isinstance(error.args[0], str)
        text = str(error.args[0] if is_key else error)[:1000]  # a KeyError's own text is quoted once more
    except Exception:
        text = ""
    return [name, text]
