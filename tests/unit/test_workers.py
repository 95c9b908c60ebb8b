"""Limits on calls in worker processes: what hangs, crashes or eats memory costs itself alone."""

import asyncio
import ctypes
import math
import operator
import os
import shutil
import signal
import threading
import time

import psutil
import pytest

from trl_reasoning.workers import Outcome, pool, run_limited


@pytest.fixture(autouse=True)
def two_workers(monkeypatch):
    monkeypatch.setenv(pool.WORKERS_VARIABLE, "2")
    monkeypatch.setattr(pool, "_pool", None)
    yield
    if pool._pool is not None:
        pool._pool.close()


def statuses(outcomes):
    return [outcome.status for outcome in outcomes]


def keepers():
    return [worker.process.pid for worker in pool.current_pool().workers]


def family():
    """All processes of the workers: the keepers and their servers."""
    return [process for pid in keepers() for process in (psutil.Process(pid), *psutil.Process(pid).children())]


def wait_for_end(processes, seconds=10):
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    assert alive == []


def test_values_in_order():
    assert run_limited(math.sqrt, [(number * number,) for number in range(50)], seconds=5) == [
        Outcome("done", float(number)) for number in range(50)
    ]
    assert run_limited(math.sqrt, [], seconds=5) == []


def test_exception_is_a_failure():
    assert run_limited(math.sqrt, [(-1,), (4,)], seconds=5) == [
        Outcome("failed", error="ValueError: math domain error"),
        Outcome("done", 2.0),
    ]


def test_result_that_is_no_plain_data_is_a_failure():
    (outcome,) = run_limited(operator.methodcaller, [("strip",)], seconds=5)
    assert (outcome.status, outcome.error) == (
        "failed",
        "TypeError: Object of type methodcaller is not JSON serializable",
    )


def test_any_text_goes_through():
    texts = ["\ud800", "\x00", "‮١٢", "a" * 300_000, "😀"]
    outcomes = run_limited(operator.concat, [(text, "") for text in texts], seconds=5)
    assert [outcome.value for outcome in outcomes] == texts


def test_clock_starts_with_the_work():
    # three rounds of 0.5 s on two workers: the last item waits longer than its limit
    assert statuses(run_limited(time.sleep, [(0.5,)] * 6, seconds=0.9)) == ["done"] * 6


def test_hanging_items_cost_themselves():
    started = time.monotonic()
    items = [(2, 10), (3**1000, 10**9), (2, 11), (3**1000, 10**9), (2, 12)]
    outcomes = run_limited(pow, items, seconds=0.5)  # hangs inside C, which no Python signal handler ends
    assert [outcome.value for outcome in outcomes] == [1024, None, 2048, None, 4096]
    assert statuses(outcomes)[1::2] == ["timed_out"] * 2
    assert time.monotonic() - started < 15


def test_computing_time_is_limited_apart_from_the_clock():
    assert statuses(run_limited(time.sleep, [(0.6,)], seconds=5, cpu_seconds=0.3)) == ["done"]
    assert statuses(run_limited(pow, [(3**1000, 10**9)], seconds=60, cpu_seconds=0.3)) == ["timed_out"]


def test_memory_is_limited():
    items = [("a", 3), ("b", 10**9), ("c", 3)]
    outcomes = run_limited(operator.mul, items, seconds=20, memory_mb=256)
    assert statuses(outcomes) == ["done", "out_of_memory", "done"]
    assert statuses(run_limited(operator.mul, [("x", 200_000_000)], seconds=20, memory_mb=100)) == ["out_of_memory"]


def test_crashes_cost_themselves():
    outcomes = run_limited(ctypes.string_at, [(0,)], seconds=5)
    assert outcomes == [Outcome("failed", error="the worker died: SIGSEGV")]
    assert statuses(run_limited(os._exit, [(3,), (0,), (1,)], seconds=5)) == ["failed"] * 3
    assert statuses(run_limited(signal.raise_signal, [(int(signal.SIGKILL),)], seconds=5)) == ["failed"]
    assert statuses(run_limited(math.sqrt, [(4,)] * 4, seconds=5)) == ["done"] * 4


def test_owner_ends_an_item_that_stops_the_timer():
    started = time.monotonic()
    assert statuses(run_limited(signal.pause, [()], seconds=0.2)) == ["timed_out"]
    assert statuses(run_limited(signal.raise_signal, [(int(signal.SIGSTOP),)], seconds=0.2)) == ["timed_out"]
    assert time.monotonic() - started < 15


