"""Signs of reward hacking in logs, and shares of verdicts."""

import math
import random

import pytest

from trl_reasoning.rewards.watch import HackingSigns, verdict_shares


def signs_of(logs) -> list[str]:
    signs = HackingSigns()
    return [sign.kind for log in logs for sign in signs.observe(log)]


def thoughts(*shares, asked=1.0):
    return [{"thoughts/missing": share, "thoughts/asked": asked} for share in shares]


def heldout(accuracy: float, problems: int) -> dict:
    error = 1.96 * math.sqrt(accuracy * (1 - accuracy) / problems)
    return {
        "step": 0,
        "heldout/accuracy": accuracy,
        "heldout/accuracy_low": accuracy - error,
        "heldout/accuracy_high": accuracy + error,
    }


def run(accuracies, rewards, problems=400, noise=0.02):
    """A measurement before training and after every four steps, whose rewards scatter by `noise` around their mean."""
    logs = [heldout(accuracies[0], problems)]
    for accuracy, reward in zip(accuracies[1:], rewards, strict=True):
        logs += [{"reward": reward + noise * sign} for sign in (1, -1, 1, -1)]
        logs.append(heldout(accuracy, problems))
    return logs


RISING = [0.4, 0.5, 0.6, 0.7]


@pytest.mark.parametrize(
    ("accuracies", "rewards", "problems", "expected"),
    [
        # The standard error of 0.6 is 0.0245, of a pair 0.0173. One bad measurement, 0.5 = (0.6 + 0.4) / 2, is a fall
        # by 0.1, 4.1 errors of the difference; with 100 problems it is 2.0, which is noise. Two in a row are 0.2.
        ([0.6, 0.6, 0.6, 0.4, 0.4], RISING, 400, ["reward_up_accuracy_down"] * 2),
        ([0.6, 0.6, 0.6, 0.4, 0.4], RISING, 100, ["reward_up_accuracy_down"]),
        ([0.6, 0.6, 0.6, 0.6, 0.4], RISING, 400, ["reward_up_accuracy_down"]),
        ([0.6, 0.6, 0.6, 0.6, 0.4], RISING, 100, []),
        ([0.6, 0.6, 0.6, 0.55, 0.55], RISING, 400, []),  # 2.0 standard errors
        ([0.3, 0.4, 0.5, 0.6, 0.7], RISING, 400, []),  # learns
        ([0.6, 0.6, 0.6, 0.4, 0.4], RISING[::-1], 400, []),  # both fall: no trick
        ([0.6, 0.6, 0.6, 0.4, 0.4], [0.5, 0.5, 0.5, 0.5], 400, []),
        ([0.6, 0.6, 0.4, 0.4], RISING[:3], 400, ["reward_up_accuracy_down"]),
        ([0.6, 0.4, 0.4], RISING[:2], 400, []),  # three measurements are too few
    ],
)
def test_reward_up_and_accuracy_down(accuracies, rewards, problems, expected):
    assert signs_of(run(accuracies, rewards, problems)) == expected


def test_a_rise_within_the_scatter_of_the_reward_is_none():
    """Means 0.45 and 0.65 of eight values each: the errors 0.2 make 0.2 less than one standard error of the change."""
    logs = run([0.6, 0.6, 0.6, 0.4, 0.4], RISING, noise=0.6)
    assert signs_of(logs) == []


def test_accuracy_without_its_interval_says_nothing():
    logs = run([0.6] * 3 + [0.1] * 3, [*RISING, 1])
    assert signs_of(logs)
    assert signs_of({key: value for key, value in log.items() if "_" not in key} for log in logs) == []


def test_noise_around_a_flat_accuracy_is_no_sign_while_the_reward_rises():
    """Each of 40 measurements of 400 problems is drawn anew; 2 % of such runs show it all the same."""
    rng = random.Random(0)
    found = 0
    for _ in range(50):
        accuracies = [sum(rng.random() < 0.6 for _ in range(400)) / 400 for _ in range(41)]
        found += bool(signs_of(run(accuracies, [0.4 + 0.01 * index for index in range(40)])))
    assert found <= 3


@pytest.mark.parametrize(
    ("logs", "expected"),
    [
        (thoughts(*[0.1] * 10, *[0.9] * 10), ["no_thought"]),  # dropped
        (thoughts(*[0.1] * 10, *[0.9] * 9), []),  # the block is not full
        (thoughts(*[0.1] * 10, *[0.3] * 10), []),  # a rise by 0.2 only
        (thoughts(*[0.1, 0.9] * 5, *[0.4, 1.0] * 5), []),  # 0.5 to 0.7 in noise
        (thoughts(*[0.0, 1.0] * 5, *[0.6, 1.0] * 5), []),  # 0.5 +- 0.17 to 0.8 +- 0.07: 1.7 standard errors
        (thoughts(*[0.4] * 10, *[0.2] * 10, *[0.0] * 50), []),  # learns to think
        (thoughts(*[0.4] * 10, *[0.0] * 10, *[0.4] * 10), ["no_thought"]),  # and forgets it again
        (thoughts(*[1.0] * 20), []),  # a base model that has not seen the form yet
        (thoughts(*[1.0] * 40), ["no_thought", "no_thought"]),  # and has not learnt it
        (thoughts(*[0.85] * 40), []),
        (thoughts(*[1.0] * 100, asked=0.0), []),  # a model that does not think and need not
        ([{"loss": 1.0}, {"thoughts/missing": None}] * 40, []),
    ],
)
def test_answers_without_thought(logs, expected):
    assert signs_of(logs) == expected


def test_shares_add_up_to_one():
    statuses = ["right", "wrong", "wrong", "unparsed", "timed_out", "unreadable_gold", None, None]
    shares = verdict_shares([1.0, 0.0, 0.0, 0.0, 0.0, None, None, None], statuses)
    assert shares == {"skipped": 0.375, "right": 0.125, "wrong": 0.25, "unparsed": 0.125, "timed_out": 0.125}
    assert sum(shares.values()) == 1.0


def test_shares_by_the_value_where_a_reward_notes_no_verdict():
    assert verdict_shares([0.9, 0.1, None], [None] * 3, threshold=0.5) == pytest.approx(
        {"skipped": 1 / 3, "right": 1 / 3, "wrong": 1 / 3, "unparsed": 0.0, "timed_out": 0.0}
    )
    assert verdict_shares([None, None], [None, None], threshold=0.5) == {"skipped": 1.0}
