"""How a program is started: in a bubblewrap sandbox, or as a plain subprocess where the user allows that."""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from ...errors import UserError
from .exchange import open_pipe
from .limits import Limits
from .mounts import BOX, ENVIRONMENT, sandbox_options, site_packages
from .seccomp import build_filter, is_supported


BACKENDS = ("bubblewrap", "subprocess")
# Only `inside` is on the path, and it leaves again before anything else is imported.
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from inside.start import start; del sys.path[0]; start()"
_WAYS_OUT = (
    "install bubblewrap (Debian, Ubuntu, Fedora: package `bubblewrap`), or set `allow_unsandboxed: true` on this "
    "reward to run the model's programs as plain processes that can read, write and connect as you can"
)


class Backend(Protocol):
    """A way to start a program of `inside`."""

    @property
    def name(self) -> str:
        """One of `BACKENDS`."""
        ...

    def start(
        self,
        program: str,
        limits: Limits,
        *,
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        channel: tuple[int, int] | None = None,
    ) -> "AbstractContextManager[subprocess.Popen[bytes]]":
        """
        Start a program; when the context is left, it and all that it started are gone.

        Args:
            program (`str`):
                `"program"`, `"asserts"` or `"stdin"`.
            limits ([`Limits`]):
                What it may use.
            stdin, stdout (`int`, *optional*):
                As in `subprocess.Popen`.
            channel (`tuple[int, int]`, *optional*):
                File descriptors that it inherits besides: where calls go, where replies come from.
        """
        ...


def find_backend(allow_unsandboxed: bool = False) -> Backend:
    """
    Choose the backend: bubblewrap where it works, else a plain subprocess where that is allowed.

    Args:
        allow_unsandboxed (`bool`, *optional*, defaults to `False`):
            Whether programs may run without a sandbox where there is none.

    Returns:
        [`Backend`]

    Raises:
        UserError: There is no sandbox and none may be left out; it names both ways out.
    """
    problem = bubblewrap_problem()
    if problem is None:
        return Bubblewrap()
    if allow_unsandboxed:
        return PlainSubprocess()
    raise UserError(f"code_tests: no sandbox to run programs in: {problem}. Either {_WAYS_OUT}")


@functools.cache
def bubblewrap_problem() -> str | None:
    """Why programs cannot run under bubblewrap on this machine, or None where they can. Tried once a process."""
    if shutil.which("bwrap") is None:
        return "bubblewrap (`bwrap`) is not installed"
    if not is_supported():
        return "the filter of system calls exists for x86-64 and 64-bit ARM only"
    try:
        with Bubblewrap().start("stdin", Limits(), stderr=subprocess.PIPE) as process:
            message = json.dumps({"program": "print(6 * 7)"}).encode()
            answer, errors = process.communicate(len(message).to_bytes(4, "big") + message, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        return f"bubblewrap is installed and does not start ({error})"
    if answer.strip() == b"42":
        return None
    reason = errors.decode(errors="replace").strip()[-300:] or f"exit status {process.returncode}"
    hint = ""
    if "namespace" in reason or "uid map" in reason or "Operation not permitted" in reason:
        hint = (
            "; namespaces cannot be made here: a container that forbids them, or the settings "
            "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces"
        )
    elif "nknown option" in reason:
        hint = "; version 0.8 or newer is needed"
    return f"bubblewrap is installed and cannot build a sandbox: {reason}{hint}"


@dataclass(frozen=True)
class Bubblewrap:
    """
    A sandbox of its own namespaces: no network, no processes but its own, a read-only file system of this Python and
    the system's libraries, an empty environment, and the system calls of [`build_filter`].

    Bubblewrap leaves its inner first process to the machine's own to be reaped: a container needs an init process for
    that (`docker run --init`), or dead processes pile up.
    """

    name: str = "bubblewrap"

    @contextmanager
    def start(
        self,
        program: str,
        limits: Limits,
        *,
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.DEVNULL,
        channel: tuple[int, int] | None = None,
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """As [`Backend.start`]; `stderr` is for bubblewrap's own errors."""
        filter_source, filter_sink = open_pipe()
        os.write(filter_sink, build_filter())  # far below what a pipe holds
        os.close(filter_sink)
        command = ["bwrap", *sandbox_options(limits), "--seccomp", str(filter_source)]
        command += ["--", *_python(os.path.realpath(sys.executable), program, BOX, limits, channel)]
        try:
            process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env={"PATH": os.environ.get("PATH", os.defpath)},
                cwd="/",
                pass_fds=(filter_source, *(channel or ())),
            )
        finally:
            os.close(filter_source)
        # With bubblewrap the first process of the namespace dies, and with it everything in there.
        with _ended(process):
            yield process


@dataclass(frozen=True)
class PlainSubprocess:
    """
    A process with resource limits, in a session of its own, a temporary folder and an empty environment.

    It is no sandbox: it can read and write what the user can, connect, and leave processes behind that leave its
    session.
    """

    name: str = "subprocess"

    @contextmanager
    def start(
        self,
        program: str,
        limits: Limits,
        *,
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        channel: tuple[int, int] | None = None,
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """As [`Backend.start`]."""
        with tempfile.TemporaryDirectory(prefix="code_tests_", ignore_cleanup_errors=True) as folder:
            process = subprocess.Popen(
                _python(sys.executable, program, str(Path(__file__).parent), limits, channel),
                stdin=stdin,
                stdout=stdout,
                stderr=subprocess.DEVNULL,
                env={**ENVIRONMENT, "HOME": folder, "TMPDIR": folder},
                cwd=folder,
                pass_fds=channel or (),
                start_new_session=True,
            )
            with _ended(process, group=True):
                yield process


@contextmanager
def _ended(process: "subprocess.Popen[bytes]", group: bool = False) -> Iterator[None]:
    try:
        yield
    finally:
        if group:
            # The group outlives its first process, whose number is not given anew before it is waited for.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
        process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with suppress(OSError):  # what was still to be written has no reader
                    stream.close()
        process.wait()


def _python(executable: str, program: str, folder: str, limits: Limits, channel: tuple[int, int] | None) -> list[str]:
    settings = asdict(limits) | {"packages": site_packages() if limits.site_packages else None}
    if channel is not None:
        settings |= {"calls": channel[0], "replies": channel[1]}
    return [executable, "-I", "-S", "-B", "-X", "utf8", "-c", _BOOT, folder, program, json.dumps(settings)]
