"""Watched numbers, messages and the log file."""

import json
from types import SimpleNamespace

import pytest

from trl_reasoning.callbacks import HeldoutCallback, LogFileCallback, ProgressLineCallback, TimeLimitCallback
from trl_reasoning.callbacks.progress import explain, read_log, watched_line


def state(step: int, max_steps: int = 10) -> SimpleNamespace:
    return SimpleNamespace(global_step=step, max_steps=max_steps, is_world_process_zero=True)


def test_line_carries_what_a_person_watches():
    logs = {
        "loss": -0.0123,
        "reward": 0.5,
        "answers/right": 0.25,
        "length/right": 30.0,
        "length/wrong": 12.5,
        "completions/clipped_ratio": 0.1,
        "frac_reward_zero_std": 0.75,
        "heldout/accuracy": 0.875,
    }
    assert watched_line(logs) == (
        "loss -0.0123  reward 0.500  accuracy 25.0%  right_length 30.0  wrong_length 12.5  cut 10%  zero_spread 75%  "
        "heldout 87.5%"
    )


@pytest.mark.parametrize(
    ("logs", "words"),
    [
        ({"loss": 0.0, "reward": 0.0, "frac_reward_zero_std": 1.0}, "same reward"),
        ({"loss": 0.3, "reward": 0.1, "completions/clipped_ratio": 0.97}, "97% .* max_completion_length"),
        ({"loss": 0.1, "reward": 0.1, "answers/unreadable_gold": 1.0}, "no gold answer"),
        ({"loss": 1e-9, "reward": 0.4, "frac_reward_zero_std": 0.0}, "by construction"),
    ],
)
def test_messages_in_place_of_mysteries(logs, words):
    import re

    assert re.search(words, explain(logs) or "")


def test_nothing_to_explain():
    assert explain({"loss": 0.2, "reward": 0.5, "frac_reward_zero_std": 0.2, "completions/clipped_ratio": 0.0}) is None
    assert explain({"loss": 1.2}) is None


def test_a_kind_of_message_is_printed_once(capsys):
    callback = ProgressLineCallback()
    args = SimpleNamespace(disable_tqdm=True)
    callback.on_train_begin(args, state(0), None)
    for step in (1, 2):
        callback.on_log(args, state(step), None, logs={"loss": 0.0, "reward": 0.1 * step, "frac_reward_zero_std": 1.0})
    out = capsys.readouterr().out
    assert "step 1/10  loss 0.0000  reward 0.100" in out
    assert "step 2/10  loss 0.0000  reward 0.200" in out
    assert out.count("note: loss is 0 because") == 1


def test_log_file_drops_steps_after_the_checkpoint(tmp_path):
    path = tmp_path / "train_log.jsonl"
    first = LogFileCallback(path)
    first.on_train_begin(None, state(0), None)
    for step in (1, 2, 3):
        first.on_log(None, state(step), None, logs={"loss": float(step)})
    with path.open("a") as file:
        file.write('{"step": 4, "lo')  # killed in the middle of a line
    resumed = LogFileCallback(path)
    resumed.on_train_begin(None, state(2), None)
    resumed.on_log(None, state(3), None, logs={"loss": 30.0})
    assert [(row["step"], row["loss"]) for row in read_log(path)] == [(1, 1.0), (2, 2.0), (3, 30.0)]
    assert read_log(tmp_path / "none.jsonl") == []
    assert json.loads(path.read_text().splitlines()[0]) == {"step": 1, "loss": 1.0}


def test_heldout_is_measured_at_the_start_every_so_often_and_at_the_end():
    logged = []
    model = SimpleNamespace(eval=lambda: None, train=lambda: None)
    steps = []
    callback = HeldoutCallback(lambda: {"accuracy": 0.5}, every=4)
    callback.trainer = SimpleNamespace(model=model, log=logged.append)
    callback.on_train_begin(None, state(0), None)
    for step in range(1, 11):
        before = len(logged)
        control = SimpleNamespace(should_log=True)
        callback.trainer.log = lambda row, c=control: (logged.append(row), setattr(c, "should_log", False))
        callback.on_step_end(None, state(step), control)
        assert control.should_log  # the step's own log is still to come
        steps += [step] * (len(logged) - before)
    assert steps == [4, 8, 10]
    assert logged == [{"heldout/accuracy": 0.5}] * 4
    with pytest.raises(ValueError, match=r"heldout\.every"):
        HeldoutCallback(lambda: {}, every=0)


def test_time_limit_counts_earlier_parts():
    control = SimpleNamespace(should_save=False, should_training_stop=False)
    callback = TimeLimitCallback(100.0, seconds_before=99.0)
    callback.on_train_begin(None, state(0), None)
    callback.on_step_end(None, state(1), control)
    assert not control.should_training_stop
    late = TimeLimitCallback(100.0, seconds_before=100.5)
    late.on_train_begin(None, state(0), None)
    late.on_step_end(None, state(1), control)
    assert control.should_training_stop and control.should_save and late.reached
    with pytest.raises(ValueError, match="max_seconds"):
        TimeLimitCallback(0)


def test_methods_that_learn_without_a_spread_of_outcomes_are_not_told_that_they_do_not():
    flat = {"frac_reward_zero_std": 1.0, "reward": 1.0, "loss": 0.2}
    assert "no advantage is left" in (explain(flat) or "")
    # The steps of right completions differ, and right samples are learnt whatever the others are.
    assert explain({**flat, "steps/frac_zero_std": 0.5}) is None
    assert explain({**flat, "rft/right": 1.0}) is None
    assert "no advantage is left" in (explain({**flat, "steps/frac_zero_std": 1.0}) or "")
    assert "no completion of this step was right" in (explain({**flat, "loss": 0.0, "rft/right": 0.0}) or "")
