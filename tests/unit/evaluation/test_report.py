"""The table, its JSON and the plotted series, which are the same numbers."""

import json

import pytest

from trl_reasoning.evaluation import curve_series, report_figures, write_report


BASE = {
    "name": "base",
    "kind": "base",
    "accuracy": 0.55,
    "interval": [0.45, 0.65],
    "problems": 90,
    "samples": 360,
    "mean_tokens": 24.25,
    "mean_thought_tokens": 20.5,
    "format_share": 0.99,
    "cut_share": 0.01,
    "seconds": 9.4,
    "peak_memory_mb": 700.0,
    "by_difficulty": {
        "3": {"accuracy": 0.6, "interval": [0.5, 0.7], "mean_tokens": 20.0, "problems": 45, "samples": 180},
        "10": {"accuracy": 0.5, "interval": [0.35, 0.65], "mean_tokens": 28.0, "problems": 45, "samples": 180},
    },
}
RL = {
    **BASE,
    "name": "rl",
    "kind": "rl",
    "accuracy": 0.95,
    "interval": [0.91, 0.98],
    "mean_tokens": 31.0,
    "seconds": 754.0,
    "peak_memory_mb": 24_576.0,
    "by_difficulty": {
        "3": {"accuracy": 0.99, "interval": [0.96, 1.0], "mean_tokens": 25.0, "problems": 45, "samples": 180},
        "10": {"accuracy": 0.91, "interval": [0.85, 0.97], "mean_tokens": 37.0, "problems": 45, "samples": 180},
    },
}
UNMEASURED = {"name": "cold_start", "kind": "sft", "seconds": 30.0, "note": "failed, see stages/cold_start/log.txt"}
CURVES = {
    "rl": [
        {"step": 0, "heldout/accuracy": 0.5, "heldout/mean_tokens": 24.0},
        {"step": 1, "reward": 0.4, "completions/mean_length": 25.0},
        {"step": 2, "reward": 0.6, "completions/mean_length": 29.0},
        {"step": 2, "heldout/accuracy": 0.9, "heldout/mean_tokens": 30.0},
    ],
    "cold_start": [{"step": 1, "loss": 2.0}],
}


@pytest.fixture
def report(tmp_path):
    write_report(tmp_path, [BASE, UNMEASURED, RL], CURVES, title="quickstart")
    return json.loads((tmp_path / "report.json").read_text())


def lines_of(axes):
    return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines}


def test_the_table_has_a_row_a_stage(report, tmp_path):
    text = (tmp_path / "report.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == (
        "| stage | kind | accuracy (95 % interval) | mean tokens | thought tokens | valid format | cut | time "
        "| peak memory |"
    )
    assert rows[2:] == [
        "| base | base | 55.0% [45.0, 65.0] | 24.2 | 20.5 | 99.0% | 1.0% | 9 s | 700 MB |",
        "| cold_start | sft | – | – | – | – | – | 30 s | – |",
        "| rl | rl | 95.0% [91.0, 98.0] | 31.0 | 20.5 | 99.0% | 1.0% | 12.6 min | 24.0 GB |",
    ]
    assert text.startswith("# quickstart\n")
    assert "- cold_start: failed, see stages/cold_start/log.txt" in text
    for picture in ("curves.png", "by_difficulty.png"):
        assert f"]({picture})" in text
        assert (tmp_path / picture).stat().st_size > 10_000


def test_the_json_has_the_tables_numbers_and_null_elsewhere(report):
    base, cold_start, rl = report["stages"]
    for row, given in ((base, BASE), (rl, RL)):
        assert {key: row[key] for key in given} == given
    assert cold_start["accuracy"] is None
    assert cold_start["interval"] is None
    assert base.keys() == cold_start.keys() == rl.keys()


def test_the_curves_are_the_reports_numbers(report):
    accuracy, length = report_figures(report)["curves.png"].axes
    series = report["curves"]["rl"]
    assert lines_of(accuracy) == {
        "rl: training reward": (series["reward"]["step"], series["reward"]["value"]),
        "rl: held-out": (series["heldout/accuracy"]["step"], series["heldout/accuracy"]["value"]),
    }
    assert lines_of(length) == {
        "rl: training": ([1, 2], [25.0, 29.0]),
        "rl: held-out": ([0, 2], [24.0, 30.0]),
    }
    assert accuracy.get_shared_x_axes().joined(accuracy, length)
    assert accuracy.get_ylabel() == "accuracy or reward (%)"
    assert length.get_ylabel() == "completion length (tokens)"
    assert length.get_xlabel() == "optimizer step"


def test_the_bars_by_difficulty_are_the_reports_numbers(report):
    axes = report_figures(report, difficulty_label="operands")["by_difficulty.png"].axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["3", "10"]
    for container, row in zip(axes.containers, [report["stages"][0], report["stages"][2]], strict=True):
        assert container.get_label() == row["name"]
        levels = row["by_difficulty"].values()
        points, _, (bars,) = container.lines
        assert list(points.get_ydata()) == [level["accuracy"] for level in levels]
        ends = [segment[:, 1] for segment in bars.get_segments()]
        for end, level in zip(ends, levels, strict=True):
            assert list(end) == pytest.approx(level["interval"])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("operands", "accuracy (%)")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["base", "rl"]


def test_a_stage_has_one_colour_in_both_pictures(report):
    figures = report_figures(report)
    curve = figures["curves.png"].axes[0].lines[0].get_color()
    bar = figures["by_difficulty.png"].axes[0].containers[1].lines[0].get_color()
    assert curve == bar


def test_the_interval_of_heldout_accuracy_is_shaded():
    lines = [{"step": 1, "heldout/accuracy": 0.5, "heldout/accuracy_low": 0.4, "heldout/accuracy_high": 0.7}]
    lines += [{**lines[0], "step": 2}]
    report = {"stages": [], "curves": {"rl": curve_series(lines)}}
    (band,) = report_figures(report)["curves.png"].axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.4, 0.7)


def test_a_report_without_numbers_has_no_pictures(tmp_path):
    (tmp_path / "curves.png").write_text("of an earlier report")
    write_report(tmp_path, [UNMEASURED], {"cold_start": CURVES["cold_start"]})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json", "report.md"]


def test_the_change_on_the_same_problems_is_shown(tmp_path):
    stages = []
    for name, statuses in (("base", ["wrong", "wrong", "right"]), ("rl", ["right", "wrong", "right"])):
        path = tmp_path / f"{name}.jsonl"
        rows = [
            {"id": index, "sample": 0, "prompt": f"q{index}", "solution": "1", "status": status}
            for index, status in enumerate(statuses)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        stages.append({"name": name, "kind": name, "records": str(path)})
    base, rl = write_report(tmp_path / "report", stages, {})["stages"]
    assert base["change"] is None
    assert rl["change"]["against"] == "base"
    assert rl["change"]["change"] == pytest.approx(1 / 3)
    # The differences 1, 0, 0: standard deviation 0.57735, standard error 1/3, t(0.975, 2) = 4.3027.
    assert rl["change"]["interval"] == pytest.approx([1 / 3 - 4.3027 / 3, 1 / 3 + 4.3027 / 3], abs=1e-4)
    assert "| +33.3 [-110.1, +176.8] |" in (tmp_path / "report" / "report.md").read_text()


def test_of_the_training_keys_the_accuracy_comes_first():
    lines = [{"step": 1, "reward": 0.9, "answers/right": 0.5}]
    assert curve_series(lines) == {"answers/right": {"step": [1], "value": [0.5]}}
