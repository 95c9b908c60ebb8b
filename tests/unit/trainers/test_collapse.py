"""The alarm for collapsing likelihoods, on logs written by hand."""

import warnings
from types import SimpleNamespace
from typing import Any, cast

import pytest

from trl_reasoning.trainers._collapse import CollapseCallback


METRIC = "logps/chosen_per_token"


def run(callback, values: list[float], every: int = 1, earlier: list[dict] | None = None) -> tuple[int, Any]:
    """Log the values one by one; the step at which the run was told to stop or the last one, and the control."""
    state: Any = SimpleNamespace(log_history=list(earlier or []), global_step=0, is_world_process_zero=True)
    control: Any = SimpleNamespace(should_save=False, should_training_stop=False)
    for value in values:
        state.global_step += every
        state.log_history.append({METRIC: value, "step": state.global_step})
        callback.on_log(cast(Any, None), state, control)
        if control.should_training_stop:
            break
    return state.global_step, control


def test_a_small_fall_is_no_alarm():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, control = run(CollapseCallback("stop"), [-1.0] * 10 + [-1.9] * 30)
    assert not control.should_training_stop


def test_it_stops_where_the_mean_of_ten_steps_is_a_nat_below_the_start():
    # The mean of steps 11 - 10 + n to 10 + n is -1 - 0.2 n: below -2 at n = 6.
    with pytest.warns(UserWarning, match=r"COLLAPSE at step 16: .* -2\.20 nats .* floor of -2\.00 .*beta.*stops here"):
        step, control = run(CollapseCallback("stop"), [-1.0] * 10 + [-3.0] * 20)
    assert step == 16
    assert control.should_save


def test_a_log_prob_without_a_perplexity_and_none_at_all():
    """exp(800) is no float; NaN says nothing of the replies."""
    with pytest.warns(UserWarning, match=r"-800\.00 nats .*perplexity 2\.7 -> e\^800\)"):
        run(CollapseCallback("warn"), [-1.0, -800.0], every=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, control = run(CollapseCallback("stop", floor=-5.0), [float("nan")] * 12)
    assert not control.should_training_stop


def test_logs_of_ten_steps_stand_for_themselves():
    with pytest.warns(UserWarning, match="COLLAPSE at step 30"):
        step, _ = run(CollapseCallback("stop"), [-1.0, -1.9, -2.1], every=10)
    assert step == 30


def test_a_warning_comes_once_and_names_what_to_do():
    callback = CollapseCallback("warn", floor=-5.0, advice="raise sft_weight")
    with pytest.warns(UserWarning) as caught:
        _, control = run(callback, [-4.9] + [-9.0] * 20)
    assert len(caught) == 1
    assert "raise sft_weight" in str(caught[0].message)
    assert not control.should_training_stop and not control.should_save


def test_a_resumed_run_knows_where_it_started():
    earlier = [{METRIC: -1.0, "step": 0}, {"eval_loss": 1.0, "step": 0}]
    with pytest.warns(UserWarning, match=r"floor of -2\.00 \(start: -1\.00"):
        run(CollapseCallback("stop"), [-1.0] * 9 + [-9.0] * 9, earlier=earlier)


def test_logs_without_the_metric_are_passed_over():
    state: Any = SimpleNamespace(
        log_history=[{"train_loss": 1.0, "step": 3}], global_step=3, is_world_process_zero=True
    )
    unused: Any = None
    CollapseCallback("stop").on_log(unused, state, unused)


def test_an_unknown_action_is_refused():
    with pytest.raises(ValueError, match=r"action: expected one of \['warn', 'stop'\], got 'halt'"):
        CollapseCallback("halt")
