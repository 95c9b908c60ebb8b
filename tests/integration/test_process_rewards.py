"""From samples to step labels, to a process reward model, and its three uses, by commands alone."""

import json
from pathlib import Path

import pytest

from trl_reasoning.callbacks.progress import read_log
from trl_reasoning.cli import main
from trl_reasoning.generation import read_records


SMOKE = Path(__file__).resolve().parents[2] / "recipes" / "smoke"
TASK = ["--model", "builtin:tiny", "--task", "builtin:chain", "--max_new_tokens", "40", "--seed", "3"]


@pytest.fixture(scope="module")
def samples(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    words = ["--task_params", "{operands: [2, 3], size: 6}", "--split", "train", "--samples", "2"]
    assert main(["sample", *TASK, *words, "--step_rollouts", "2", "--output_dir", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def model(samples, tmp_path_factory) -> str:
    """A LoRA run, whose folder holds the adapter and the head alone."""
    folder = str(tmp_path_factory.mktemp("prm"))
    words = ["--datasets", f"[{{path: {samples / 'step_labels.jsonl'}}}]", "--use_peft", "true", "--lora_r", "4"]
    words += ["--logging_steps", "1"]
    assert main(["train", str(SMOKE / "prm_tiny.yaml"), *words, "--output_dir", folder]) == 0
    return folder


def test_step_labels_beside_the_samples(samples):
    records = {(row["id"], row["sample"]): row for row in read_records(samples / "records.jsonl")}
    rows = read_records(samples / "step_labels.jsonl")
    assert 0 < len(rows) <= len(records) == 12
    for row in rows:
        record = records[row["id"], row["sample"]]
        assert all(step in record["completion"] for step in row["steps"])
        assert set(row["labels"]) <= {0.0, 0.5, 1.0}
        if record["finish_reason"] == "stop":
            assert row["labels"][-1] == float(record["status"] == "right")


def test_a_process_reward_model_from_them(model):
    logs = read_log(Path(model) / "train_log.jsonl")
    assert {"loss", "accuracy", "mean_score", "mean_label", "num_tokens"} <= set(logs[0])
    assert "eval_accuracy" in {key for log in logs for key in log}
    assert (Path(model) / "adapter_model.safetensors").is_file() and not (Path(model) / "config.json").exists()
    assert json.loads((Path(model) / "process_reward.json").read_text()) == {"separator": "\n", "plain_prompt": False}


def test_as_the_reward_of_a_run(model, tmp_path):
    words = ["--step_reward", f"{{name: process_model, model: {model}}}", "--output_dir", str(tmp_path)]
    assert main(["train", str(SMOKE / "grpo_ps_tiny.yaml"), *words]) == 0
    rewards = [row["steps/reward"] for row in read_log(tmp_path / "train_log.jsonl") if "steps/reward" in row]
    assert len(rewards) == 2 and all(0 < reward < 1 for reward in rewards)


def test_choosing_among_samples(model, tmp_path, capsys):
    words = ["--task_params", "{operands: [2, 3], size: 4}", "--samples", "3", "--output_dir", str(tmp_path)]
    assert main(["evaluate", *TASK, *words, "--best_of", f"{{model: {model}, aggregate: product}}"]) == 0
    found = json.loads((tmp_path / "metrics.json").read_text())["best_of"]
    assert (found["samples"], found["aggregate"], found["model"]) == (3, "product", model)
    assert 0 <= found["accuracy"] <= found["any_right"] <= 1
    assert found["majority"] <= found["any_right"] and found["mean"] <= found["any_right"]
    assert f"best of 3 by {model} (product of the steps): " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        ("sample", ["--step_split", "line"], "step_split: has no effect without `step_rollouts`"),
        ("sample", ["--step_rollouts", "0"], "step_rollouts: expected at least 1, got 0"),
        ("sample", ["--step_rollouts", "4", "--temperature", "0"], "step_rollouts: at temperature 0"),
        ("evaluate", ["--best_of", "{aggregate: min}"], "best_of.model: is missing"),
        ("evaluate", ["--best_of", "{model: ./nowhere}"], "best_of.model: no folder './nowhere'"),
        (
            "evaluate",
            ["--best_of", "{model: builtin:tiny}"],
            "model: builtin:tiny holds Qwen3ForCausalLM",
        ),
        ("evaluate", ["--best_of", "{model: some/prm, aggregate: mean}"], "best_of.aggregate: 'mean' is not"),
        (
            "evaluate",
            ["--best_of", "{model: some/prm, by: word}"],
            "best_of: `process_model` cannot be made: by: ",
        ),
    ],
)
def test_bad_settings(tmp_path, capsys, command, words, message):
    assert main([command, *TASK, *words, "--output_dir", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


def test_a_separator_that_contradicts_the_training(model, tmp_path, capsys):
    entry = f"{{name: process_model, model: {model}, separator: ';'}}"
    words = ["--step_reward", entry, "--output_dir", str(tmp_path / "out")]
    assert main(["train", str(SMOKE / "grpo_ps_tiny.yaml"), *words]) == 2
    assert "step_reward: `process_model` cannot be made: separator: " in capsys.readouterr().err
