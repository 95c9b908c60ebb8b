"""Rows with a `from_step`: never drawn before it, drawn evenly with the others from it on, also after a resume."""

from collections import Counter
from pathlib import Path

import pytest
import torch
from trl.trainer.utils import RepeatSampler

from trl_reasoning.builtin import make_chain_dataset
from trl_reasoning.errors import UserError
from trl_reasoning.trainers import DrGRPOConfig, DrGRPOTrainer
from trl_reasoning.trainers._late_rows import FromStepSampler


EARLY, LATE, FROM = 8, 4, 3
DATA = make_chain_dataset(size=EARLY + LATE, operands=(2, 7), unique=True)
QUESTIONS = list(DATA["question"])
ROWS = DATA.add_column("from_step", [0] * EARLY + [FROM] * LATE)


def draws(sampler: FromStepSampler, passes: int) -> list[list[int]]:
    """The rows of each generation batch, once each."""
    batches = []
    for _ in range(passes):
        flat = list(sampler)
        size = sampler.batch_size * sampler.mini_repeat_count
        chunks = [flat[place : place + size] for place in range(0, len(flat), size)]
        assert all(chunk == chunks[index - index % sampler.repeat_count] for index, chunk in enumerate(chunks))
        batches += [chunk[:: sampler.mini_repeat_count] for chunk in chunks[:: sampler.repeat_count]]
    return batches


def sampler(starts: list[int], *, prompts: int = 2, repeats: int = 1, accumulation: int = 1) -> FromStepSampler:
    parent = RepeatSampler(starts, mini_repeat_count=2, batch_size=prompts, repeat_count=repeats, seed=0)
    return FromStepSampler(parent, accumulation, starts)


def test_rounds_before_and_after() -> None:
    """Four batches of two hold the eight early rows once; with the late ones there, six batches hold all twelve."""
    batches = draws(sampler([0] * EARLY + [4] * LATE), passes=3)  # 6 batches a pass, one a step
    assert len(batches) == 18
    assert Counter(row for batch in batches[:4] for row in batch) == Counter(range(EARLY))
    for first in (4, 10):
        assert Counter(row for batch in batches[first : first + 6] for row in batch) == Counter(range(EARLY + LATE))
    assert all(len(set(batch)) == 2 for batch in batches)
    assert batches[4:10] != batches[10:16]


def test_a_round_begins_anew_when_rows_join() -> None:
    """At step 3 two of the eight early rows are left in their round, and all rows begin a new one together."""
    batches = draws(sampler([0] * EARLY + [3] * LATE), passes=2)
    assert Counter(row for batch in batches[3:9] for row in batch) == Counter(range(EARLY + LATE))


@pytest.mark.parametrize(
    ("repeats", "accumulation", "first"),
    [
        (1, 1, 3),  # a batch a step
        (4, 2, 2),  # a batch serves two steps: those of steps 0, 2, 4, ...; the first at 3 or later is number 2
        (2, 4, 6),  # two batches a step: batch 6 is the first of step 3
        (6, 4, 2),  # a batch serves one and a half steps: they begin in steps 0, 1, 3, 4
    ],
)
def test_the_step_of_a_batch(repeats: int, accumulation: int, first: int) -> None:
    one = sampler([0] * EARLY + [FROM] * LATE, prompts=1, repeats=repeats, accumulation=accumulation)
    flat = [row for [row] in draws(one, passes=1)]
    assert max(flat[:first]) < EARLY
    assert max(flat[first:]) >= EARLY
    assert all(one.pool(FROM)) and not any(one.pool(FROM - 1)[EARLY:])


def test_state_goes_on(tmp_path) -> None:
    straight, parts = (sampler([0] * EARLY + [4] * LATE) for _ in range(2))
    expected = draws(straight, passes=3)
    assert draws(parts, passes=1) == expected[:6]
    torch.save(parts.state_dict(), tmp_path / "state.pt")
    resumed = sampler([0] * EARLY + [4] * LATE)
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True), updates=6)
    assert draws(resumed, passes=2) == expected[6:]


class Recorder:
    __name__ = "recorder"

    def __init__(self):
        self.batches = []

    def __call__(self, prompts, completion_ids, **kwargs):
        self.batches.append([QUESTIONS.index(prompt[-1]["content"]) for prompt in prompts][::2])
        return [float(sum(ids) % 2) for ids in completion_ids]


@pytest.fixture
def build(tiny, common, tmp_path):
    def build(steps: int, folder: str = "out", data=ROWS, **more):
        values = {
            **common, "output_dir": str(tmp_path / folder), "save_strategy": "steps", "save_steps": 1,
            "max_steps": steps, "lr_scheduler_type": "constant", "num_generations": 2,
            "per_device_train_batch_size": 4, "max_completion_length": 4, **more,
        }  # fmt: skip
        reward = Recorder()
        trainer = DrGRPOTrainer(model=tiny, args=DrGRPOConfig(**values), reward_funcs=[reward], train_dataset=data)
        return trainer, reward

    return build


@pytest.mark.parametrize("stop", [2, 3, 7])  # before the late rows, when they join, and in the second epoch
def test_a_run_and_its_resume(build, stop: int) -> None:
    straight, whole = build(9, "straight")
    straight.train()
    assert max(row for batch in whole.batches[:FROM] for row in batch) < EARLY
    assert Counter(row for batch in whole.batches[FROM:] for row in batch) == Counter(range(EARLY + LATE))
    first, before = build(stop, "parts")
    first.train()
    second, after = build(9, "parts")
    second.train(resume_from_checkpoint=f"{second.args.output_dir}/checkpoint-{stop}")
    assert before.batches + after.batches == whole.batches


def test_inside_a_generation_window(build) -> None:
    settings = {"per_device_train_batch_size": 2, "steps_per_generation": 2, "num_iterations": 2}
    straight, whole = build(10, "straight", **settings)
    straight.train()
    first, before = build(5, "parts", **settings)
    first.train()
    second, after = build(10, "parts", **settings)
    second.train(resume_from_checkpoint=f"{second.args.output_dir}/checkpoint-5")
    assert before.batches + after.batches == whole.batches
    assert max(row for row in whole.batches[0]) < EARLY  # steps 0 to 3; the second batch begins at step 4


def test_without_the_column_nothing_changes(build) -> None:
    trainer, _ = build(2, data=DATA)
    trainer.train()
    assert trainer._late_rows is None
    assert not list(Path(trainer.args.output_dir).rglob("late*"))
    resumed, _ = build(3)
    with pytest.raises(FileNotFoundError, match=r"has no late_rows\.pt"):
        resumed.train(resume_from_checkpoint=f"{resumed.args.output_dir}/checkpoint-2")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shuffle_dataset": False}, "^shuffle_dataset: false"),
        ({"sampling": "prioritized"}, "^sampling: `prioritized` does not know `from_step`"),
        ({"per_device_train_batch_size": 18}, "^from_step: a generation batch takes 9 different prompts, and 8 rows"),
    ],
)
def test_what_is_refused(build, changes: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build(1, **changes)[0].train()
