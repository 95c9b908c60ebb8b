"""From samples to trained models through the command line: off-policy distillation, scores, pairs, averages."""

import json

import pytest

from trl_reasoning.cli import main
from trl_reasoning.generation import read_records
from trl_reasoning.stages import load_pipeline


TASK = ["--task", "builtin:chain", "--split", "train", "--task_params", "{operands: [2, 3], size: 12, seed: 3}"]
SIZES = ["--samples", "4", "--max_new_tokens", "48", "--batch_size", "64"]
TRAIN = """model_name_or_path: builtin:tiny
max_steps: 2
per_device_train_batch_size: 4
max_length: 128
use_cpu: true
bf16: false
save_strategy: "no"
"""


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """Twelve problems, four samples each, scored by form."""
    folder = tmp_path_factory.mktemp("samples")
    score = ["--score", "[accuracy, {name: format, weight: 0.5}]"]
    assert main(["sample", "--model", "builtin:tiny", *TASK, *SIZES, *score, "--output_dir", str(folder)]) == 0
    return folder


def train(folder, source, method):
    recipe = folder / f"{method}.yaml"
    recipe.write_text(f"method: {method}\n{TRAIN}datasets: [{json.dumps(source)}]\noutput_dir: {folder / method}\n")
    return main(["train", str(recipe)])


def test_a_student_learns_the_shortest_right_samples_of_its_teacher(samples, tmp_path, capsys):
    source = {"path": str(samples / "records.jsonl"), "from_samples": {"keep": "right", "take": "shortest"}}
    assert train(tmp_path, source, "sft") == 0
    right = {record["id"] for record in read_records(samples / "records.jsonl") if record["status"] == "right"}
    shown = capsys.readouterr().out
    assert f"{len(right)} samples of {len(right)} of 12 prompts (48 samples)" in shown
    assert (tmp_path / "sft" / "model.safetensors").is_file()


def test_pairs_of_the_samples_train_dpo(samples, tmp_path, capsys):
    source = {"path": str(samples), "pairs": {"rule": "best_worst", "by": "score"}}
    assert train(tmp_path, source, "dpo") == 0
    assert "pairs of " in capsys.readouterr().out


def test_each_sample_has_the_weighted_sum_as_its_score(samples):
    records = read_records(samples / "records.jsonl")
    assert len(records) == 48
    for record in records:
        is_right, is_formed = record["status"] == "right", record["valid_format"]
        assert record["score"] == is_right + 0.5 * is_formed
        assert record["scores"] == {"accuracy_reward": float(is_right), "format_reward": float(is_formed)}


def test_other_scores_need_no_new_samples(samples, tmp_path, capsys):
    before = read_records(samples / "records.jsonl")
    call = ["sample", "--model", "builtin:tiny", *TASK, *SIZES, "--output_dir", str(samples)]
    assert main([*call, "--score", "format"]) == 0
    assert "48 of 48 samples have a score" in capsys.readouterr().out
    after = read_records(samples / "records.jsonl")
    assert [record["completion"] for record in after] == [record["completion"] for record in before]
    assert [record["score"] for record in after] == [float(record["valid_format"]) for record in after]
    assert main([*call, "--score", "[accuracy, {name: format, weight: 0.5}]"]) == 0
    assert read_records(samples / "records.jsonl") == before


def test_a_score_that_cannot_be_given_stops_before_sampling(tmp_path, capsys):
    call = ["sample", "--model", "builtin:tiny", *TASK, "--output_dir", str(tmp_path / "out")]
    for score, words in (
        ("formt", "score[0]: 'formt' is not a known reward"),
        ("{name: reward_model, model: ./nowhere}", "score[0].model: no folder './nowhere'"),
        ("{name: accuracy, for: {scenario: math}}", "score: `accuracy` needs the column `scenario` of the task"),
    ):
        assert main([*call, "--score", score]) == 2
        assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_average_by_command_and_by_recipe(tmp_path, capsys):
    recipe = tmp_path / "sft.yaml"
    source = "{path: builtin:chain, size: 8, params: {operands: 2}}"
    recipe.write_text(
        f"method: sft\n{TRAIN}learning_rate: 0.01\ndatasets: [{source}]\noutput_dir: {tmp_path / 'run'}\n"
    )
    assert main(["train", str(recipe)]) == 0
    words = ["--average", str(tmp_path / "run"), "builtin:tiny", "--weights", "0.25", "0.75", "--dtype", "float32"]
    assert main(["export", *words, "--output_dir", str(tmp_path / "one")]) == 0
    assert f"0.25 x {tmp_path / 'run'}, 0.75 x builtin:tiny" in capsys.readouterr().out
    recipe = tmp_path / "export.yaml"
    recipe.write_text(
        f"kind: export\naverage: [{tmp_path / 'run'}, builtin:tiny]\nweights: [0.25, 0.75]\ndtype: float32\n"
        f"output_dir: {tmp_path / 'two'}\n"
    )
    assert main(["recipes", "check", str(recipe)]) == 0
    assert main(["export", str(recipe)]) == 0
    assert (tmp_path / "one/model.safetensors").read_bytes() == (tmp_path / "two/model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "model: is missing"),
        (["--model", "builtin:tiny", "--weights", "1"], "weights: has no effect without `average`"),
        (["--average", "a", "b", "--model", "c"], "model: not together with `average`"),
        (["--average", "a", "b", "--weights", "1", "2"], "weights: expected the sum 1, got 3"),
        (["--average", "[a]"], "average: expected at least two models, got 1"),
        (["--average", "a"], "average: expected at least two models, got 1"),
    ],
    ids=str,
)
def test_settings_of_an_average_that_do_not_fit(tmp_path, capsys, words, error):
    assert main(["export", *words, "--output_dir", str(tmp_path / "out")]) == 2
    assert error in capsys.readouterr().err


def test_a_pipeline_hands_its_models_to_an_average(tmp_path):
    (tmp_path / "sft.yaml").write_text("method: sft\nmodel_name_or_path: builtin:tiny\n")
    path = tmp_path / "pipeline.yaml"
    path.write_text(
        "stages:\n"
        "  - {name: long, kind: train, role: sft, recipe: sft.yaml}\n"
        "  - {name: short, kind: train, role: sft, recipe: sft.yaml}\n"
        "  - name: merge\n"
        "    kind: export\n"
        '    with: {average: ["${stages.long.model}", "${stages.short.model}"]}\n'
    )
    pipeline = load_pipeline(path)
    merge = pipeline.stages[2]
    assert merge.needs == ["long", "short"]
    names = pipeline.resolve(merge, tmp_path)["average"]
    assert names == [str(tmp_path / "stages" / "long"), str(tmp_path / "stages" / "short")]
