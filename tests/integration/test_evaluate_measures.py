"""`evaluate` with pairs, a reference and other samples, on the built-in model; and what a pipeline shows of it."""

import json

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForSequenceClassification

from trl_reasoning.builtin.tiny import build_tokenizer
from trl_reasoning.cli import main


SMALL = ["--task", "builtin:chain", "--task_params", "{operands: [3, 4], size: 6}", "--samples", "2"]
PAIRS = "{path: builtin:chain_pairs, size: 12, params: {operands: [3, 4], length_bias: 0.5}}"


def run(folder, *words, model="builtin:tiny"):
    return main(["evaluate", "--model", model, "--output_dir", str(folder), "--max_new_tokens", "32", *words])


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    assert run(folder, *SMALL) == 0
    return folder


def test_all_measures_in_one_evaluation(base, tmp_path, capsys):
    words = [*SMALL, "--pairs", PAIRS, "--reference", "builtin:tiny", "--against", str(base / "records.jsonl")]
    assert run(tmp_path, *words) == 0
    shown = capsys.readouterr().out
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    # The same model and seed: no divergence, the same samples, and a pair that both models rate alike is a tie.
    assert metrics["divergence"] == {
        "reference": "builtin:tiny", "per_reply": 0.0, "interval": [0.0, 0.0], "per_token": 0.0, "problems": 6
    }  # fmt: skip
    assert metrics["win_rate"]["rate"] == 0.5
    assert metrics["pairs"]["forms"]["sum_against_reference"] == 0.5
    # The base slips less often than it is right, and never re-checks.
    assert metrics["pairs"]["by_length"]["equal"]["accuracy"] == 1.0
    assert metrics["pairs"]["by_length"]["chosen_longer"]["accuracy"] == 0.0
    assert f"pairs: accuracy {metrics['pairs']['accuracy']:.1%} [" in shown
    assert "KL to builtin:tiny: 0.000 [0.000, 0.000] nats a reply, 0.0000 a token" in shown
    assert "win rate 50.0% [" in shown

    assert run(tmp_path, *words) == 0
    assert "has these settings already" in capsys.readouterr().out
    records = (tmp_path / "records.jsonl").read_text()
    assert (
        run(tmp_path, *words, "--pairs_by", "mean", "--judge", "shorter_right") == 0
    )  # measured again, not drawn again
    assert "has these settings already" not in capsys.readouterr().out
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert (metrics["pairs"]["by"], metrics["win_rate"]["judge"]) == ("mean", "shorter_right")
    assert (tmp_path / "records.jsonl").read_text() == records


def test_a_finished_evaluation_notices_other_samples(base, tmp_path, capsys):
    against = tmp_path / "other.jsonl"
    against.write_text((base / "records.jsonl").read_text())
    words = [*SMALL, "--against", str(against)]
    assert run(tmp_path / "out", *words) == 0
    against.write_text(against.read_text().replace('"right"', '"wrong"'))
    capsys.readouterr()
    assert run(tmp_path / "out", *words) == 0
    assert "has these settings already" not in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "metrics.json").read_text())["win_rate"]["lost"] == 0


def test_a_judge_of_ones_own(base, tmp_path, monkeypatch):
    (tmp_path / "my_judges.py").write_text(
        "def longer(prompt, first, second):\n"
        "    return 0.5 if first['tokens'] == second['tokens'] else float(first['tokens'] > second['tokens'])\n"
    )
    monkeypatch.chdir(tmp_path)
    words = [*SMALL, "--seed", "3", "--against", str(base / "records.jsonl"), "--judge", "my_judges.longer"]
    assert run(tmp_path / "out", *words) == 0
    found = json.loads((tmp_path / "out" / "metrics.json").read_text())["win_rate"]
    assert found["judge"] == "my_judges.longer"
    assert found["won"] + found["tied"] + found["lost"] == pytest.approx(1)


