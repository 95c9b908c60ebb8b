"""Order and state of the samplers that replace TRL's."""

from collections import Counter
from itertools import islice

import pytest
import torch
from trl.trainer.utils import RepeatSampler

from trl_reasoning.errors import UserError
from trl_reasoning.trainers._samplers import (
    EasyToHardSampler,
    PrioritizedSampler,
    UniformThenHardSampler,
    updates_per_pass,
)
from trl_reasoning.trainers._success_rates import SuccessRates


GENERATIONS, PROMPTS, REPEATS = 2, 3, 4


def parent(rows: int, prompts: int = PROMPTS, repeats: int = REPEATS, seed: int = 0) -> RepeatSampler:
    return RepeatSampler(
        list(range(rows)), mini_repeat_count=GENERATIONS, batch_size=prompts, repeat_count=repeats, seed=seed
    )


def prioritized(rows: int, accumulation: int = REPEATS, floor: float = 0.0, **settings) -> PrioritizedSampler:
    rates = SuccessRates(rows, decay=0.5)
    return PrioritizedSampler(parent(rows, **settings), accumulation=accumulation, rates=rates, floor=floor)


def easy_to_hard(difficulties, steps=4, start=0.25, accumulation=REPEATS, **settings) -> EasyToHardSampler:
    rows = len(difficulties)
    return EasyToHardSampler(
        parent(rows, **settings),
        accumulation=accumulation,
        rates=SuccessRates(rows, decay=0.5),
        difficulties=difficulties,
        steps=steps,
        start_fraction=start,
    )


def then_hard(difficulties, steps=2, hard_from=5.0, accumulation=REPEATS, **settings) -> UniformThenHardSampler:
    rows = len(difficulties)
    return UniformThenHardSampler(
        parent(rows, **settings),
        accumulation=accumulation,
        rates=SuccessRates(rows, decay=0.5),
        difficulties=difficulties,
        steps=steps,
        hard_from=hard_from,
    )


TEN = [float(value) for value in (3, 9, 1, 7, 5, 2, 8, 0, 6, 4)]  # the difficulty of row i
KINDS = {
    "prioritized": lambda **settings: prioritized(len(TEN), **settings),
    "easy_to_hard": lambda **settings: easy_to_hard(TEN, **settings),
    "uniform_then_hard": lambda **settings: then_hard(TEN, **settings),
}


def windows(sampler, count: int, passes=None) -> list[list[int]]:
    """The prompts of the first `count` generation batches, read as a loader reads them; each is checked for shape."""
    order = passes if passes is not None else iter(sampler)
    found = []
    for _ in range(count):
        block = list(islice(order, PROMPTS * GENERATIONS * REPEATS))
        once = block[: PROMPTS * GENERATIONS]
        assert block == once * REPEATS
        assert once[::2] == once[1::2]
        assert len(set(once[::2])) == PROMPTS
        found.append(once[::2])
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_structure_is_the_parents(kind):
    sampler = KINDS[kind]()
    order = list(sampler)
    assert len(order) == len(sampler) == len(parent(len(TEN))) == 3 * 3 * 2 * 4
    assert order == [row for block in windows(KINDS[kind](), 3) for row in block_of(block)]


def block_of(prompts: list[int]) -> list[int]:
    return [row for row in prompts for _ in range(GENERATIONS)] * REPEATS


@pytest.mark.parametrize("kind", KINDS)
def test_one_seed_gives_one_order_and_another_another(kind):
    first, second, other = (list(KINDS[kind](seed=seed)) for seed in (0, 0, 1))
    assert first == second != other


def test_the_pool_grows_from_the_easiest_rows():
    sampler = easy_to_hard(TEN, steps=4, start=0.3)
    sizes, hardest = [], []
    for update in range(6):
        pool = sampler.pool(update).nonzero().squeeze(1).tolist()
        sizes.append(len(pool))
        hardest.append(max(TEN[row] for row in pool))
    # shares 0.3, 0.475, 0.65, 0.825, 1, 1 of ten rows, rounded up
    assert sizes == [3, 5, 7, 9, 10, 10]
    assert hardest == [2.0, 4.0, 6.0, 8.0, 9.0, 9.0]


def test_the_pool_holds_one_batch_at_least():
    assert easy_to_hard(TEN, start=0.0).pool(0).sum() == PROMPTS


def test_equal_difficulties_enter_in_a_random_order():
    pools = {tuple(easy_to_hard([1.0] * 10, start=0.3, seed=seed).pool(0).tolist()) for seed in range(5)}
    assert len(pools) > 1


