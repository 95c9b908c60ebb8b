"""Kimi's length reward in training: groups, weights, and when it comes on."""

import pytest

from trl_reasoning.callbacks import HeldoutCallback
from trl_reasoning.rewards import REWARDS
from trl_reasoning.trainers import (
    DrGRPOConfig,
    DrGRPOTrainer,
    KimiConfig,
    KimiTrainer,
    ReasoningGRPOConfig,
    ReasoningGRPOTrainer,
)
from trl_reasoning.trainers._length_reward import has_stopped_rising


METHODS = [(ReasoningGRPOTrainer, ReasoningGRPOConfig), (DrGRPOTrainer, DrGRPOConfig), (KimiTrainer, KimiConfig)]
RIGHT, WRONG = r"\boxed{4}", r"\boxed{5}"


@pytest.fixture
def settings(common) -> dict:
    return {
        **common,
        "num_generations": 4,
        "per_device_train_batch_size": 4,
        "num_iterations": 2,
        "max_completion_length": 12,
        "learning_rate": 1e-4,
        "lr_scheduler_type": "constant",
        "reward_weights": [1.0, 0.5],
    }


@pytest.fixture
def build(tiny, chain):
    def make(trainer_class, config, names=("accuracy", "kimi_length"), callbacks=()):
        rewards = [REWARDS[name]() for name in names]
        return trainer_class(
            model=tiny, args=config, reward_funcs=rewards, train_dataset=chain, callbacks=list(callbacks)
        )

    return make


def weights(trainer) -> list[float]:
    return [log["length_reward/weight"] for log in trainer.state.log_history if "length_reward/weight" in log]


