"""The pipeline runner: skip, continue, start again, fail, report. The stages' commands are short stand-ins."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from trl_reasoning import pipeline as pipeline_module
from trl_reasoning.commands.pipeline import check_stages
from trl_reasoning.config.errors import RecipeError
from trl_reasoning.errors import UserError
from trl_reasoning.pipeline import load_pipeline, plan_stages, run_pipeline
from trl_reasoning.stages import Stage, StageCheck, read_state


TEXT = """
name: demo
stages:
  - {name: base, kind: evaluate, role: base, with: {model: builtin:tiny, task: builtin:chain}}
  - {name: rl, kind: train, role: rl, recipe: rl.yaml, accelerate: cpu}
  - {name: rl_eval, kind: evaluate, of: rl, with: {task: builtin:chain}}
  - {name: control, kind: train, role: control, recipe: rl.yaml, accelerate: cpu, time_limit_of: rl}
"""
RUN = {"status": "finished", "seconds": 42.0, "peak_memory_mb": 900.0, "steps": 4, "method": "dr_grpo"}
METRICS = {
    "problems": 10,
    "samples": 20,
    "accuracy": 0.5,
    "interval": [0.4, 0.6],
    "mean_tokens": 12.0,
    "mean_thought_tokens": 8.0,
    "format_share": 1.0,
    "cut_share": 0.0,
    "unparsed_share": 0.0,
    "by_difficulty": {},
    "seconds": 3.0,
    "peak_memory_mb": 500.0,
    "settings": {},
}
LOG_LINE = {"step": 1, "reward": 0.5, "completions/mean_length": 9.0}
RECORD = {"id": 0, "sample": 0, "prompt": "1+1=?", "status": "right", "solution": "2", "tokens": 3}


class Demo:
    """A pipeline in a temporary folder whose stages are Python one-liners, with what each of them was called with."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        self.folder, self.root = tmp_path, tmp_path / "out"
        (tmp_path / "rl.yaml").write_text("method: dr_grpo\n")
        (tmp_path / "pipeline.yaml").write_text(TEXT)
        self.programs: dict[str, str] = {}
        self.ran: list[tuple[str, float | None]] = []
        self.said: list[str] = []
        monkeypatch.setattr(pipeline_module, "stage_command", self.command)

    def command(self, stage, settings, folder, *, accelerate, max_seconds=None):
        self.ran.append((stage.name, max_seconds))
        if stage.kind == "train":
            files = {"run.json": json.dumps(RUN), "train_log.jsonl": json.dumps(LOG_LINE) + "\n"}
        else:
            files = {"metrics.json": json.dumps(METRICS), "records.jsonl": json.dumps(RECORD) + "\n"}
        program = f"from pathlib import Path\nfor k, v in {files!r}.items(): Path({str(folder)!r}, k).write_text(v)"
        return [sys.executable, "-c", self.programs.get(stage.name, program)]

    def run(self, *overrides, **options) -> int:
        self.ran.clear()
        self.said.clear()
        pipeline = load_pipeline(self.folder / "pipeline.yaml", overrides)
        return run_pipeline(pipeline, self.root, say=self.said.append, **options)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.ran]

    def stage(self, name: str) -> Path:
        return self.root / "stages" / name

    def report(self) -> list[dict]:
        return json.loads((self.root / "report.json").read_text())["stages"]


@pytest.fixture
def demo(tmp_path, monkeypatch):
    return Demo(tmp_path, monkeypatch)


def test_all_stages_run_once_and_a_second_run_skips_them(demo):
    assert demo.run() == 0
    assert demo.ran == [("base", None), ("rl", None), ("rl_eval", None), ("control", 42.0)]
    assert read_state(demo.stage("rl"))["status"] == "finished"
    assert demo.run() == 0
    assert demo.ran == []
    assert sum("skipped, done before" in line for line in demo.said) == 4


def test_the_report_has_one_row_a_model_with_the_cost_of_its_training(demo):
    demo.run()
    base, rl, control = demo.report()
    assert (base["name"], base["kind"], base["accuracy"], base["seconds"]) == ("base", "base", 0.5, 3.0)
    assert (rl["name"], rl["kind"], rl["accuracy"], rl["interval"]) == ("rl", "rl", 0.5, [0.4, 0.6])
    assert (rl["seconds"], rl["peak_memory_mb"], rl["mean_tokens"]) == (42.0, 900.0, 12.0)
    assert (control["name"], control["kind"], control["accuracy"], control["interval"]) == (
        "control",
        "control",
        None,
        None,
    )
    curves = json.loads((demo.root / "report.json").read_text())["curves"]
    assert curves["rl"]["reward"] == {"step": [1], "value": [0.5]}
    assert (demo.root / "report.md").read_text().startswith("# demo\n")
    assert any("| rl | rl |" in line for text in demo.said for line in text.splitlines())


def test_a_changed_setting_runs_the_stage_and_what_refers_to_it_again(demo):
    demo.run()
    assert demo.run("--stages.rl.learning_rate=2e-5") == 0
    assert demo.names == ["rl", "rl_eval", "control"]
    assert any("rl (train): starts again, learning_rate was None and is '2e-5'" in line for line in demo.said)
    # What was made before is kept aside, once.
    assert read_state(demo.root / "stages" / "rl.previous")["settings"] == {}