@pytest.mark.parametrize("victims", ["servers", "keepers", "all"])
def test_idle_worker_killed_from_outside(victims):
    run_limited(math.sqrt, [(4,)] * 4, seconds=5)
    servers = [child for pid in keepers() for child in psutil.Process(pid).children()]
    killed = {"servers": servers, "keepers": [psutil.Process(pid) for pid in keepers()], "all": family()}[victims]
    for process in killed:
        process.kill()
    time.sleep(0.1)
    assert statuses(run_limited(math.sqrt, [(4,)] * 8, seconds=5)) == ["done"] * 8


def test_busy_worker_killed_from_outside():
    found = []
    thread = threading.Thread(target=lambda: found.extend(run_limited(time.sleep, [(1.5,), (1.5,)], seconds=5)))
    thread.start()
    deadline = time.monotonic() + 20
    while len(family()) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    psutil.Process(keepers()[0]).children()[0].kill()
    thread.join()
    assert sorted(statuses(found)) == ["done", "failed"]


def test_threads_share_the_workers():
    found = {}

    def work(number):
        found[number] = run_limited(operator.mul, [(number, factor) for factor in range(20)], seconds=5)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: [outcome.value for outcome in outcomes] for number, outcomes in found.items()} == {
        number: [number * factor for factor in range(20)] for number in range(8)
    }
    assert len(keepers()) == 2


def test_event_loop():
    async def main():
        direct = run_limited(math.sqrt, [(4,)], seconds=5)
        others = await asyncio.gather(
            *(asyncio.to_thread(run_limited, math.sqrt, [(number,)], seconds=5) for number in (9, 16))
        )
        return [direct, *others]

    assert [outcomes[0].value for outcomes in asyncio.run(main())] == [2.0, 3.0, 4.0]


def test_interrupted_call_leaves_the_workers_right(monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("trl_reasoning.workers.limited._Run._collect", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run_limited(math.sqrt, [(4,)], seconds=5)
    assert run_limited(math.sqrt, [(9,)], seconds=5)[0].value == 3.0


def test_worker_environment():
    names = ["CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"]
    assert [outcome.value for outcome in run_limited(os.getenv, [(name,) for name in names], seconds=5)] == ["", "1"]
    assert run_limited(shutil.which, [("sh",)], seconds=5)[0].value == shutil.which("sh")


def test_preloaded_modules_are_no_part_of_the_time_limit():
    # its import alone takes longer
    outcomes = run_limited(math.sqrt, [(4,)] * 2, seconds=0.1, preload=("sympy",))
    assert statuses(outcomes) == ["done"] * 2


def test_close_ends_all_processes():
    run_limited(math.sqrt, [(4,)] * 4, seconds=5)
    processes = family()
    pool.current_pool().close()
    wait_for_end(processes)
    with pytest.raises(RuntimeError, match="while the interpreter shuts down"):
        run_limited(math.sqrt, [(4,)], seconds=5)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: 1, "expected a function of an importable module, got <function <lambda>"),
        ("abc".upper, "expected a function of an importable module"),
        (test_values_in_order.__get__(1), "expected the one that"),
    ],
)
def test_functions_that_cannot_be_named(function, message):
    with pytest.raises(ValueError, match=f"function: {message}"):
        run_limited(function, [()], seconds=1)


def test_bad_arguments():
    with pytest.raises(ValueError, match="items: expected plain data, .* set"):
        run_limited(len, [({1},)], seconds=1)
    with pytest.raises(ValueError, match="seconds, cpu_seconds, memory_mb: expected positive numbers, got 0, None"):
        run_limited(len, [("a",)], seconds=0)
    with pytest.raises(RuntimeError, match="workers cannot load builtins, no_such_module: ModuleNotFoundError"):
        run_limited(len, [("a",)], seconds=1, preload=("no_such_module",))


@pytest.mark.parametrize(
    ("workers", "ranks", "cores", "expected"),
    [(None, "1", 16, 4), (None, "8", 16, 2), (None, "8", 4, 1), (None, "1", 2, 2), ("7", "8", 2, 7)],
)
def test_worker_count(monkeypatch, workers, ranks, cores, expected):
    monkeypatch.delenv(pool.WORKERS_VARIABLE)
    if workers:
        monkeypatch.setenv(pool.WORKERS_VARIABLE, workers)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", ranks)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)))
    assert pool.worker_count() == expected


@pytest.mark.parametrize("text", ["0", "two", "-1", ""])
def test_bad_worker_count(monkeypatch, text):
    monkeypatch.setenv(pool.WORKERS_VARIABLE, text)
    with pytest.raises(ValueError, match=f"TRL_REASONING_WORKERS: expected a number of at least 1, got '{text}'"):
        pool.worker_count()
