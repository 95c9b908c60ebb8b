"""Settings and data that curriculum and prioritised sampling refuse, and the defaults of the others."""

import math

import pytest
from datasets import Dataset

from trl_reasoning.builtin import make_chain_dataset
from trl_reasoning.errors import UserError
from trl_reasoning.rewards import make_accuracy_reward
from trl_reasoning.trainers import DrGRPOConfig, DrGRPOTrainer


ROWS = 12
DATA = make_chain_dataset(size=ROWS, operands=(2, 7), unique=True)
PRIORITIZED = {"sampling": "prioritized"}
CURRICULUM = {"sampling": "curriculum", "difficulty_column": "difficulty"}
THEN_HARD = {**CURRICULUM, "curriculum": "uniform_then_hard"}


@pytest.fixture
def configure(common):
    def configure(settings):
        return DrGRPOConfig(
            **{
                **common,
                "max_steps": 1,
                "num_generations": 2,
                "per_device_train_batch_size": 6,
                "max_completion_length": 8,
                **settings,
            }
        )

    return configure


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sampling": "prioritised"}, "sampling: 'prioritised' is not one of .* Did you mean `prioritized`"),
        ({**CURRICULUM, "curriculum": "hard"}, "curriculum: 'hard' is not one of"),
        ({"difficulty_column": "difficulty"}, "difficulty_column: read with `sampling: curriculum` or `sampling: pri"),
        (
            {**PRIORITIZED, "curriculum_steps": 5},
            "curriculum_steps: read with `sampling: curriculum` only, and this is",
        ),
        ({**CURRICULUM, "priority_floor": 0.1}, "priority_floor: read with `sampling: prioritized` only"),
        ({"sampling": "curriculum"}, "difficulty_column: missing"),
        ({**PRIORITIZED, "difficulty_reversed": True}, "difficulty_reversed: there is no `difficulty_column`"),
        ({**PRIORITIZED, "shuffle_dataset": False}, "shuffle_dataset: false keeps the order"),
        ({**CURRICULUM, "curriculum_steps": 0.0}, "curriculum_steps: expected a number of steps, or a share"),
        ({**CURRICULUM, "curriculum_steps": 2.5}, "curriculum_steps: expected a number of steps, or a share"),
        ({**CURRICULUM, "curriculum_start_fraction": 1.5}, "curriculum_start_fraction: expected a share from 0 to 1"),
        ({**CURRICULUM, "curriculum_hard_fraction": 0.5}, "curriculum_hard_fraction: not read with `curriculum: easy"),
        ({**THEN_HARD, "curriculum_start_fraction": 0.5}, "curriculum_start_fraction: not read with `curriculum: uni"),
        ({**THEN_HARD, "curriculum_hard_fraction": -0.5}, "curriculum_hard_fraction: expected a share from 0 to 1"),
        (
            {**THEN_HARD, "curriculum_hard_fraction": 0.5, "curriculum_hard_threshold": 5},
            "curriculum_hard_threshold: set together with `curriculum_hard_fraction`",
        ),
        ({**PRIORITIZED, "success_rate_decay": 1.1}, "success_rate_decay: expected a share from 0 to 1"),
        ({**PRIORITIZED, "priority_floor": -0.1}, "priority_floor: expected a share from 0 to 1"),
    ],
)
def test_settings(configure, settings, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        configure(settings)


def test_defaults_are_filled_in(configure):
    growing, hard, prioritized, uniform = map(configure, (CURRICULUM, THEN_HARD, PRIORITIZED, {}))
    assert (growing.curriculum, growing.curriculum_steps, growing.curriculum_start_fraction) == (
        "easy_to_hard",
        0.5,
        0.25,
    )
    assert (hard.curriculum_steps, hard.curriculum_hard_fraction) == (0.5, 0.5)
    assert configure({**THEN_HARD, "curriculum_hard_threshold": 5}).curriculum_hard_fraction is None
    assert prioritized.success_threshold is None  # the trainer asks the reward
    assert (prioritized.success_rate_decay, prioritized.priority_floor) == (0.5, 0.0)
    assert uniform.success_rate_decay is None


def with_difficulty(values) -> Dataset:
    return DATA.remove_columns("difficulty").add_column("difficulty", values)


@pytest.mark.parametrize(
    ("settings", "data", "message"),
    [
        (PRIORITIZED, DATA.to_iterable_dataset(), "sampling: prioritized draws rows by their number, which a Iter"),
        (PRIORITIZED, DATA.select(range(2)), "sampling: a generation batch takes 3 different prompts .* has 2"),
        ({**PRIORITIZED, "success_reward": "lenght"}, DATA, r"success_reward: `lenght` is not one of .*\(length\)"),
        ({**CURRICULUM, "difficulty_column": "dificulty"}, DATA, "no column `dificulty`; did you mean 'difficulty'"),
        (CURRICULUM, with_difficulty(["Level 1"] * ROWS), "row 0: expected a finite number, got 'Level 1'"),
        (CURRICULUM, with_difficulty([1.0] * 5 + [math.nan] + [2.0] * 6), "row 5: expected a finite number, got nan"),
        ({**THEN_HARD, "curriculum_hard_threshold": 7}, DATA, "curriculum_hard_threshold: 2 rows are as hard as 7"),
    ],
)
def test_data(configure, tiny, length_reward, settings, data, message):
    with pytest.raises(UserError, match=message):
        DrGRPOTrainer(model=tiny, args=configure(settings), reward_funcs=[length_reward], train_dataset=data)


@pytest.mark.parametrize(
    ("values", "given", "threshold"),
    [({}, None, 0.5), ({"right": 10, "wrong": -2}, None, 4.0), ({"right": 10}, 1.0, 1.0)],
)
def test_the_values_of_accuracy_say_what_a_success_is(configure, tiny, values, given, threshold):
    args = configure({**PRIORITIZED, "success_threshold": given})
    rewards = [make_accuracy_reward(**values)]
    trainer = DrGRPOTrainer(model=tiny, args=args, reward_funcs=rewards, train_dataset=DATA)
    assert trainer._success_threshold == pytest.approx(threshold)