def test_a_stage_made_anew_is_evaluated_anew_although_no_setting_changed(demo):
    demo.run()
    assert demo.run(only="rl", restart=True) == 0
    assert demo.names == ["rl"]
    assert not (demo.root / "stages" / "rl.previous").exists()
    demo.run()
    assert demo.names == ["rl_eval", "control"]


def test_only_and_from_choose_stages(demo):
    assert demo.run(only="base") == 0
    assert demo.names == ["base"]
    with pytest.raises(RecipeError, match="needs stage 'rl', which is not finished"):
        demo.run(start="rl_eval")
    demo.run(start="rl")
    assert demo.names == ["rl", "rl_eval", "control"]
    with pytest.raises(RecipeError, match="Did you mean `rl_eval`"):
        demo.run(only="rl_evla")


def test_an_earlier_stage_that_was_not_chosen_counts_as_it_is(demo):
    demo.run()
    assert demo.run("--stages.rl.learning_rate=2e-5", only="rl_eval", restart=True) == 0
    assert demo.names == ["rl_eval"]


def test_a_failed_stage_shows_the_end_of_its_log_and_the_report_the_stages_before(demo):
    demo.programs["rl"] = "import sys; sys.exit('no such model')"
    assert demo.run() == 1
    assert demo.names == ["base", "rl"]
    text = "\n".join(demo.said)
    assert "rl (train): failed with exit code 1" in text
    assert f"{demo.stage('rl') / 'log.txt'}" in text
    assert "    no such model" in text
    base, rl = demo.report()
    assert (base["accuracy"], rl["accuracy"], rl["seconds"]) == (0.5, None, None)
    assert "stages/rl/log.txt" in rl["note"]
    del demo.programs["rl"]
    assert demo.run() == 0
    assert demo.names == ["rl", "rl_eval", "control"]
    assert any("goes on, it was failed" in line for line in demo.said)


def test_a_training_that_ends_well_without_finishing_is_not_done(demo):
    run = json.dumps({**RUN, "status": "interrupted"})
    path = str(demo.stage("rl") / "run.json")
    demo.programs["rl"] = f"open({path!r}, 'w').write({run!r})"
    assert demo.run() == 1
    assert read_state(demo.stage("rl"))["status"] == "failed"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_stage_and_the_pipeline_and_a_rerun_goes_on(demo, number, code):
    demo.programs["rl"] = f"import os, signal, time; os.kill({os.getpid()}, {int(number)}); time.sleep(60)"
    assert demo.run() == code
    assert read_state(demo.stage("rl"))["status"] == "interrupted"
    assert any("stopped in stage rl; the same command goes on from there" in line for line in demo.said)
    assert [row["name"] for row in demo.report()] == ["base", "rl"]
    (demo.stage("rl") / "checkpoint-1").mkdir()
    del demo.programs["rl"]
    assert demo.run() == 0
    assert demo.names == ["rl", "rl_eval", "control"]
    assert (demo.stage("rl") / "checkpoint-1").exists()


def test_dry_run_says_what_would_happen_and_writes_nothing(demo):
    assert demo.run(dry_run=True) == 0
    assert demo.ran == []
    assert not demo.root.exists()
    assert demo.said[1:] == [
        "[1/4] base (evaluate): would run",
        "[2/4] rl (train): would run",
        "[3/4] rl_eval (evaluate): would run",
        "[4/4] control (train): would run",
    ]


def test_a_folder_that_no_pipeline_made_is_left_alone(demo):
    demo.stage("rl").mkdir(parents=True)
    (demo.stage("rl") / "thesis.tex").write_text("")
    with pytest.raises(RecipeError, match="no pipeline wrote"):
        demo.run()
    assert demo.ran == []


def test_two_pipelines_cannot_share_a_folder(demo):
    with pipeline_module._lock(demo.root), pytest.raises(UserError, match="another pipeline"):
        demo.run()


def test_the_check_stops_everything_before_the_first_stage(demo):
    (demo.folder / "pipeline.yaml").write_text(TEXT.replace("of: rl, with: {", "of: rl, with: {sampels: 2, "))
    demo.run(only="base")
    demo.run(only="rl")
    with pytest.raises(UserError, match=r"stage rl_eval: sampels: .*Did you mean `samples`"):
        demo.run(only="rl_eval", check=check_stages)
    assert demo.ran == []


def test_a_recipe_is_checked_with_its_data_only_when_what_it_refers_to_is_there(demo):
    path = demo.folder / "pipeline.yaml"
    path.write_text(TEXT.replace("of: rl, with: {", 'with: {model: "${stages.rl.model}", '))
    pipeline = load_pipeline(path)
    planned = plan_stages(pipeline, demo.root)
    assert [pipeline_module._is_ready(entry, planned) for entry in planned] == [True, True, False, True]


@pytest.mark.parametrize("kind", ["evaluate", "sample", "export"])
def test_every_kind_of_stage_is_checked_as_its_command_does(kind, tmp_path):
    settings = {"model": "builtin:tiny", "dtpye": "float32"}
    check = StageCheck(Stage("last", kind, kind, None, settings), settings, tmp_path, is_ready=True)
    with pytest.raises(UserError, match=r"stage last: dtpye: .*Did you mean `dtype`"):
        check_stages([check])
