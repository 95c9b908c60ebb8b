"""What the watch for tricked rewards logs and writes: shares of verdicts and sampled completions."""

import json
from pathlib import Path

import pytest
from watch_tools import THOUGHT, make_builder

from trl_reasoning.rewards import REWARDS, make_routed_reward
from trl_reasoning.trainers._hacking import SAMPLES_FILE


@pytest.fixture
def build(tiny, chain, common, monkeypatch):
    return make_builder(tiny, chain, common, monkeypatch)


def samples(trainer) -> list[dict]:
    lines = (Path(trainer.args.output_dir) / SAMPLES_FILE).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_shares_and_samples(build, chain):
    """The golds are 5 or cannot be read; of two completions one is right, and the other has no answer."""
    rows = chain.map(lambda row, index: {"solution": "5" if index < 8 else None}, with_indices=True)
    trainer = build(
        lambda step: [THOUGHT, "<think>2+3=5</think>"],
        dataset=rows,
        names=("accuracy", "format"),
        per_device_train_batch_size=8,
        max_steps=4,
    )
    trainer.train()
    for log in trainer.state.log_history[:4]:
        shares = {name: log[f"rewards/accuracy_reward/{name}"] for name in ("right", "wrong", "unparsed", "timed_out")}
        skipped = log["rewards/accuracy_reward/skipped"]
        assert shares == {"right": (1 - skipped) / 2, "wrong": 0, "unparsed": (1 - skipped) / 2, "timed_out": 0}
        assert log["rewards/format_reward/skipped"] == 0
        assert "rewards/format_reward/right" not in log
    lines = samples(trainer)
    assert [line["step"] for line in lines] == [1] * 5 + [4] * 5
    assert set(lines[0]) == {"step", "prompt", "completion", "rewards", "advantage", "verdict", "extracted"}
    for line in lines:
        value = {"right": 1.0, "unparsed": 0.0, "unreadable_gold": None}[line["verdict"]]
        assert line["rewards"]["accuracy_reward"] == value


def test_two_rewards_that_note_a_verdict_keep_their_columns(build, chain):
    rows = chain.map(lambda row, index: {"kind": "a" if index % 2 else "b"}, with_indices=True)
    first, second = (make_routed_reward(REWARDS["accuracy"](), "kind", [kind]) for kind in "ab")
    second.__name__ = "accuracy_b"
    trainer = build(
        lambda step: [THOUGHT], names=(first, second), dataset=rows, per_device_train_batch_size=16, max_steps=1
    )
    trainer.train()
    log = trainer.state.log_history[0]
    for name in ("accuracy_reward", "accuracy_b"):
        shares = [log[f"rewards/{name}/{part}"] for part in ("skipped", "right", "wrong", "unparsed", "timed_out")]
        assert sum(shares) == pytest.approx(1.0)
    assert log["rewards/accuracy_reward/skipped"] + log["rewards/accuracy_b/skipped"] == pytest.approx(1.0)
    assert all({"verdict", "accuracy_b/verdict"} <= set(line) for line in samples(trainer))


def test_a_resumed_run_has_each_sample_once(build, tmp_path):
    keys = {"save_strategy": "steps", "save_steps": 3, "output_dir": str(tmp_path)}
    trainer = build(lambda step: [THOUGHT], max_steps=4, **keys)
    trainer.train()
    assert len(samples(trainer)) == 4  # two completions a batch, at steps 1 and 4
    build(lambda step: [THOUGHT], max_steps=4, **keys).train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert [line["step"] for line in samples(trainer)] == [1, 1, 4, 4]
