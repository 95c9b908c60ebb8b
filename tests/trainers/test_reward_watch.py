"""The watch for tricked rewards, in training: what it logs and writes, and when it speaks up."""

import warnings
from pathlib import Path

import pytest
from watch_tools import GUESS, THOUGHT, make_builder

from trl_reasoning.callbacks import HeldoutCallback
from trl_reasoning.trainers import (
    KimiConfig,
    KimiTrainer,
    PPOConfig,
    PPOTrainer,
    ReasoningGRPOConfig,
    ReasoningGRPOTrainer,
)


def drops_its_thought(step):
    return [THOUGHT] if step < 3 else [GUESS]


@pytest.fixture
def build(tiny, chain, common, monkeypatch):
    return make_builder(tiny, chain, common, monkeypatch)


METHODS = [
    (ReasoningGRPOTrainer, ReasoningGRPOConfig, {}),
    (KimiTrainer, KimiConfig, {"baseline": "log_mean_exp"}),
    (PPOTrainer, PPOConfig, {"kl_coef": 0.0, "num_iterations": 1}),
]


@pytest.mark.parametrize(("trainer_class", "config_class", "changes"), METHODS)
def test_a_policy_that_drops_its_thought_stops_the_run(build, trainer_class, config_class, changes):
    trainer = build(
        drops_its_thought,
        trainer=trainer_class,
        config=config_class,
        reward_watch="stop",
        max_steps=8,
        save_strategy="steps",
        save_steps=100,
        **changes,
    )
    with pytest.warns(UserWarning, match="REWARD HACKING.* step 6 100% .* without a thought, once it was 0%.*stops"):
        trainer.train()
    assert trainer.state.global_step == 6
    assert (Path(trainer.args.output_dir) / "checkpoint-6" / "trainer_state.json").exists()


def test_only_boxed_guesses_from_the_start_are_a_sign_where_a_thought_is_asked_for(build):
    trainer = build(lambda step: [GUESS], names=("accuracy", "format"), max_steps=12)
    with pytest.warns(UserWarning, match="step 9 100% .* without the thought that is asked for") as caught:
        trainer.train()
    assert len([each for each in caught if "HACKING" in str(each.message)]) == 1  # though block 4 shows it again
    assert trainer.state.global_step == 12


@pytest.mark.parametrize(
    ("texts_at", "names", "changes"),
    [
        (lambda step: [GUESS], ("accuracy",), {"max_steps": 12}),  # does not think, and is not asked to
        (lambda step: [GUESS, THOUGHT] if step < 3 else [THOUGHT], ("accuracy", "format"), {}),  # learns to think
        (drops_its_thought, ("accuracy", "format"), {"reward_watch": "off"}),
    ],
    ids=["no_thought_asked", "learns", "off"],
)
def test_no_sign(build, texts_at, names, changes):
    trainer = build(texts_at, names, **changes)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        trainer.train()
    is_off = trainer.args.reward_watch == "off"
    assert ("thoughts/missing" in trainer.state.log_history[0]) is not is_off
    assert ("rewards/accuracy_reward/right" in trainer.state.log_history[0]) is not is_off


def test_prompts_whose_thought_is_closed_are_left_out(build, chain):
    rows = chain.map(lambda row: {"prompt": "2+3=?<think></think>"}, remove_columns=["completion"])
    trainer = build(lambda step: [GUESS], names=("accuracy", "format"), dataset=rows, max_steps=1)
    trainer.rollout_func = lambda prompts, trainer: {
        "prompt_ids": [trainer.processing_class(prompt)["input_ids"] for prompt in prompts],
        "completion_ids": [trainer.processing_class(GUESS)["input_ids"]] * len(prompts),
        "logprobs": None,
    }
    trainer.train()
    assert "thoughts/missing" not in trainer.state.log_history[0]


def heldout(accuracy_at):
    def measure():
        accuracy = accuracy_at(callback.trainer.state.global_step)
        return {"accuracy": accuracy, "accuracy_low": accuracy - 0.02, "accuracy_high": accuracy + 0.02}

    callback = HeldoutCallback(measure, every=2)
    return callback


class RisingReward:
    __name__ = "rising"
    columns = ()

    def __call__(self, prompts, completions, completion_ids, trainer_state, **kwargs):
        return [0.1 * trainer_state.global_step + 0.01 * row for row in range(len(prompts))]


def watched(build, accuracy_at, **changes):
    callback = heldout(accuracy_at)
    trainer = build(lambda step: [THOUGHT], names=(RisingReward(),), callbacks=[callback], **changes)
    callback.trainer = trainer
    return trainer


def falling(step):
    return 0.6 if step < 5 else 0.3


def test_reward_up_and_held_out_accuracy_down_stops(build):
    """
    Measured at 0, 2 and 4: 0.6; at 6: 0.3, with 0.6 before it a pair of 0.45. The best pair with two logged rewards is
    that of 2 and 4, which the pair of 6 and 8 is the first to have no part in.
    """
    trainer = watched(build, falling, reward_watch="stop", save_strategy="steps", save_steps=100)
    with pytest.warns(UserWarning, match=r"step 8 .* rose from .* fell from 60\.0% \(steps 2 and 4\) to 30\.0%"):
        trainer.train()
    assert trainer.state.global_step == 8


def test_reward_and_held_out_accuracy_up_is_no_sign(build):
    trainer = watched(build, lambda step: 0.3 + 0.02 * step, max_steps=12)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        trainer.train()


@pytest.mark.parametrize("resume_at", [4, 6])
def test_a_resumed_run_speaks_up_where_the_uninterrupted_one_would_have(build, tmp_path, resume_at):
    keys = {"reward_watch": "stop", "save_strategy": "steps", "save_steps": resume_at}
    watched(build, falling, **keys, max_steps=resume_at, output_dir=str(tmp_path)).train()
    second = watched(build, falling, **keys, output_dir=str(tmp_path))
    with pytest.warns(UserWarning, match="REWARD HACKING"):
        second.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{resume_at}"))
    assert second.state.global_step == 8


def test_a_warning_is_not_repeated_after_a_resume(build, tmp_path):
    keys = {"save_strategy": "steps", "save_steps": 10, "output_dir": str(tmp_path)}
    with pytest.warns(UserWarning, match="REWARD HACKING"):
        watched(build, falling, **keys, max_steps=10).train()
    second = watched(build, falling, **keys, max_steps=12)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        second.train(resume_from_checkpoint=str(tmp_path / "checkpoint-10"))
    assert second.state.global_step == 12


def test_an_action_that_does_not_exist(common):
    with pytest.raises(ValueError, match=r"reward_watch: expected one of \['off', 'warn', 'stop'\], got 'halt'"):
        ReasoningGRPOConfig(**common, reward_watch="halt")
