"""Workers of processes of all kinds: scripts without a guard, forked and daemonic ones, ranks, killed ones."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest


# No `if __name__ == "__main__"`: what imports the script again would print this twice.
HEAD = """
print("top")
import math, os, psutil, signal, sys, time
from trl_reasoning.workers import run_limited
def family():
    return " ".join(str(child.pid) for child in psutil.Process().children(recursive=True))
def roots(*numbers):
    return [outcome.value for outcome in run_limited(math.sqrt, [(number,) for number in numbers], seconds=5)]
print(roots(4, 9))
"""
# Every warning is shown, and shared memory or processes left behind would be named.
COMMAND = [sys.executable, "-X", "dev", "-W", "error"]


@pytest.fixture
def start(tmp_path, monkeypatch):
    monkeypatch.setenv("TRL_REASONING_WORKERS", "2")
    script = tmp_path / "script.py"

    def start(body):
        script.write_text(HEAD + textwrap.dedent(body), encoding="utf-8")
        return subprocess.Popen(
            [*COMMAND, str(script)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            start_new_session=True,
        )

    return start


def finish(process, seconds=60):
    out, error = process.communicate(timeout=seconds)
    return process.returncode, out.splitlines(), error


def assert_gone(pids, seconds=10):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        left = [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]
        if not left:
            return
        time.sleep(0.05)
    raise AssertionError(f"still there: {left}")


def test_script_without_a_guard_ends_quietly(start):
    code, out, error = finish(start("print(family())"))
    assert (code, error) == (0, "")
    assert out[:2] == ["top", "[2.0, 3.0]"]
    assert_gone([int(pid) for pid in out[2].split()])


def test_exit_with_work_in_a_thread(start):
    body = """
    import threading
    thread = threading.Thread(target=run_limited, args=(time.sleep, [(3,)]), kwargs={"seconds": 5})
    thread.start()
    print(family())
    """
    code, out, error = finish(start(body))
    assert (code, error) == (0, "")
    assert_gone([int(pid) for pid in out[2].split()])


def test_killed_owner_takes_its_workers_along(start):
    body = """
    import threading
    threading.Thread(target=run_limited, args=(time.sleep, [(50,)]), kwargs={"seconds": 3}).start()
    time.sleep(1)
    print(family())
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)
    """
    code, out, _ = finish(start(body))
    assert code == -signal.SIGKILL
    pids = [int(pid) for pid in out[2].split()]
    assert len(pids) == 4
    # the busy one at its item's limit
    assert_gone(pids)


def test_ctrl_c_is_the_owners_alone(start):
    process = start("""
    print(family(), flush=True)
    run_limited(time.sleep, [(50,)] * 3, seconds=30)
    """)
    lines = [process.stdout.readline() for _ in range(3)]
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    code, _, error = finish(process)
    assert code in (-signal.SIGINT, 130)
    assert error.count("Traceback") == 1 and error.rstrip().endswith("KeyboardInterrupt")
    assert_gone([int(pid) for pid in lines[2].split()])


def test_forked_process_gets_workers_of_its_own(start):
    body = """
    before = set(family().split())
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        own = roots(16, 25)
        print(own, before & set(family().split()), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print(roots(36), before == set(family().split()))
    """
    code, out, error = finish(start(body))
    assert (code, error) == (0, "")
    assert out[2:] == ["[4.0, 5.0] set()", "[6.0] True"]


def test_daemonic_process_may_have_workers(start):
    # what a data loader forks: multiprocessing lets it have no children
    body = """
    import multiprocessing
    sys.stdout.flush()
    def work():
        print(multiprocessing.current_process().daemon, roots(16, 25), flush=True)
    process = multiprocessing.get_context("fork").Process(target=work, daemon=True)
    process.start()
    process.join()
    print(process.exitcode)
    """
    code, out, error = finish(start(body))
    assert (code, error) == (0, "")
    assert out[2:] == ["True [4.0, 5.0]", "0"]


def test_data_loader(start):
    body = """
    from torch.utils.data import DataLoader
    print(list(DataLoader(range(4), batch_size=2, num_workers=2, collate_fn=lambda rows: roots(*rows))))
    """
    code, out, _ = finish(start(body), seconds=120)
    assert code == 0
    assert out[2:] == ["[[0.0, 1.0], [1.4142135623730951, 1.7320508075688772]]"]


def test_two_ranks(tmp_path):
    script = tmp_path / "ranks.py"
    script.write_text(
        textwrap.dedent(r"""
        import torch.distributed as dist
        from trl_reasoning.answers import verify_batch

        dist.init_process_group("gloo")
        rank = dist.get_rank()
        predictions = [r"\boxed{\sin^2 x+\cos^2 x}", r"\boxed{(x+1)^{%d}}" % (1 + rank), r"\boxed{3^{3^{3^{3}}}}"]
        verdicts = verify_batch(predictions, ["1", "x+1", "7"])
        gathered = [None, None]
        dist.all_gather_object(gathered, [verdict.status for verdict in verdicts])
        if rank == 0:
            print(gathered)
        dist.destroy_process_group()
        """),
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    expected = [["right", "right", "timed_out"], ["right", "wrong", "timed_out"]]
    assert result.stdout.splitlines()[-1] == str(expected)
