"""`trl-reasoning recipes list | show | copy | check`."""

import subprocess
import sys
from pathlib import Path

import pytest

from trl_reasoning.cli import main


HUB_RECIPE = """method: dr_grpo
model_name_or_path: some-owner/some-model
datasets: [{path: some-owner/some-set, adapter: gsm8k}, {path: builtin:chain, size: 4}]
prompt_template: qwen_boxed
reward_funcs: [accuracy]
use_peft: true
dtype: bfloat16
"""


def test_list_is_light() -> None:
    code = (
        "import sys; from trl_reasoning.cli import main; code = main(['recipes', 'list']); "
        "heavy = {'torch', 'trl', 'transformers', 'datasets'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert {"smoke/sft_tiny", "smoke/grpo_tiny", "smoke/dr_grpo_tiny", "accelerate/fsdp2"} <= set(names)


def test_show_and_copy(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["recipes", "show", "smoke/grpo_tiny"]) == 0
    shown = capsys.readouterr().out
    assert "method: grpo" in shown
    assert main(["recipes", "copy", "smoke/grpo_tiny"]) == 0
    assert (tmp_path / "grpo_tiny.yaml").read_text() == shown
    assert main(["recipes", "copy", "smoke/grpo_tiny", "a/b/mine.yaml"]) == 0
    assert (tmp_path / "a/b/mine.yaml").read_text() == shown
    assert main(["recipes", "copy", "smoke/grpo_tiny"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["recipes", "show", "smoke/grpo_tinny"]) == 2
    assert "Did you mean `smoke/grpo_tiny`" in capsys.readouterr().err


def test_hub_parts_are_not_checked_but_all_else_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hub.yaml"
    path.write_text(HUB_RECIPE)
    assert main(["recipes", "check", str(path)]) == 0
    out = capsys.readouterr().out
    assert "hub parts not checked: some-owner/some-model, some-owner/some-set" in out
    path.write_text(HUB_RECIPE + "heldout: {task: some-owner/other-set}\n")
    assert main(["recipes", "check", str(path)]) == 0
    assert "some-owner/some-set, some-owner/other-set)" in capsys.readouterr().out
    for change, words in (
        ("num_generations: 3", "num_generations"),
        ("beta: 0.1", "beta"),
        ("reward_weights: [1, 2]", "reward_weights"),
        ("columns: {solution: nothing}", "nothing"),
        ("heldout: {task: nowhere.jsonl}", "nowhere.jsonl"),
    ):
        path.write_text(HUB_RECIPE + change + "\n")
        assert main(["recipes", "check", str(path)]) == 1
        assert words in capsys.readouterr().out


def test_recipes_of_export_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "export.yaml"
    path.write_text("kind: export\nmodel: some/run\noutput_dir: out\ndtype: float16\n")
    assert main(["recipes", "check", str(path)]) == 0
    assert f"ok      {path}: export" in capsys.readouterr().out
    for change, words in (
        ("dtpye: float16", "Did you mean `dtype`"),
        ("tolerance: -1", "tolerance: expected a number above 0"),
        ("bnb_4bit_quant_type: fp4", "bnb_4bit_quant_type: is for `load_in_4bit: true`"),
    ):
        path.write_text(f"kind: export\nmodel: some/run\noutput_dir: out\n{change}\n")
        assert main(["recipes", "check", str(path)]) == 1
        assert words in capsys.readouterr().out


def test_kinds_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "accelerate.yaml": "distributed_type: 'NO'\nnum_procs: 1\n",
        "kind.yaml": "kind: evaluat\nmodel: builtin:tiny\n",
        "list.yaml": "- a\n",
        "none.yaml": "seed: 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert main(["recipes", "check", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    for line, words in zip(lines, ("num_procs", "evaluate, sample, export", "mapping", "method"), strict=False):
        assert line.startswith("FAILED")
        assert words in line
    assert lines[-1] == "4 recipes checked, 4 failed"


def test_pipeline_stages_are_checked_with_their_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = Path(__file__).resolve().parents[2] / "recipes" / "smoke" / "sft_tiny.yaml"
    (tmp_path / "sft.yaml").write_text(recipe.read_text())
    pipeline = "stages:\n  - {{name: a, kind: train, role: sft, recipe: sft.yaml, with: {{learning_rate: {rate}}}}}\n"
    path = tmp_path / "pipeline.yaml"
    path.write_text(pipeline.format(rate=1e-5))
    assert main(["recipes", "check", str(path)]) == 0
    path.write_text(pipeline.format(rate="fast"))
    assert main(["recipes", "check", str(path)]) == 1
    out = capsys.readouterr().out
    assert "stages.a" in out
    assert "learning_rate: expected a number, got 'fast'" in out
