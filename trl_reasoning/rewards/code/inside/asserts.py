"""
The trusted side of assert tests: runs the data's tests, and reaches the model's program through a channel alone.

The program's results come as data, so there is nothing in this process that the model made: no object with a method of
its own, no frame, no patched module.
"""

import builtins
import os
from typing import Any

from .channel import ClosedError, receive, send
from .codec import decode, encode, update_in_place


class ProgramEndedError(BaseException):
    """The program is gone, or left a call in another way than by a result or an exception. No test may catch it."""


class UnsendableError(BaseException):
    """The tests pass an argument that is no plain data."""


class Candidate:
    """Stands for a function of the program: a call goes there as data, and the result comes back as data."""

    def __init__(self, name: str, entry: str, program: "Program"):
        self.__name__ = name
        self._entry = entry
        self._program = program

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._program.call(self._entry, arguments, keywords)


class Program:
    """The model's program behind its two pipes."""

    def __init__(self, calls: int, replies: int, most: int):
        self.calls = calls
        self.replies = replies
        self.most = most
        self.ended = False
        self.answered = False
        self.may_stop_iteration = False

    def exchange(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and give the reply, which is a dict; raises `ProgramEndedError` for anything else."""
        if self.ended:
            raise ProgramEndedError
        try:
            send(self.calls, message, self.most)
            reply = receive(self.replies, self.most)
        except ClosedError as error:
            self.ended = True
            raise ProgramEndedError(str(error)) from None
        except ValueError as error:
            raise self._unsendable(f"the arguments of a call have {error}") from None
        self.answered = True
        if not isinstance(reply, dict):
            self.ended = True
            raise ProgramEndedError("not a reply")
        return reply

    def call(self, entry: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call an entry point; raises what the program raised."""
        try:
            sent = [encode(value) for value in arguments]
            named = {key: encode(value) for key, value in keywords.items()}
        except TypeError as error:
            raise UnsendableError(str(error)) from None
        except ValueError as error:
            raise self._unsendable(str(error)) from None
        reply = self.exchange({"entry": entry, "arguments": sent, "keywords": named})
        values = [*arguments, *keywords.values()]
        try:
            for place, new in reply.get("changed", {}).items():
                update_in_place(values[int(place)], decode(new))
            if "error" not in reply:
                return decode(reply["value"])
            name, text = reply["error"]
            text = str(text)
            kind = getattr(builtins, name, None)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, MemoryError):
            self.ended = True
            raise ProgramEndedError("not a reply") from None
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise ProgramEndedError(text)
        if not issubclass(kind, Exception):  # SystemExit and its like end a test; they must not end this process
            raise ProgramEndedError(text)
        if issubclass(kind, StopIteration) and not self.may_stop_iteration:
            # `map(candidate, ...)` would take it for the end of the inputs, and compare nothing.
            kind = RuntimeError
        try:
            raised = kind(text)
        except TypeError:  # UnicodeDecodeError and a few more take other arguments
            raised = ValueError(text)
        raise raised

    def _unsendable(self, why: str) -> BaseException:
        """Arguments that are too large or deep: the tests' fault, unless a result of the program may be in them."""
        return ProgramEndedError(why) if self.answered else UnsendableError(why)


def _is_missing_module(error: BaseException, program: Program) -> bool:
    """Whether the tests themselves import what is not there; a program may raise that error, too."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    is_programs = trace is not None and trace.tb_frame.f_code is program.call.__code__
    return isinstance(error, ModuleNotFoundError) and not is_programs


class Checks:
    """Counts the asserts: each stands in a `with checks(number):`, and reports the first time it holds or fails."""

    def __init__(self, events: int, stop: bool):
        self.events = events
        self.stop = stop
        self.seen: set[str] = set()

    def __call__(self, number: int, may_go_on: bool) -> "Check":
        return Check(self, number, may_go_on and not self.stop)

    def report(self, event: str) -> None:
        """Write an event line, once."""
        if event not in self.seen:
            self.seen.add(event)
            os.write(self.events, event.encode() + b"\n")


class Check:
    """One execution of an assert."""

    def __init__(self, checks: Checks, number: int, goes_on: bool):
        self.checks = checks
        self.number = number
        self.goes_on = goes_on

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self.checks.report(f"{'held' if kind is None else 'failed'} {self.number}")
        return self.goes_on and kind is not None and issubclass(kind, Exception)


def judge(job_source: int, events: int, calls: int, replies: int, most: int) -> None:
    """
    Run the tests of a job and report to `events`, one line each.

    `held N` and `failed N` for assert N, `item N` when item N ran to its end, `unreadable WHY` where the tests
    themselves do not work, `gone` when the program ended before them, `end` at the end.
    """
    job = receive(job_source, 64 << 20)
    checks = Checks(events, job["stop"])
    program = Program(calls, replies, most)
    program.may_stop_iteration = any("StopIteration" in item for item in job["items"])
    namespace: dict[str, Any] = {"__name__": "tests", "__checks__": checks}
    try:
        send(calls, {"program": job["program"]})
        exec(compile(job["setup"], "setup", "exec"), namespace)
        for name, entry in job["entries"].items():
            namespace[name] = Candidate(name, entry, program)
        items = [compile(item, f"test {number}", "exec") for number, item in enumerate(job["items"])]
    except ClosedError:
        items = []
    except Exception as error:
        checks.report(f"unreadable {type(error).__name__}: {error}".replace("\n", " ")[:300])
        return
    try:
        loaded = "error" not in receive(replies, most)
    except ClosedError:
        loaded = False
        program.ended = True
    for number, item in enumerate(items if loaded else []):
        try:
            exec(item, namespace)
            checks.report(f"item {number}")
        except UnsendableError as error:
            checks.report(f"unreadable {error}".replace("\n", " ")[:300])
            return
        except (Exception, ProgramEndedError, SystemExit) as error:
            if _is_missing_module(error, program):
                checks.report(f"unreadable {error}".replace("\n", " ")[:300])
                return
            if job["stop"]:
                break
    if program.ended:
        checks.report("gone")
    checks.report("end")
