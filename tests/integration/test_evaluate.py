"""`trl-reasoning evaluate` and `sample` from the command line, on the built-in model."""

import json

import pytest

from trl_reasoning.cli import main


SMALL = ["--task_params", "{operands: [3, 4], size: 4}", "--samples", "2", "--max_new_tokens", "24"]


def run(command, folder, *words):
    return main([command, "--model", "builtin:tiny", "--task", "builtin:chain", "--output_dir", str(folder), *words])


def test_evaluate_writes_metrics_and_does_nothing_twice(tmp_path, capsys):
    assert run("evaluate", tmp_path, *SMALL) == 0
    shown = capsys.readouterr().out
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert (metrics["problems"], metrics["samples"]) == (4, 8)
    assert list(metrics["by_difficulty"]) == ["3", "4"]
    low, high = metrics["interval"]
    assert f"accuracy {metrics['accuracy']:.1%} [{100 * low:.1f}, {100 * high:.1f}] (4 problems, 8 samples)" in shown
    records = (tmp_path / "records.jsonl").read_text()

    assert run("evaluate", tmp_path, *SMALL) == 0
    assert "has these settings already; --restart draws again" in capsys.readouterr().out
    assert (tmp_path / "records.jsonl").read_text() == records

    assert run("evaluate", tmp_path, *SMALL, "--seed", "5") == 2
    assert "seed: 0 there, 5 now" in capsys.readouterr().err
    assert run("evaluate", tmp_path, *SMALL, "--seed", "5", "--restart") == 0
    assert (tmp_path / "records.jsonl").read_text() != records


def test_a_recipe_file_and_its_overrides(tmp_path):
    recipe = tmp_path / "eval.yaml"
    (tmp_path / "sums.jsonl").write_text('{"text": "1+2+3=?", "gold": 6}\n{"text": "9-4-4=?", "gold": 1}\n')
    recipe.write_text(
        "kind: evaluate\n"
        "model: builtin:tiny\n"
        "task: {path: sums.jsonl, columns: {question: text, solution: gold}}\n"
        "samples: 3\n"
        "max_new_tokens: 24\n"
        f"output_dir: {tmp_path / 'out'}\n"
    )
    assert main(["evaluate", str(recipe), "--temperature", "0", "--samples", "1"]) == 0
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert (metrics["samples"], metrics["settings"]["temperature"]) == (2, 0)
    assert metrics["by_difficulty"] == {}


def test_sample_writes_verdicts(tmp_path, capsys):
    # A dotted key is an override of a nested one, as in recipes.
    words = ["--split", "train", "--samples", "2", "--max_new_tokens", "24", "--task_params.size", "3"]
    assert run("sample", tmp_path, *words) == 0
    records = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert len(records) == 6
    assert {record["status"] for record in records} <= {"right", "wrong", "unparsed"}
    assert "6 samples of 3 problems" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tempratur", "0"], "tempratur: not a key of `evaluate`. Did you mean `temperature`?"),
        (["--samples", "four"], "samples: expected a whole number, got 'four'"),
        (["--samples", "0"], "samples: expected at least 1, got 0"),
        (["--top_p", "2"], "top_p: expected a value in (0, 1], got 2"),
        (["--prompt_template", "r1zero"], "Did you mean `r1_zero`?"),
        (["--task_params.operand", "3"], "has no 'operand'; did you mean 'operands'?"),
        (["--task_adapter", "gsm8"], "did you mean 'gsm8k'?"),
        (["--task", "{path: builtin:chain, from_step: 3}"], "`from_step` is for rows that are trained on"),
        (["--dtype", "bf16"], "dtype: 'bf16' is not one of: auto, float32, bfloat16, float16."),
        (["--stop_strings", "</answer>"], "Write `stop_strings: [</answer>]`."),
        (["no_such.yaml"], "no file and no shipped recipe 'no_such.yaml'"),
    ],
)
def test_errors_name_the_key_and_stop_before_the_model(tmp_path, capsys, monkeypatch, words, message):
    monkeypatch.setattr("trl_reasoning.generation.load_backend", lambda *args, **kwargs: pytest.fail("model loaded"))
    assert run("evaluate", tmp_path / "out", *words) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_missing_key_and_a_recipe_of_another_kind_are_named(tmp_path, capsys):
    assert main(["evaluate", "--model", "builtin:tiny", "--task", "builtin:chain"]) == 2
    assert "output_dir: is missing: folder for the results" in capsys.readouterr().err
    recipe = tmp_path / "sample.yaml"
    recipe.write_text("kind: sample\nmodel: builtin:tiny\ntask: builtin:chain\noutput_dir: out\n")
    assert main(["evaluate", str(recipe)]) == 2
    assert "expected `kind: evaluate`" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["evaluate", "sample"])
def test_help_shows_the_keys_and_an_example(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    shown = capsys.readouterr().out
    assert stopped.value.code == 0
    assert "--max_new_tokens VALUE" in shown
    assert f"trl-reasoning {command} --model builtin:tiny" in shown
