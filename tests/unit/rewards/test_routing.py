"""Rewards for some rows only: what the wrapped reward is given, and where its values go."""

import asyncio
import pickle
from typing import Any

import pytest

from trl_reasoning.rewards import REWARDS
from trl_reasoning.rewards.routing import make_routed_reward


SCENARIOS = ["math", "chat", "code", "chat", "math"]
BATCH = {
    "prompts": ["p0", "p1", "p2", "p3", "p4"],
    "completions": ["c0", "c1", "c2", "c3", "c4"],
    "completion_ids": [[0], [1], [2], [3], [4]],
    "scenario": SCENARIOS,
    "level": [0, 10, 20, 30, 40],
}


class Recorder:
    """Rewards each row by its level and keeps what it was called with."""

    __name__ = "recorder"
    columns = ("level",)

    def __init__(self):
        self.calls = []

    def __call__(self, prompts, completions, completion_ids, *, level, log_extra=None, **kwargs):
        self.calls.append({"prompts": prompts, "completions": completions, "ids": completion_ids, **kwargs})
        if log_extra is not None:
            log_extra("seen", [f"level {value}" for value in level])
        return [float(value) for value in level]


def test_rows_of_other_values_give_none():
    reward = make_routed_reward(Recorder(), "scenario", ["math", "code"])
    assert reward(**BATCH) == [0.0, None, 20.0, None, 40.0]
    assert make_routed_reward(Recorder(), "level", [10])(**BATCH) == [None, 10.0, None, None, None]


def test_the_wrapped_reward_sees_its_rows_alone():
    inner = Recorder()
    state = object()
    make_routed_reward(inner, "scenario", ["chat"])(**BATCH, trainer_state=state, log_metric=print)
    assert inner.calls == [
        {
            "prompts": ["p1", "p3"],
            "completions": ["c1", "c3"],
            "ids": [[1], [3]],
            "scenario": ["chat", "chat"],
            "trainer_state": state,
            "log_metric": print,
        }
    ]


def test_without_rows_it_is_not_called():
    inner = Recorder()
    assert make_routed_reward(inner, "scenario", ["law"])(**BATCH) == [None] * 5
    assert inner.calls == []


def test_extra_columns_have_a_value_a_row_in_every_batch():
    """Otherwise the completions table would show an earlier batch's values beside these rows."""
    reward = make_routed_reward(Recorder(), "scenario", ["chat"])
    logged = []
    reward(**BATCH, log_extra=lambda column, values: logged.append((column, values)))
    assert logged == [("seen", [None, "level 10", None, "level 30", None])]
    reward(**{**BATCH, "scenario": ["math"] * 5}, log_extra=lambda column, values: logged.append((column, values)))
    assert logged[1:] == [("seen", [None] * 5)]


def test_name_columns_and_pickle():
    reward = make_routed_reward(REWARDS["accuracy"](), "scenario", ["math"])
    copy = pickle.loads(pickle.dumps(reward))
    assert copy.__name__ == "accuracy_reward"
    assert copy.columns == ("solution", "scenario")
    batch = {"prompts": ["?"] * 3, "completions": [r"\boxed{4}"] * 3, "completion_ids": [[1]] * 3}
    assert copy(**batch, solution=["4", None, "5"], scenario=["math", "chat", "math"]) == [1.0, None, 0.0]
    assert make_routed_reward(Recorder(), "level", [1]).columns == ("level",)
    assert make_routed_reward(lambda **kwargs: [], "level", [1], ["a", "b"]).columns == ("a", "b", "level")


def test_an_asynchronous_judge_stays_asynchronous():
    """TRL runs coroutine functions side by side and recognises them as this check does."""

    async def judge(prompts, completions, completion_ids, **kwargs):
        await asyncio.sleep(0)
        return [float(completion[1]) for completion in completions]

    class Judge:
        async def __call__(self, completions, **kwargs):
            return [0.5 for _ in completions]

    from trl.trainer.utils import is_async_callable

    for reward, expected in ((judge, [None, 1.0, None, 3.0, None]), (Judge(), [None, 0.5, None, 0.5, None])):
        routed: Any = make_routed_reward(reward, "scenario", ["chat"])
        assert is_async_callable(routed)
        assert asyncio.run(routed(**BATCH)) == expected
    assert not is_async_callable(make_routed_reward(Recorder(), "scenario", ["chat"]))
    other: Any = make_routed_reward(judge, "scenario", ["law"])
    assert asyncio.run(other(**BATCH)) == [None] * 5


def test_what_is_refused():
    with pytest.raises(ValueError, match="at least one value of scenario"):
        make_routed_reward(Recorder(), "scenario", [])
    with pytest.raises(ValueError, match="returned 1 values for 2 completions"):
        make_routed_reward(lambda **kwargs: [1.0], "scenario", ["chat"])(**BATCH)