@pytest.mark.parametrize(("trainer_class", "config_class"), METHODS)
def test_groups_are_compared_within_themselves(build, settings, trainer_class, config_class):
    config = config_class(**{**settings, "per_device_train_batch_size": 8})
    trainer = build(trainer_class, config)
    trainer._is_complete = [True] * 8
    rows = [{"prompt": "?", "solution": "4"}] * 8
    completions = [RIGHT, RIGHT, WRONG, WRONG, WRONG, RIGHT, WRONG, WRONG]
    lengths = [2, 6, 3, 5, 100, 200, 300, 100]
    ids = [[1] * length for length in lengths]
    rewards = trainer._calculate_rewards(rows, ["?"] * 8, completions, ids)
    assert rewards[:, 0].tolist() == [1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    # lambda: 0.5 - (3 - 2) / 4 = 0.25 and -0.25 in the first group; the prompts of both groups are equal.
    assert rewards[:, 1].tolist() == pytest.approx([0.5, -0.5, 0.0, -0.25, 0.0, 0.0, -0.5, 0.0])


def test_rows_without_a_readable_gold_stay_not_applicable(build, settings):
    trainer = build(ReasoningGRPOTrainer, ReasoningGRPOConfig(**settings))
    rows = [{"prompt": "?", "solution": gold} for gold in ("4", None, "4", "4")]
    rewards = trainer._calculate_rewards(rows, ["?"] * 4, [RIGHT] * 4, [[1], [1] * 99, [1] * 2, [1] * 3])
    assert rewards[:, 1].isnan().tolist() == [False, True, False, False]
    assert rewards[[0, 2, 3], 1].tolist() == [0.5, 0.0, -0.5]


@pytest.mark.parametrize(("trainer_class", "config_class"), METHODS)
def test_it_comes_on_at_a_step(build, settings, trainer_class, config_class):
    """Batches are generated at steps 0, 2 and 4; the one of step 4 is the first at or after step 3."""
    trainer = build(trainer_class, config_class(**settings, length_reward_start_step=3, max_steps=6))
    trainer.train()
    assert weights(trainer) == [0.0, 0.0, 0.5]
    for log in (log for log in trainer.state.log_history if "reward" in log):
        length = log["length_reward/weight"] * log["rewards/kimi_length_reward/mean"]
        assert log["reward"] == pytest.approx(log["rewards/accuracy_reward/mean"] + length, abs=1e-6)


def test_a_list_of_rewards_serves_two_trainers(tiny, chain, settings):
    rewards = [REWARDS["accuracy"](), REWARDS["kimi_length"]()]
    config = ReasoningGRPOConfig(**settings)
    for _ in range(2):
        trainer = ReasoningGRPOTrainer(model=tiny, args=config, reward_funcs=rewards, train_dataset=chain)
        assert trainer._length_weights == {1: 0.5}


def test_without_a_schedule_it_is_on(build, settings):
    trainer = build(KimiTrainer, KimiConfig(**settings, max_steps=2))
    trainer.train()
    assert weights(trainer) == [0.5]


ACCURACY = {0: 0.5, 1: 0.6, 2: 0.7, 3: 0.65, 4: 0.7, 5: 0.9, 6: 0.6}


def heldout() -> HeldoutCallback:
    callback = HeldoutCallback(lambda: {"accuracy": ACCURACY[callback.trainer.state.global_step]}, every=1)
    return callback


def with_heldout(build, config, tmp_path, steps):
    callback = heldout()
    trainer = build(
        DrGRPOTrainer,
        DrGRPOConfig(**{**config, "num_iterations": 1, "output_dir": str(tmp_path)}, max_steps=steps),
        callbacks=[callback],
    )
    callback.trainer = trainer
    return trainer


@pytest.mark.parametrize("resume_at", [3, 4, 5])
def test_it_comes_on_once_held_out_accuracy_stops_rising_also_after_a_resume(build, settings, tmp_path, resume_at):
    """0.65 and 0.7 are no new best after 0.7: on from the batch after step 4, and it stays on at 0.9."""
    config = {**settings, "length_reward_patience": 2, "save_strategy": "steps", "save_steps": 1}
    straight = with_heldout(build, config, tmp_path / "straight", 6)
    straight.train()
    assert weights(straight) == [0.0, 0.0, 0.0, 0.0, 0.5, 0.5]
    first = with_heldout(build, config, tmp_path / "parts", resume_at)
    first.train()
    second = with_heldout(build, config, tmp_path / "parts", 6)
    second.train(resume_from_checkpoint=str(tmp_path / "parts" / f"checkpoint-{resume_at}"))
    assert weights(second) == weights(straight)


@pytest.mark.parametrize(
    ("accuracies", "patience", "min_gain", "expected"),
    [
        ([], 1, 0.0, False),
        ([0.5], 1, 0.0, False),
        ([0.5, 0.5], 1, 0.0, True),
        ([0.5, 0.6, 0.55, 0.61, 0.6], 2, 0.0, False),
        ([0.5, 0.6, 0.55, 0.61, 0.6], 2, 0.02, True),  # 0.55 and 0.61 are no rise over 0.6
        ([0.5, 0.4, 0.4, 0.9, 1.0], 2, 0.0, True),  # once on, always on
    ],
)
def test_when_accuracy_has_stopped_rising(accuracies, patience, min_gain, expected):
    history = [{"heldout/accuracy": value, "step": step} for step, value in enumerate(accuracies)]
    assert has_stopped_rising([{"loss": 1.0}, *history], patience, min_gain) is expected


@pytest.mark.parametrize("weight", [2.0, -0.5])
def test_weights_that_let_wrong_answers_win_are_refused(build, settings, weight):
    config = ReasoningGRPOConfig(**{**settings, "reward_weights": [1.0, weight]})
    with pytest.raises(ValueError, match="^reward_weights: kimi_length .* below 2 "):
        build(ReasoningGRPOTrainer, config)


@pytest.mark.parametrize("key", ["length_reward_start_step", "length_reward_patience"])
def test_a_schedule_needs_its_reward(build, settings, key):
    config = ReasoningGRPOConfig(**{**settings, "reward_weights": [1.0]}, **{key: 3})
    with pytest.raises(ValueError, match=f"^{key}: there is no length reward"):
        build(ReasoningGRPOTrainer, config, names=["accuracy"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length_reward_start_step": 0}, "^length_reward_start_step: expected at least 1, got 0"),
        ({"length_reward_patience": 0}, "^length_reward_patience: expected at least 1, got 0"),
        ({"length_reward_start_step": 5, "length_reward_patience": 2}, "^length_reward_start_step: set together"),
        ({"length_reward_patience": 2, "length_reward_min_gain": 1.5}, "^length_reward_min_gain: .*got 1.5"),
        ({"length_reward_min_gain": 0.1}, "^length_reward_min_gain: read with length_reward_patience alone"),
    ],
)
def test_impossible_schedules(settings, change, message):
    with pytest.raises(ValueError, match=message):
        ReasoningGRPOConfig(**settings, **change)
