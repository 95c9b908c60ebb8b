"""Programs that try to leave their sandbox. The harmless attempt always comes first."""

import dataclasses
import os
import socket
import textwrap

import pytest

from .attempts import TRY, attempts


def test_a_program_reads_and_prints(sandbox, limits, run):
    program = "name = input()\nprint('Hello,', name)\nprint(sum(map(int, input().split())))"
    assert run(sandbox, program, limits, "Ada\n1 2 3\n") == ("Hello, Ada\n6\n", "0")


def test_an_exception_and_an_exit_status_are_seen(sandbox, limits, run):
    assert run(sandbox, "print(1, flush=True)\n1 / 0", limits) == ("1\n", "1")
    assert run(sandbox, "import sys\nprint(2)\nsys.exit(3)", limits) == ("2\n", "3")
    assert run(sandbox, "import os\nos._exit(0)", limits) == ("", "0")


def test_no_process_can_be_made(sandbox, limits, run):
    program = attempts(
        "os.fork()",
        "os.posix_spawn(sys.executable, [sys.executable, '-c', 'pass'], {})",
        "__import__('subprocess').run([sys.executable, '-c', 'pass'])",
        "__import__('_thread').start_new_thread(print, ())",
        "__import__('multiprocessing').Process(target=print).start()",
    )
    assert run(sandbox, program, limits) == ("no OSError\nno OSError\nno OSError\nno RuntimeError\nno OSError\n", "0")


def test_raw_system_calls_are_refused(sandbox, limits, run):
    """By number, past Python's wrappers: clone, vfork, ptrace, mount, unshare, keyctl, memfd_create, bpf, io_uring."""
    program = TRY + textwrap.dedent(
        """
        call = ctypes.CDLL(None, use_errno=True).syscall
        for number in (56, 57, 58, 101, 165, 272, 250, 319, 321, 425, 435, 29, 41, 155, 161, 310, 62, 157, 323, 304):
            print(call(number, 0, 0, 0, 0, 0), ctypes.get_errno())
        """
    )
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers are those of x86-64")
    assert run(sandbox, program, limits) == ("-1 38\n" * 20, "0")


def test_calls_of_another_machine_kill(sandbox, limits, run):
    if os.uname().machine != "x86_64":
        pytest.skip("x86-64 has 32-bit calls beside its own")
    code = "b8 14 00 00 00 cd 80 c3"  # mov eax, 20 (getpid); int 0x80; ret
    program = TRY + textwrap.dedent(
        f"""
        import mmap
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(bytes.fromhex("{code}"))
        ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
        print("OUT")
        """
    )
    printed, ending = run(sandbox, program, limits)
    assert printed == "" and ending == "159"  # 128 + SIGSYS


def test_the_environment_is_empty(sandbox, limits, run, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    program = "import os, sys\nprint(sorted(os.environ))\nprint(os.path.exists('/proc'), sys.argv)"
    printed, _ = run(sandbox, program, limits)
    names = "['LANG', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'PWD', 'PYTHONHASHSEED']"
    assert printed == f"{names}\nFalse ['']\n"


def test_nothing_of_the_host_is_there(sandbox, limits, run, tmp_path):
    (tmp_path / "secret").write_text("hunter2")
    home = os.path.expanduser("~")
    program = (
        "import os, sys\n"
        f"print(os.path.exists({str(tmp_path / 'secret')!r}), os.path.exists({home + '/.bashrc'!r}))\n"
        "print(sorted(set(os.listdir('/')) & {'proc', 'sys', 'run', 'home', 'var', 'opt', 'mnt', 'boot'}))\n"
        "print(sorted(os.listdir('/dev')), [name for name in range(3, 64) if os.path.exists(f'/dev/fd/{name}')])\n"
        "print(os.getuid(), os.getpid() < 5, os.uname().nodename)"
    )
    printed, _ = run(sandbox, program, limits)
    assert printed == "False False\n[]\n['null', 'urandom', 'zero'] []\n65534 True box\n"


def test_no_file_descriptor_is_inherited(sandbox, limits, run, tmp_path):
    with open(tmp_path / "open", "w") as file:
        os.set_inheritable(file.fileno(), True)
        program = "import os\nfor n in range(3, 64):\n    try: print(os.fstat(n))\n    except OSError: pass"
        assert run(sandbox, program, limits) == ("", "0")


def test_nothing_can_be_written(sandbox, limits, run, tmp_path):
    package = os.path.dirname(os.__file__)
    places = [
        str(tmp_path),
        os.path.expanduser("~"),
        "/",
        "/" + "tmp",
        "/dev",
        "/etc",
        "/usr/lib",
        "/box/inside",
        package,
    ]
    lines = [f"open({place + '/written'!r}, 'w')" for place in places]
    lines += ["os.symlink('/etc', 'link')", "os.mkdir('folder')", "os.mknod('node')", "os.chmod(os.__file__, 0o777)"]
    printed, _ = run(sandbox, attempts(*lines), limits)
    assert "OUT" not in printed and printed.count("no ") == len(lines)
    assert not any(os.path.exists(place + "/written") for place in places)


def test_loopback_and_the_network_are_out_of_reach(sandbox, limits, run):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        lines = [
            f"socket.create_connection(('127.0.0.1', {port}), 1)",
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        ]
        lines += ["socket.socket(socket.AF_UNIX)", "socket.socketpair(socket.AF_INET)"]
        printed, _ = run(sandbox, attempts(*lines), limits)
        assert "OUT" not in printed and printed.count("no ") == 4
        with pytest.raises(TimeoutError):
            server.accept()


def test_signals_reach_nobody(sandbox, limits, run):
    program = attempts("os.kill(1, 9)", "os.kill(-1, 9)", "os.killpg(0, 9)", "os.kill(os.getppid(), 9)")
    program += "print('still here')"
    assert run(sandbox, program, limits) == ("no OSError\n" * 4 + "still here\n", "0")


def test_a_terminal_cannot_be_typed_into(sandbox, limits, run):
    program = attempts("__import__('fcntl').ioctl(0, 0x5412, b'x')", "os.open('/dev/tty', 0)")
    assert run(sandbox, program, limits) == ("no PermissionError\nno FileNotFoundError\n", "0")


def test_packages_are_there_only_where_allowed(sandbox, limits, run):
    program = attempts("__import__('yaml')", "__import__('trl_reasoning')")
    assert run(sandbox, program, limits) == ("no ModuleNotFoundError\n" * 2, "0")
    allowed = dataclasses.replace(limits, site_packages=True)
    assert run(sandbox, attempts("__import__('yaml')"), allowed) == ("OUT\n", "0")


def test_the_standard_library_works(sandbox, limits, run):
    program = (
        "import asyncio, collections, dataclasses, decimal, fractions, functools, heapq, itertools, json, math\n"
        "import random, re, statistics, string, threading, typing, zlib, hashlib, datetime\n"
        "async def one():\n    await asyncio.sleep(0)\n    return 1\n"
        "print(asyncio.run(one()), decimal.Decimal('0.1') + 1, hashlib.md5(b'a').hexdigest()[:4])\n"
        "def main():\n    print(input())\n"
        "threading.stack_size(1 << 27)\nthread = threading.Thread(target=main)\nthread.start()\nthread.join()"
    )
    assert run(sandbox, program, limits, "in a thread") == ("1 1.1 0cc1\nin a thread\n", "0")
