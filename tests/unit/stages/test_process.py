"""A stage's process: log, exit code, and signals that reach it and its workers."""

import os
import signal
import sys
import threading
import time

from trl_reasoning.stages import Outcome, last_lines, run_attached, run_process


# Ends by itself only after a long time; on SIGTERM it needs a moment to save.
SAVES = """
import signal, sys, time
def save(number, frame):
    time.sleep(0.5)
    open(sys.argv[1], "w").write("saved")
    sys.exit(7)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
time.sleep(60)
"""
# Like accelerate's launcher: starts a worker and dies of the signal without waiting for it.
LAUNCHES = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {SAVES!r}, sys.argv[1]]).wait()
"""


def run(arguments, log, on_ready=None, announced=None):
    """Run a Python program; `on_ready` is called once when the log says that it is ready."""
    told = threading.Event()

    def look(line):
        if line == "ready" and on_ready is not None and not told.is_set():
            told.set()
            on_ready()

    said = announced if announced is not None else []
    return run_process([sys.executable, *arguments], log, on_progress=look, announce=said.append, interval=0.02)


def test_output_and_errors_go_to_the_log_below_the_command(tmp_path):
    log = tmp_path / "log.txt"
    outcome = run(["-c", "import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)"], log)
    assert (outcome.returncode, outcome.signal) == (3, None)
    first, *rest = log.read_text().splitlines()
    assert first.startswith("$ ") and "-c" in first
    assert sorted(rest) == ["one", "two"]


def test_a_second_part_is_appended(tmp_path):
    log = tmp_path / "log.txt"
    run(["-c", "print('one')"], log)
    run(["-c", "print('two')"], log)
    assert [line for line in log.read_text().splitlines() if not line.startswith("$")] == ["one", "two"]


def test_sigterm_reaches_the_process_which_may_save_first(tmp_path):
    said = []
    outcome = run(
        ["-c", SAVES, str(tmp_path / "saved")],
        tmp_path / "log.txt",
        on_ready=lambda: os.kill(os.getpid(), signal.SIGTERM),
        announced=said,
    )
    assert (outcome.returncode, outcome.signal) == (7, signal.SIGTERM)
    assert (tmp_path / "saved").read_text() == "saved"
    assert len(said) == 1 and "saves first" in said[0]


def test_a_launcher_that_dies_first_does_not_end_the_wait_for_its_worker(tmp_path):
    outcome = run(
        ["-c", LAUNCHES, str(tmp_path / "saved")],
        tmp_path / "log.txt",
        on_ready=lambda: os.kill(os.getpid(), signal.SIGTERM),
    )
    assert outcome.returncode == -signal.SIGTERM
    assert (tmp_path / "saved").read_text() == "saved"


def test_a_second_signal_ends_it_at_once(tmp_path):
    def twice():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    outcome = run(["-c", SAVES, str(tmp_path / "saved")], tmp_path / "log.txt", on_ready=twice)
    assert (outcome.returncode, outcome.signal) == (-signal.SIGKILL, signal.SIGTERM)
    assert not (tmp_path / "saved").exists()


def test_without_a_log_the_output_goes_where_ours_goes(capfd):
    outcome = run_attached([sys.executable, "-c", "import sys; print('one'); sys.exit(3)"], announce=print)
    assert (outcome.returncode, outcome.exit_code) == (3, 3)
    assert capfd.readouterr().out == "one\n"


def test_the_exit_code_after_a_signal_is_the_shells():
    assert Outcome(-15, 1.0, signal.SIGTERM).exit_code == 143
    assert Outcome(7, 1.0, signal.SIGINT).exit_code == 130


def test_the_handlers_of_before_are_put_back(tmp_path):
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    run(["-c", "pass"], tmp_path / "log.txt")
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_the_states_of_a_progress_bar_are_lines(tmp_path):
    log = tmp_path / "log.txt"
    log.write_bytes(b"start\n10%\r20%\r\n\n  \nlast\n")
    assert last_lines(log, 2) == "20%\nlast"
    assert last_lines(log, 9) == "start\n10%\n20%\nlast"
