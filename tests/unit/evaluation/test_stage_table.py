"""Columns of the stage table that appear where something was measured, and nowhere else."""

import json

import pytest

from trl_reasoning.evaluation import stage_table, write_report


BASE = {"name": "start", "kind": "sft", "accuracy": 0.5, "interval": [0.4, 0.6], "mean_tokens": 30.0}
MEASURED = {
    **BASE,
    "name": "dpo",
    "kind": "preference",
    "pairs": {"by": "mean", "accuracy": 0.875, "interval": [0.8, 0.92]},
    "win_rate": {
        "rate": 0.625,
        "interval": [0.55, 0.7],
        "judge": "verifier",
        "against": "out/stages/start_eval/records.jsonl",
    },
    "divergence": {"per_reply": 3.456, "interval": [3.0, 4.0], "per_token": 0.1, "reference": "builtin:tiny"},
}


def table(folder, *stages):
    write_report(folder, stages, {})
    text = (folder / "report.md").read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    return (
        text,
        [dict(zip(rows[0], row, strict=True)) for row in rows[2:]],
        json.loads((folder / "report.json").read_text()),
    )


def test_measures_get_columns_and_notes(tmp_path):
    text, (start, dpo), report = table(tmp_path, BASE, MEASURED)
    columns = {
        "pair accuracy": "87.5% [80.0, 92.0]",
        "win rate": "62.5% [55.0, 70.0]",
        "KL, nats a reply": "3.46 [3.00, 4.00]",
    }
    assert {name: dpo[name] for name in columns} == columns
    assert {start[name] for name in columns} == {"–"}
    assert "chosen reply has the higher mean (" in text
    assert (
        "- Win rate: against the samples in start_eval on the same problems, judged by verifier; ties count half."
        in text
    )
    assert "- KL: divergence to builtin:tiny on the model's own samples." in text
    assert report["stages"][1]["divergence"] == MEASURED["divergence"]
    assert "divergence" not in report["stages"][0]


def test_without_measures_nothing_is_said_of_them(tmp_path):
    text, (row,), report = table(tmp_path, BASE)
    assert not {"pair accuracy", "win rate", "KL, nats a reply"} & row.keys()
    assert not {"pairs", "win_rate", "divergence"} & report["stages"][0].keys()
    assert "KL" not in text
    assert "Win rate" not in text


@pytest.mark.parametrize(
    ("measure", "shown"),
    [({"per_reply": 0.5, "interval": None, "per_token": 0.1, "reference": "r"}, "0.50"), (None, "–")],
)
def test_a_divergence_of_one_problem_has_no_interval(tmp_path, measure, shown):
    _, rows, _ = table(tmp_path, MEASURED, {**BASE, **({"divergence": measure} if measure else {})})
    assert rows[1]["KL, nats a reply"] == shown


def test_a_model_in_a_folder_is_called_by_the_folders_name(tmp_path):
    (tmp_path / "sft").mkdir()
    text, _, _ = table(
        tmp_path, {**MEASURED, "divergence": {**MEASURED["divergence"], "reference": str(tmp_path / "sft")}}
    )
    assert "- KL: divergence to sft on" in text


def test_the_table_of_finished_rows(tmp_path):
    _, _, report = table(tmp_path, BASE, MEASURED)
    assert (
        stage_table(report["stages"])
        .splitlines()[0]
        .startswith("| stage | kind | accuracy (95 % interval) | pair accuracy |")
    )
