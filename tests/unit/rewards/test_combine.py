"""Gates before rewards."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trl_reasoning.rewards import REWARDS
from trl_reasoning.rewards.combine import Gate, gate_rewards, read_gates


NAMES = {"accuracy_reward": REWARDS["accuracy"](), "format_reward": REWARDS["format"](), "score": len}


def test_style_pays_on_right_answers_only():
    accuracy, form = [1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]
    assert gate_rewards([accuracy, form], [None, Gate(0, 1.0)]) == [accuracy, [1.0, 0.0, 0.0, 0.0]]
    assert gate_rewards([form, accuracy], [Gate(1, 1.0, -0.5), None])[0] == [1.0, -0.5, 0.0, -0.5]


def test_what_does_not_apply_stays_so_and_a_gate_of_unknown_state_gives_none():
    assert gate_rewards([[None, 1.0, 0.0], [1.0, None, None]], [None, Gate(0, 1.0)])[1] == [None, None, None]


def test_a_gate_looks_at_the_other_reward_behind_its_own_gate():
    """0 opens 1, and 1 opens 2: the second completion has 1 right but not 0, so 2 counts nothing there."""
    rewards = [[1.0, 0.0], [1.0, 1.0], [0.7, 0.7]]
    expected = [[1.0, 0.0], [1.0, 0.0], [0.7, 0.0]]
    assert gate_rewards(rewards, [None, Gate(0, 1.0), Gate(1, 1.0)]) == expected
    assert gate_rewards(rewards[::-1], [Gate(1, 1.0), Gate(2, 1.0), None]) == expected[::-1]


def test_a_value_in_single_precision_reaches_the_threshold_it_was_written_as():
    in_single = 0.699999988079071
    assert Gate(0, 0.7).is_open(in_single)
    assert not Gate(0, 0.7).is_open(0.6999)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("accuracy", Gate(0, 0.5)),  # halfway between right and wrong
        ("accuracy_reward", Gate(0, 0.5)),
        ("score", Gate(2, 1.0)),
        ({"reward": "score", "at_least": -3, "otherwise": -1}, Gate(2, -3.0, -1.0)),
    ],
)
def test_gates_as_a_recipe_writes_them(entry, expected):
    assert read_gates({"format": entry}, NAMES) == [None, expected, None]


def test_the_default_threshold_follows_the_values_of_accuracy():
    rewards = {"accuracy_reward": REWARDS["accuracy"](right=10, wrong=-2), "score": len}
    assert read_gates({"score": "accuracy"}, rewards)[1] == Gate(0, 4.0)


def test_a_gate_that_no_answer_can_open_is_refused():
    ten = {"accuracy_reward": REWARDS["accuracy"](right=10), "score": len}
    assert read_gates({"score": {"reward": "accuracy", "at_least": 10}}, ten)[1] == Gate(0, 10.0)
    with pytest.raises(ValueError, match=r"reward_gates.score: at_least 11 is never reached.* worth 10"):
        read_gates({"score": {"reward": "accuracy", "at_least": 11}}, ten)


@pytest.mark.parametrize(
    ("gates", "words"),
    [
        ({"formt": "accuracy"}, r"reward_gates\.formt: 'formt' is not one of the rewards"),
        ({"format": "acuracy"}, r"reward_gates\.format: 'acuracy' is not one of the rewards"),
        ({"format": "format"}, r"format_reward would wait for itself \(format_reward -> format_reward\)"),
        ({"format": "score", "score": "format"}, r"wait for itself \(format_reward -> score -> format_reward\)"),
        ({"accuracy": "format", "format": "score", "score": "format"}, "wait for itself"),
        ({"format": "accuracy", "format_reward": "score"}, "has a gate already"),
        ({"format": 1.0}, "expected the name of a reward"),
        ({"format": {"at_least": 1.0}}, "expected the name of a reward"),
        ({"format": {"reward": "accuracy", "atleast": 1.0}}, r"'atleast' is not a key of a gate .* did you mean"),
        ({"format": {"reward": "accuracy", "at_least": "1"}}, "at_least expected a finite number, got '1'"),
        ({"format": {"reward": "accuracy", "otherwise": float("nan")}}, "otherwise expected a finite number"),
        ({"format": {"reward": "accuracy", "otherwise": True}}, "otherwise expected a finite number"),
    ],
)
def test_gates_that_cannot_be(gates, words):
    with pytest.raises(ValueError, match=f"(?i){words}"):
        read_gates(gates, NAMES)


values = st.lists(st.one_of(st.none(), st.floats(-2, 2)), min_size=3, max_size=3)


@settings(deadline=None, max_examples=100)
@given(rewards=st.lists(values, min_size=2, max_size=2), at_least=st.floats(-2, 2), otherwise=st.floats(-2, 2))
def test_a_gated_value_is_its_own_the_other_one_or_none(rewards, at_least, otherwise):
    gated = gate_rewards(rewards, [None, Gate(0, at_least, otherwise)])
    assert gated[0] == rewards[0]
    for opener, value, found in zip(*rewards, gated[1], strict=True):
        assert found in (value, otherwise, None)
        assert (found is None) == (opener is None or value is None)