@pytest.fixture(scope="module")
def reward_model(tmp_path_factory):
    tokenizer = build_tokenizer()
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, max_position_embeddings=256, initializer_range=0.5,
        pad_token_id=tokenizer.pad_token_id, bos_token_id=None, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    config.num_labels = 1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Qwen3ForSequenceClassification(config)
    folder = tmp_path_factory.mktemp("reward") / "model"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_a_reward_model_is_measured_on_pairs_alone(reward_model, base, tmp_path, capsys):
    assert run(tmp_path, "--pairs", PAIRS, model=reward_model) == 0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["pairs"]["by"] == "score"
    assert metrics["pairs"]["pairs"] == 12
    assert not (tmp_path / "records.jsonl").exists()
    assert "by score (" in capsys.readouterr().out
    assert run(tmp_path, "--pairs", PAIRS, model=reward_model) == 0
    assert "has these settings already" in capsys.readouterr().out
    assert run(tmp_path, "--pairs", PAIRS, *SMALL, model=reward_model) == 2
    assert "is a reward model, which writes no text" in capsys.readouterr().err

    judge = f"{{name: reward_model, model: {reward_model}}}"
    assert run(tmp_path / "b", *SMALL, "--seed", "3", "--against", str(base / "records.jsonl"), "--judge", judge) == 0
    assert json.loads((tmp_path / "b" / "metrics.json").read_text())["win_rate"]["judge"] == "reward_model"


def test_a_language_model_can_be_measured_on_pairs_alone(tmp_path):
    assert run(tmp_path, "--pairs", PAIRS, "--reference", "builtin:tiny-untrained") == 0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["pairs"]["forms"].keys() >= {"sum", "mean_against_reference"}
    assert "divergence" not in metrics


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "task: is missing: the problems to solve; or give `pairs`"),
        (["--pairs", "{path: builtin:chain_pair}"], "pairs: path: no builtin task 'chain_pair'; did you mean"),
        ([*SMALL, "--judge", "verifier"], "judge: has no effect without `against`"),
        ([*SMALL, "--pairs_by", "sum"], "pairs_by: has no effect without `pairs`"),
        ([*SMALL, "--against", "no.jsonl"], "against: no file 'no.jsonl'"),
        (
            [*SMALL, "--against", "no.jsonl", "--judge", "verifyer"],
            "judge: 'verifyer' is not one of: verifier, shorter_right",
        ),
        ([*SMALL, "--against", "no.jsonl", "--judge", "{name: verifier, k: 1}"], "`verifier` has no parameter `k`"),
        ([*SMALL, "--reference", "builtin:tiny", "--temperature", "0"], "needs `temperature: 1.0`, got 0"),
        ([*SMALL, "--pairs", "{path: builtin:chain}"], "pairs: no column `chosen`"),
    ],
)
def test_errors_name_the_key(tmp_path, capsys, words, message):
    assert run(tmp_path, *words) == 2
    assert message in capsys.readouterr().err


def test_a_pipeline_shows_the_measures(base, tmp_path):
    (tmp_path / "pipeline.yaml").write_text(f"""
name: compare
defaults:
  evaluate: {{task: "builtin:chain", task_params: {{operands: [3, 4], size: 6}}, samples: 2, max_new_tokens: 32}}
stages:
  - {{name: start, kind: evaluate, role: base, with: {{model: "builtin:tiny"}}}}
  - name: other
    kind: evaluate
    role: control
    with: {{model: "builtin:tiny", reference: "builtin:tiny", against: "${{stages.start.records}}", pairs: {PAIRS}}}
  - {{name: pairs_alone, kind: evaluate, role: control, with: {{model: "builtin:tiny", task: null, pairs: {PAIRS}}}}}
""")
    assert main(["pipeline", str(tmp_path / "pipeline.yaml"), "--output_dir", str(tmp_path / "out")]) == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    start, other, alone = report["stages"]
    assert "win_rate" not in start
    assert (other["win_rate"]["rate"], other["divergence"]["per_reply"]) == (0.5, 0.0)
    assert alone["accuracy"] is None
    assert alone["pairs"]["accuracy"] == other["pairs"]["accuracy"]
    text = (tmp_path / "out" / "report.md").read_text()
    assert "| pair accuracy | win rate | KL, nats a reply |" in text
    assert "against the samples in start on" in text
