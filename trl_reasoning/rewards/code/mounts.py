"""What a bubblewrap sandbox sees: its namespaces, its environment and its file system."""

import functools
import os
import sys
import sysconfig
from pathlib import Path

from .limits import Limits


BOX = "/box"
ENVIRONMENT = {"LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_SCRATCH = "/" + "tmp"


def sandbox_options(limits: Limits) -> list[str]:
    """Options of `bwrap` for a sandbox with these limits, all but the filter of system calls."""
    options = ["--unshare-user", "--unshare-all", "--uid", "65534", "--gid", "65534", "--hostname", "box"]
    options += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    for name, value in ENVIRONMENT.items():
        options += ["--setenv", name, value]
    # The temporary folder first, as Python may lie in it.
    if limits.scratch_mb:
        options += ["--size", str(limits.scratch_mb << 20), "--tmpfs", _SCRATCH, "--setenv", "HOME", _SCRATCH]
    else:
        options += ["--dir", _SCRATCH]
    options += _python_mounts()
    if limits.site_packages:
        options += ["--ro-bind", site_packages(), site_packages()]
    options += ["--ro-bind", str(Path(__file__).parent / "inside"), f"{BOX}/inside"]
    for device in ("null", "zero", "urandom"):
        options += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    # The root is a file system in memory that bubblewrap made for the mount points: nothing may be written there.
    return [*options, "--remount-ro", "/", "--chdir", _SCRATCH]


@functools.cache
def _python_mounts() -> tuple[str, ...]:
    """What this interpreter needs: system libraries, its own binary and standard library, no packages."""
    options: list[str] = []
    for path in ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64"):
        if os.path.islink(path):
            options += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            options += ["--ro-bind", path, path]
    for path in ("/etc/ld.so.cache", "/etc/alternatives"):
        options += ["--ro-bind-try", path, path]
    executable = os.path.realpath(sys.executable)
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    libraries = {os.path.realpath(sysconfig.get_path(name, vars=base)) for name in ("stdlib", "platstdlib")}
    shared = [str(path) for path in sorted(Path(sys.base_exec_prefix, "lib").glob("libpython*.so*"))]
    for path in (executable, *sorted(libraries), *shared):
        if not path.startswith(("/usr/lib/", "/lib/")):
            options += ["--ro-bind", path, path]
    hidden = [os.path.join(library, "site-packages") for library in libraries]
    for path in (*hidden, "/usr/lib/python3/dist-packages"):
        if os.path.isdir(path):
            options += ["--tmpfs", path, "--remount-ro", path]
    return tuple(options)


def site_packages() -> str:
    """The folder of this environment's packages."""
    return sysconfig.get_path("purelib")
