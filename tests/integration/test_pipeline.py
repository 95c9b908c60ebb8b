"""`trl-reasoning pipeline` as a person calls it: run, stop in the middle, go on, skip, one report."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


RECIPES = Path(__file__).resolve().parents[2] / "recipes"
STEPS = 12
PIPELINE = f"""
name: tiny
seed: 0
defaults:
  evaluate: {{task: "builtin:chain", task_params: {{operands: [2, 3], size: 8}}, samples: 2, max_new_tokens: 32}}
stages:
  - {{name: base, kind: evaluate, role: base, with: {{model: "builtin:tiny"}}}}
  - name: rl
    kind: train
    role: rl
    recipe: {RECIPES}/smoke/dr_grpo_tiny.yaml
    with: {{max_steps: {STEPS}, save_strategy: steps, save_steps: 100}}
  - {{name: rl_eval, kind: evaluate, of: rl}}
  - name: control
    kind: train
    role: control
    recipe: {RECIPES}/smoke/sft_tiny.yaml
    time_limit_of: rl
    with: {{max_steps: 2}}
"""


class Program:
    """The command, and what its runs left in the output folder."""

    def __init__(self, folder: Path):
        self.root = folder / "out"
        (folder / "pipeline.yaml").write_text(PIPELINE)
        arguments = [str(folder / "pipeline.yaml"), "--output_dir", str(self.root)]
        self.command = [sys.executable, "-m", "trl_reasoning", "pipeline", *arguments]

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([*self.command, *arguments], capture_output=True, text=True)

    def stage(self, name: str) -> Path:
        return self.root / "stages" / name

    def state(self, name: str) -> dict:
        return json.loads((self.stage(name) / "stage.json").read_text())


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Program:
    return Program(tmp_path_factory.mktemp("pipeline"))


@pytest.fixture(scope="module")
def interrupted(program: Program) -> Program:
    """The pipeline stopped by SIGTERM after the first training step."""
    process = subprocess.Popen(program.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    log = program.stage("rl") / "train_log.jsonl"
    while process.poll() is None and not (log.exists() and log.read_text()):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate()
    assert process.returncode == 143, output
    assert "stopped in stage rl; the same command goes on from there" in output
    return program


@pytest.fixture(scope="module")
def finished(interrupted: Program) -> tuple[Program, str]:
    """The same command again, to its end."""
    result = interrupted.run()
    assert result.returncode == 0, result.stdout + result.stderr
    return interrupted, result.stdout


def test_a_stopped_training_has_saved_a_checkpoint_and_the_pipeline_its_report(interrupted):
    assert list(interrupted.stage("rl").glob("checkpoint-*"))
    run = json.loads((interrupted.stage("rl") / "run.json").read_text())
    assert run["status"] == "interrupted" and 0 < run["steps"] < STEPS
    assert interrupted.state("base")["status"] == "finished"
    rows = json.loads((interrupted.root / "report.json").read_text())["stages"]
    assert [(row["name"], row["accuracy"] is None) for row in rows] == [("base", False), ("rl", True)]


def test_the_same_command_skips_what_is_done_and_resumes_the_training(finished):
    program, output = finished
    assert "base (evaluate): skipped, done before" in output
    assert "rl (train): goes on, it was interrupted" in output
    assert "resuming from" in (program.stage("rl") / "log.txt").read_text()
    steps = [json.loads(line)["step"] for line in (program.stage("rl") / "train_log.jsonl").read_text().splitlines()]
    assert steps == sorted(steps) and set(range(1, STEPS + 1)) <= set(steps)
    assert json.loads((program.stage("rl") / "run.json").read_text())["status"] == "finished"


def test_the_control_was_given_the_training_time_of_rl(finished):
    program, _ = finished
    seconds = json.loads((program.stage("rl") / "run.json").read_text())["seconds"]
    assert f"--max_seconds={seconds}" in program.state("control")["command"]


def test_training_ran_under_accelerate_and_evaluation_did_not(finished):
    program, _ = finished
    assert "accelerate.commands.launch" in program.state("rl")["command"]
    assert "accelerate.commands.launch" not in program.state("rl_eval")["command"]


def test_table_json_and_metrics_hold_the_same_numbers(finished):
    program, output = finished
    rows = {row["name"]: row for row in json.loads((program.root / "report.json").read_text())["stages"]}
    assert {name: row["kind"] for name, row in rows.items()} == {"base": "base", "rl": "rl", "control": "control"}
    for row, evaluation in (("base", "base"), ("rl", "rl_eval")):
        metrics = json.loads((program.stage(evaluation) / "metrics.json").read_text())
        assert (rows[row]["accuracy"], rows[row]["interval"]) == (metrics["accuracy"], metrics["interval"])
        assert rows[row]["mean_tokens"] == metrics["mean_tokens"]
    assert rows["control"]["accuracy"] is None
    assert rows["rl"]["seconds"] == json.loads((program.stage("rl") / "run.json").read_text())["seconds"]
    table = [line for line in output.splitlines() if line.startswith("| rl | rl | ")]
    assert len(table) == 1 and f"{rows['rl']['accuracy']:.1%}" in table[0]
    assert table[0] in (program.root / "report.md").read_text()
    assert (program.root / "curves.png").stat().st_size > 0


def test_a_third_run_does_nothing_and_leaves_the_report_as_it_was(finished):
    program, _ = finished
    before = (program.root / "report.json").read_text()
    result = program.run()
    assert result.returncode == 0
    assert result.stdout.count("skipped, done before") == 4
    assert (program.root / "report.json").read_text() == before


def test_a_mistyped_key_of_a_recipe_stops_before_the_first_stage(program, tmp_path):
    result = subprocess.run(
        [*program.command[:-1], str(tmp_path / "new"), "--stages.rl.learning_rte=1e-5"], capture_output=True, text=True
    )
    assert result.returncode == 2
    assert "stage rl" in result.stderr and "`learning_rate`" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "new" / "stages").exists()
