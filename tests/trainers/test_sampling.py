"""Curriculum and prioritised sampling in a trainer: what is drawn, counted and logged."""

import math
from collections import defaultdict

import pytest
import torch

from trl_reasoning.builtin import make_chain_dataset
from trl_reasoning.trainers import DrGRPOConfig, DrGRPOTrainer, ReasoningGRPOConfig, ReasoningGRPOTrainer


ROWS, GENERATIONS = 12, 2
DATA = make_chain_dataset(size=ROWS, operands=(2, 7), unique=True)
DIFFICULTY = dict(zip(DATA["question"], DATA["difficulty"], strict=True))
PRIORITIZED = {"sampling": "prioritized"}
EASY_TO_HARD = {"sampling": "curriculum", "difficulty_column": "difficulty", "curriculum_steps": 4}
THEN_HARD = {**EASY_TO_HARD, "curriculum": "uniform_then_hard", "curriculum_steps": 3}
KINDS = {"prioritized": PRIORITIZED, "easy_to_hard": EASY_TO_HARD, "uniform_then_hard": THEN_HARD}


class ParityReward:
    """Right where the tokens have an even sum; remembers the prompts and their rewards."""

    __name__ = "parity_reward"

    def __init__(self):
        self.calls = []

    def __call__(self, prompts, completion_ids, **kwargs):
        rewards = [float(sum(ids) % 2 == 0) for ids in completion_ids]
        self.calls.append([(prompt[-1]["content"], reward) for prompt, reward in zip(prompts, rewards, strict=True)])
        return rewards

    @property
    def batches(self) -> list[list[str]]:
        """The prompts of each generation batch, once each."""
        return [[question for question, _ in call][::GENERATIONS] for call in self.calls]


@pytest.fixture
def build(tiny, common, tmp_path):
    def build(settings, rewards=None, data=DATA, folder="out", trainer=DrGRPOTrainer, config=DrGRPOConfig, **more):
        values = {
            **common,
            "output_dir": str(tmp_path / folder),
            "max_steps": 6,
            "lr_scheduler_type": "constant",
            "learning_rate": 1e-3,
            "num_generations": GENERATIONS,
            "per_device_train_batch_size": 6,
            "max_completion_length": 8,
            "temperature": 1.5,
            **settings,
            **more,
        }
        if config is DrGRPOConfig:
            values.setdefault("zero_truncated_reward", False)
        return trainer(model=tiny, args=config(**values), reward_funcs=rewards or [ParityReward()], train_dataset=data)

    return build


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_holds_different_prompts_with_their_groups(build, kind):
    reward = ParityReward()
    build(KINDS[kind], [reward]).train()
    assert len(reward.calls) == 6
    for call in reward.calls:
        questions = [question for question, _ in call]
        assert questions[::2] == questions[1::2]
        assert len(set(questions)) == 3


def test_easy_prompts_come_first(build):
    reward = ParityReward()
    trainer = build({**EASY_TO_HARD, "curriculum_steps": 4, "curriculum_start_fraction": 0.25}, [reward])
    trainer.train()
    # Two rows of each difficulty 2 to 7. Pools of the steps: 0.25, 0.4375, 0.625, 0.8125 and 1 of twelve, rounded up.
    sizes = [3, 6, 8, 10, 12, 12]
    for batch, size in zip(reward.batches, sizes, strict=True):
        assert max(DIFFICULTY[question] for question in batch) <= 1 + math.ceil(size / 2)
    logs = [log for log in trainer.state.log_history if "loss" in log]
    assert [log["sampling/pool"] for log in logs] == pytest.approx([size / 12 for size in sizes])
    means = [sum(DIFFICULTY[question] for question in batch) / 3 for batch in reward.batches]
    assert [log["sampling/difficulty"] for log in logs] == pytest.approx(means)


def test_larger_numbers_are_easier_when_reversed(build):
    reward = ParityReward()
    build({**EASY_TO_HARD, "difficulty_reversed": True}, [reward], max_steps=1).train()
    assert min(DIFFICULTY[question] for question in reward.batches[0]) >= 6


@pytest.mark.parametrize(
    ("settings", "least"),
    [
        ({"curriculum_hard_fraction": 0.5}, 5),
        ({"curriculum_hard_fraction": 0.4}, 5),  # five of twelve rows: the sixth is as hard as the fifth
        ({"curriculum_hard_threshold": 6}, 6),
        ({"curriculum_hard_fraction": 0.0}, 6),  # one batch of three at least, and the fourth is as hard
    ],
)
def test_hard_prompts_alone_in_the_end(build, settings, least):
    reward = ParityReward()
    trainer = build({**THEN_HARD, **settings}, [reward], max_steps=7)
    trainer.train()
    early = {DIFFICULTY[question] for batch in reward.batches[:3] for question in batch}
    late = {DIFFICULTY[question] for batch in reward.batches[3:] for question in batch}
    assert min(early) < 5
    assert late == set(range(least, 8))
    pools = [log["sampling/pool"] for log in trainer.state.log_history if "loss" in log]
    assert pools == pytest.approx([1.0] * 3 + [(8 - least) / 6] * 4)


def test_hard_prompts_of_a_reversed_column(build):
    reward = ParityReward()
    settings = {**THEN_HARD, "difficulty_reversed": True, "curriculum_hard_threshold": 3, "curriculum_steps": 1}
    build(settings, [reward], max_steps=3).train()
    assert {DIFFICULTY[question] for batch in reward.batches[1:] for question in batch} == {2, 3}


