"""`train` as a user runs it: files, an interruption, and the same command again."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml


REPOSITORY = Path(__file__).parents[2]
SMOKE = REPOSITORY / "recipes" / "smoke" / "dr_grpo_tiny.yaml"


def train(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "trl_reasoning", "train", str(SMOKE), "--output_dir", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def steps_of(folder: Path, key: str = "loss") -> list[int]:
    lines = (folder / "train_log.jsonl").read_text().splitlines()
    return [row["step"] for row in map(json.loads, lines) if key in row]


def test_a_run_leaves_its_records_and_is_not_repeated(tmp_path):
    done = train(tmp_path / "run")
    assert done.returncode == 0, done.stderr[-2000:]
    folder = tmp_path / "run"
    assert "step 2/2  loss" in done.stdout and "reward" in done.stdout and "accuracy" in done.stdout
    assert steps_of(folder) == [1, 2]
    run = json.loads((folder / "run.json").read_text())
    assert (run["status"], run["steps"], run["method"]) == ("finished", 2, "dr_grpo")
    assert run["seconds"] > 0 and run["peak_memory_mb"] > 100
    environment = json.loads((folder / "environment.json").read_text())
    assert environment["dtype"] in ("float32", "bfloat16") and environment["dtype_reason"]
    assert environment["packages"]["trl"].startswith("1.16")
    resolved = yaml.safe_load((folder / "resolved.yaml").read_text())
    assert resolved["method"] == "dr_grpo" and resolved["beta"] == 0.0 and resolved["scale_rewards"] == "none"
    assert (folder / "model.safetensors").exists() and (folder / "README.md").exists()
    assert json.loads((folder / "config.json").read_text())["use_cache"] is True
    assert any((folder / "runs").rglob("events.out.tfevents.*"))

    again = train(folder)
    assert again.returncode == 0
    assert "is finished (2 steps)" in again.stdout
    other = train(folder, "--learning_rate", "1e-3")
    assert other.returncode == 2
    assert "output_dir" in other.stderr and "learning_rate" in other.stderr and "--restart" in other.stderr
    restarted = train(folder, "--learning_rate", "1e-3", "--restart")
    assert restarted.returncode == 0 and "saved to" in restarted.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_the_same_command_goes_on(tmp_path, number):
    folder = tmp_path / "run"
    arguments = ["--max_steps", "12", "--output_dir", str(folder)]
    command = [sys.executable, "-m", "trl_reasoning", "train", str(SMOKE), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    log = folder / "train_log.jsonl"
    deadline = time.monotonic() + 120
    while not (log.exists() and log.read_text().count('"loss"') >= 2):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 128 + number, err[-2000:]
    run = json.loads((folder / "run.json").read_text())
    assert run["status"] == "interrupted" and run["signal"] == number
    assert 2 <= run["steps"] < 12
    assert (folder / f"checkpoint-{run['steps']}" / "trainer_state.json").exists()
    assert "the same command goes on from there" in out

    done = train(folder, "--max_steps", "12")
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"resuming from {folder / 'checkpoint-'}{run['steps']}" in done.stdout
    assert steps_of(folder) == list(range(1, 13))
    assert json.loads((folder / "run.json").read_text())["status"] == "finished"


def test_dry_run_checks_and_trains_nothing(tmp_path):
    done = train(tmp_path / "run", "--dry_run", "--learning_rate", "3e-6")
    assert done.returncode == 0, done.stderr[-2000:]
    assert yaml.safe_load(done.stdout)["learning_rate"] == 3e-6
    assert not (tmp_path / "run").exists()


def test_a_mistyped_key_stops_with_its_neighbour(tmp_path):
    done = train(tmp_path / "run", "--learning_rte", "1e-6")
    assert done.returncode == 2
    assert "learning_rte" in done.stderr and "learning_rate" in done.stderr
    assert "Traceback" not in done.stderr
