"""The experiments of `benchmarks/` can run, and their results can be rendered."""

import importlib

import pytest
from run import environment, experiment_names, load_settings
from table import render


def test_there_are_the_two_first_experiments():
    assert {"quickstart", "dr_grpo_step"} <= set(experiment_names())


@pytest.mark.parametrize("name", experiment_names())
def test_an_experiment_says_what_it_is_and_who_measures_it(name):
    settings = load_settings(name)
    assert settings["what"] and settings["seeds"]
    module = importlib.import_module(f"measure_{settings['measure']}")
    assert callable(module.measure)


def test_our_step_and_trls_do_the_same_work():
    settings = {**load_settings("dr_grpo_step"), "repetitions": 1, "steps": 2, "prompts": 2, "num_generations": 4}
    figures, summary = importlib.import_module("measure_trainer_step").measure("dr_grpo_step", settings)
    assert figures["same_rewards"]
    assert [len(runs) for runs in figures["step_seconds"].values()] == [1, 1]
    assert figures["ratio"] == figures["step_seconds"]["ours"][0][0] / figures["step_seconds"]["trl"][0][0]
    assert f"ratio {figures['ratio']:.2f}" in summary


def test_the_update_phase_is_trls_with_fewer_tokens(tmp_path):
    small = {"rows": 8, "num_generations": 4, "micro_batch": 4, "max_completion_tokens": 24, "median_tokens": 6}
    settings = {**load_settings("update_phase_tiny"), **small}
    module = importlib.import_module("measure_update_phase")
    trainers = {side: module.make_trainer(side, settings, str(tmp_path)) for side in ("trl", "ours")}
    rollouts = module.make_rollouts(settings, "d")
    tokens, gradients = {}, {}
    for side, trainer in trainers.items():
        _, tokens[side] = module.update(trainer, dict(rollouts))
        gradients[side] = [weight.grad.clone() for weight in trainer.model.parameters()]
    # Ours: the rows with an advantage, each of 20 prompt tokens and its own length, and what little padding is left.
    active = rollouts["advantages"] != 0
    least = int((20 + rollouts["completion_mask"].sum(1))[active].sum())
    assert least <= tokens["ours"] < 1.5 * least < tokens["trl"]
    for ours, theirs in zip(gradients["ours"], gradients["trl"], strict=True):
        assert (ours - theirs).norm() <= 1e-5 * theirs.norm() + 1e-8


def test_the_table_has_one_row_a_result():
    result = {
        "name": "demo",
        "summary": "1.00 s | half of TRL's",
        "settings": {"what": "a step"},
        "environment": environment(),
    }
    header, rule, row = render([result]).splitlines()
    assert header.startswith("| experiment | what | result |")
    assert set(rule) <= set("| -")
    assert row.startswith("| `demo` | a step | 1.00 s \\| half of TRL's | ")
    assert row.count(" | ") == header.count(" | ")