def test_a_share_of_the_run(build):
    # Four batches an epoch, three epochs: a quarter of the twelve steps is three.
    trainer = build({**THEN_HARD, "curriculum_steps": 0.25}, max_steps=-1, num_train_epochs=3)
    trainer.train()
    assert trainer.state.global_step == 12
    pools = [log["sampling/pool"] for log in trainer.state.log_history if "loss" in log]
    assert pools == pytest.approx([1.0] * 3 + [0.5] * 9)


def rates_by_hand(calls, decay: float) -> dict[str, float]:
    totals = defaultdict(lambda: [0.0, 0.0])
    for call in calls:
        visited = {question for question, _ in call}
        for question in visited:
            totals[question] = [value * decay for value in totals[question]]
        for question, reward in call:
            totals[question][0] += reward
            totals[question][1] += 1
    return {question: right / trials for question, (right, trials) in totals.items()}


@pytest.mark.parametrize("decay", [0.5, 1.0])
def test_rates_are_those_of_the_rollouts(build, decay):
    reward = ParityReward()
    trainer = build({**PRIORITIZED, "success_rate_decay": decay, "difficulty_column": "difficulty"}, [reward])
    trainer.train()
    wanted = rates_by_hand(reward.calls, decay)
    rates = trainer._prompt_sampler.rates
    found = {
        question: rate
        for question, rate, seen in zip(DATA["question"], rates.rates.tolist(), rates.seen.tolist(), strict=True)
        if seen
    }
    assert found == pytest.approx(wanted)
    assert 0 < sum(wanted.values()) < len(wanted)
    log = [log for log in trainer.state.log_history if "loss" in log][-1]
    assert log["sampling/seen"] == pytest.approx(len(wanted) / ROWS)
    assert log["sampling/mean_success_rate"] == pytest.approx(sum(wanted.values()) / len(wanted))
    last = reward.batches[-1]
    assert log["sampling/difficulty"] == pytest.approx(sum(DIFFICULTY[question] for question in last) / 3)


def test_solved_prompts_do_not_come_again(build):
    def solved(completions, **kwargs):
        return [1.0] * len(completions)

    reward = ParityReward()
    trainer = build(PRIORITIZED, [solved, reward], max_steps=4)
    trainer.train()
    # A batch is drawn before the rollouts of the last one are counted: two batches may share rows.
    first, second, third, fourth = (set(batch) for batch in reward.batches)
    assert not first & third
    assert not (first | second) & fourth


def test_another_reward_may_decide(build):
    def never(completions, **kwargs):
        return [0.0] * len(completions)

    def graded(completions, **kwargs):
        return [0.6 if index % 2 else 0.7 for index in range(len(completions))]

    for settings, rate in (
        ({}, 0.0),
        ({"success_reward": "graded"}, 1.0),
        ({"success_reward": "graded", "success_threshold": 0.65}, 0.5),
    ):
        trainer = build({**PRIORITIZED, **settings}, [never, graded], max_steps=1)
        trainer.train()
        assert trainer._prompt_sampler.rates.rates.max().item() == pytest.approx(rate)
    trainer = build({**PRIORITIZED, "success_reward": "parity"}, [never, ParityReward()], max_steps=1)
    assert trainer._success_reward == "parity_reward"


def test_cut_completions_are_no_successes(build):
    """Dr. GRPO sets their reward to 0 after the reward function has seen them."""

    def always(completions, **kwargs):
        return [1.0] * len(completions)

    settings = {**PRIORITIZED, "max_completion_length": 2, "zero_truncated_reward": True}
    trainer = build(settings, [always], max_steps=1)
    trainer.train()
    assert trainer.state.log_history[0]["completions/clipped_ratio"] == 1.0
    assert trainer._prompt_sampler.rates.seen.sum() == 3
    assert trainer._prompt_sampler.rates.rates.sum() == 0


def test_evaluation_is_not_counted(build, tiny):
    trainer = build(PRIORITIZED, max_steps=1, per_device_eval_batch_size=2)
    trainer.eval_dataset = DATA
    trainer.train()
    before = trainer._prompt_sampler.rates.trials.clone()
    metrics = trainer.evaluate(DATA)
    assert "eval_sampling/seen" not in metrics
    assert torch.equal(trainer._prompt_sampler.rates.trials, before)


def test_columns_that_no_model_reads_may_be_removed(build):
    trainer = build({**EASY_TO_HARD, "remove_unused_columns": True}, max_steps=2)
    trainer.train()
    assert trainer._prompt_sampler.rates.seen.sum() >= 3


def test_uniform_sampling_is_left_alone(build):
    first, second = ParityReward(), ParityReward()
    trainer = build({}, [first])
    trainer.train()
    assert "sampling_row" not in trainer.train_dataset.column_names
    assert not [name for log in trainer.state.log_history for name in log if name.startswith("sampling/")]
    build({"sampling": "uniform"}, [second]).train()
    assert first.calls == second.calls
    assert len({question for batch in first.batches[:4] for question in batch}) == ROWS


def test_the_other_method_takes_it_too(build):
    trainer = build(PRIORITIZED, trainer=ReasoningGRPOTrainer, config=ReasoningGRPOConfig, max_steps=2, beta=0.0)
    trainer.train()
    assert trainer._prompt_sampler.rates.seen.sum() >= 3
