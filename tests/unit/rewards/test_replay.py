"""The replay buffer: how much history, from where, seeded, and across a checkpoint."""

import json
from collections import Counter

import pytest

from trl_reasoning.rewards.replay import ReplayBuffer, ScoredSample


def samples(start: int, count: int) -> list[ScoredSample]:
    return [
        ScoredSample(f"p{n}", [{"role": "assistant", "content": str(n)}], (float(n), None))
        for n in range(start, start + count)
    ]


@pytest.mark.parametrize(
    ("share", "new", "expected"), [(0.1, 90, 10), (0.1, 9, 1), (0.1, 4, 0), (0.5, 7, 7), (0.0, 90, 0), (0.75, 10, 30)]
)
def test_share_of_history_and_new_together(share, new, expected):
    buffer = ReplayBuffer(share=share)
    assert buffer.draw(new) == []
    buffer.add(samples(0, 200))
    drawn = buffer.draw(new)
    assert len(drawn) == len({sample.prompt for sample in drawn}) == expected


def test_no_more_than_there_is():
    buffer = ReplayBuffer(share=0.5)
    buffer.add(samples(0, 3))
    assert sorted(sample.prompt for sample in buffer.draw(10)) == ["p0", "p1", "p2"]


def test_every_sample_is_kept_with_the_same_probability():
    kept = Counter()
    for seed in range(400):
        buffer = ReplayBuffer(capacity=10, seed=seed)
        for start in (0, 20):
            buffer.add(samples(start, 20))
        assert len(buffer) == 10
        kept.update(int(sample.prompt[1:]) for sample in buffer.draw(10**6))
    early, late = sum(kept[n] for n in range(20)), sum(kept[n] for n in range(20, 40))
    # 4000 kept in all, half of each iteration; 4 standard deviations of a binomial are about 130.
    assert early + late == 4000 and abs(early - 2000) < 130
    assert min(kept[n] for n in range(40)) > 60  # 100 expected, deviation 8.7


def test_the_seed_decides_and_draws_differ():
    def run(seed):
        buffer = ReplayBuffer(share=0.5, capacity=20, seed=seed)
        buffer.add(samples(0, 100))
        return [[sample.prompt for sample in buffer.draw(5)] for _ in range(2)]

    assert run(1) == run(1) != run(2)
    assert run(1)[0] != run(1)[1]


def test_a_checkpoint_goes_on_as_before():
    straight = ReplayBuffer(share=0.5, capacity=8, seed=3)
    straight.add(samples(0, 30))
    straight.draw(4)
    resumed = ReplayBuffer(share=0.5, capacity=8, seed=3)
    resumed.load_state_dict(json.loads(json.dumps(straight.state_dict())))
    for buffer in (straight, resumed):
        buffer.add(samples(30, 30))
    assert resumed.draw(4) == straight.draw(4)
    assert resumed.state_dict() == straight.state_dict()


@pytest.mark.parametrize(
    ("settings", "key"), [({"share": 1.0}, "share"), ({"share": -0.1}, "share"), ({"capacity": 0}, "capacity")]
)
def test_refused(settings, key):
    with pytest.raises(ValueError, match=f"^{key}: "):
        ReplayBuffer(**settings)