def test_draws_come_from_the_pool_of_their_step():
    # Four micro-steps a batch and two an optimizer step: the batches begin at the steps 0, 2 and 4.
    sampler = easy_to_hard(TEN, steps=4, start=0.3, accumulation=2)
    first, second, third = windows(sampler, 3)
    assert {TEN[row] for row in first} == {0.0, 1.0, 2.0}
    assert max(TEN[row] for row in second) <= 6.0
    # Rows are not drawn again before the others of the pool.
    assert not set(first) & set(second)
    assert len({*first, *second, *third}) == 9


def test_hard_rows_alone_from_the_given_step():
    sampler = then_hard(TEN, steps=2, hard_from=5.0)
    first = windows(sampler, 2)
    assert len({row for batch in first for row in batch}) == 6
    later = windows(sampler, 1)  # the next pass begins at step 3
    assert all(TEN[row] >= 5.0 for row in later[0])
    assert sampler.pool(1).all()
    assert sampler.pool(2).tolist() == [value >= 5.0 for value in TEN]


def test_every_row_comes_before_one_comes_twice():
    sampler = then_hard(TEN, steps=1000)
    drawn = [row for _ in range(10) for batch in windows(sampler, 3) for row in batch]
    # 90 draws of ten rows: nine each, were no batch across two rounds; such a batch shifts at most one.
    assert set(Counter(drawn).values()) <= {8, 9, 10}
    for start in range(0, 90, 10):
        assert len(Counter(drawn[: start + 10])) == 10


def test_priorities_of_the_moment_decide():
    sampler = prioritized(6)
    order = iter(sampler)
    (first,) = windows(sampler, 1, passes=order)
    rows = torch.tensor(first)
    sampler.rates.update(rows, torch.ones(PROMPTS), threshold=0.5)
    (second,) = windows(sampler, 1, passes=order)
    assert set(first) | set(second) == set(range(6))


def test_optimizer_steps_of_a_pass():
    # three batches of four micro-steps
    assert updates_per_pass(parent(len(TEN)), accumulation=4) == 3
    assert updates_per_pass(parent(len(TEN)), accumulation=1) == 12
    assert updates_per_pass(parent(len(TEN)), accumulation=5) == 3  # 12 micro-steps: 5, 5 and 2
    assert updates_per_pass(parent(len(TEN)), accumulation=8) == 2


def learn(sampler, batch: list[int]) -> None:
    """Some rows succeed, others do not."""
    rewards = torch.tensor([float(row % 3 != 0) for row in batch])
    sampler.rates.update(torch.tensor(batch), rewards, threshold=0.5)


def run(sampler, batches: int, done: int = 0, order=None) -> list[list[int]]:
    """
    Batches of as many passes as needed; the loader asks for the next batch before the last one's rollouts are counted,
    except at the end of a pass. As a loader does, a resumed one starts at the pass's first batch and skips.
    """
    per_pass = len(TEN) // PROMPTS
    found: list[list[int]] = []
    while len(found) < batches:
        inside = done % per_pass
        order = iter(sampler)
        ahead = windows(sampler, inside + 1, passes=order)[-1]
        for index in range(inside, per_pass):
            current = ahead
            if index + 1 < per_pass:
                (ahead,) = windows(sampler, 1, passes=order)
            learn(sampler, current)
            found.append(current)
            done += 1
            if len(found) == batches:
                break
    return found


@pytest.mark.parametrize("stop", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_a_state_goes_on_as_if_nothing_had_happened(kind, stop):
    """Inside the first pass, at its end, inside the second one and at its end."""
    whole = run(KINDS[kind](), 9)
    first = KINDS[kind]()
    before = run(first, stop)
    state = {key: value.clone() if torch.is_tensor(value) else value for key, value in first.state_dict().items()}
    second = KINDS[kind]()
    second.load_state_dict(state, updates=stop)  # one batch is one optimizer step here
    assert before + run(second, 9 - stop, done=stop) == whole


def test_past_draws_are_not_drawn_anew():
    first = prioritized(len(TEN))
    drawn = windows(first, 2)
    first.rates.update(torch.arange(10), torch.ones(10), threshold=0.5)
    second = prioritized(len(TEN), seed=5)
    second.load_state_dict(first.state_dict(), updates=1)
    assert windows(second, 2) == drawn


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: prioritized(9), "rows 10, and this run has 9"),
        (lambda: prioritized(10, prompts=2), "batch_size 3, and this run has 2"),
        (lambda: easy_to_hard(TEN), "sampler PrioritizedSampler, and this run has EasyToHardSampler"),
    ],
)
def test_a_state_of_other_settings_is_refused(make, message):
    state = prioritized(10).state_dict()
    with pytest.raises(UserError, match=message):
        make().load_state_dict(state, updates=0)
