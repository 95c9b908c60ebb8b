"""A run of N steps equals M steps, a resume, and N - M steps: same prompts, same losses."""

import pytest
from peft import LoraConfig

from trl_reasoning.builtin import make_chain_dataset
from trl_reasoning.trainers import (
    DrGRPOConfig,
    DrGRPOTrainer,
    ReasoningGRPOConfig,
    ReasoningGRPOTrainer,
    ReasoningSFTConfig,
    ReasoningSFTTrainer,
)
from trl_reasoning.trainers._rollout_state import ResumableRepeatSampler


def lora() -> LoraConfig:
    return LoraConfig(r=4, target_modules="all-linear", lora_dropout=0.1, task_type="CAUSAL_LM")


def run(make, tmp_path, steps: int, resume_at: int):
    """Losses and prompts of a straight run and of an interrupted one."""
    straight, straight_prompts = make(tmp_path / "straight", steps)
    straight.train()
    first, first_prompts = make(tmp_path / "parts", resume_at)
    first.train()
    second, second_prompts = make(tmp_path / "parts", steps)
    second.train(resume_from_checkpoint=str(tmp_path / "parts" / f"checkpoint-{resume_at}"))

    def losses(trainer):
        return {log["step"]: log["loss"] for log in trainer.state.log_history if "loss" in log}

    return losses(straight), losses(second), straight_prompts, first_prompts + second_prompts


def policy_maker(tiny, length_reward_class, trainer_class, config_class, common, peft=False, **settings):
    def make(folder, steps):
        reward = length_reward_class()
        config = config_class(
            **{
                **common,
                "output_dir": str(folder),
                "save_strategy": "steps",
                "save_steps": 1,
                "max_steps": steps,
                "lr_scheduler_type": "constant",
                "learning_rate": 1e-3,
                "num_generations": 4,
                "per_device_train_batch_size": 4,
                "max_completion_length": 12,
                "temperature": 1.5,
                **settings,
            }
        )
        trainer = trainer_class(
            model=tiny,
            args=config,
            reward_funcs=[reward],
            train_dataset=make_chain_dataset(size=6, operands=3),
            peft_config=lora() if peft else None,
        )
        return trainer, reward.prompts

    return make


@pytest.mark.parametrize("peft", [False, True])
def test_policy_resumes_exactly(tiny, tmp_path, common, length_reward, peft):
    make = policy_maker(
        tiny, type(length_reward), DrGRPOTrainer, DrGRPOConfig, common, peft=peft, zero_truncated_reward=False
    )
    straight, resumed, straight_prompts, resumed_prompts = run(make, tmp_path, steps=4, resume_at=2)
    assert resumed_prompts == straight_prompts
    assert resumed == pytest.approx(straight, abs=1e-5)
    assert len(set(straight.values())) == 4


def test_second_epoch_keeps_its_own_order(tiny, tmp_path, common, length_reward):
    # Six prompts, one a step: step 8 lies in the second epoch.
    make = policy_maker(tiny, type(length_reward), DrGRPOTrainer, DrGRPOConfig, common)
    straight, resumed, straight_prompts, resumed_prompts = run(make, tmp_path, steps=9, resume_at=7)
    assert straight_prompts[:24:4] != straight_prompts[24:36:4] + straight_prompts[12:24:4]
    assert resumed_prompts == straight_prompts
    assert resumed == pytest.approx(straight, abs=1e-5)


def test_inside_a_generation_window(tiny, tmp_path, common, length_reward):
    make = policy_maker(
        tiny,
        type(length_reward),
        ReasoningGRPOTrainer,
        ReasoningGRPOConfig,
        common,
        num_iterations=2,
        steps_per_generation=2,
        per_device_train_batch_size=2,
    )
    # A window has 4 steps (2 slices x 2 iterations): the checkpoint of step 3 lies inside it.
    straight, resumed, straight_prompts, resumed_prompts = run(make, tmp_path, steps=6, resume_at=3)
    assert resumed_prompts == straight_prompts
    assert resumed == pytest.approx(straight, abs=1e-5)


def test_an_iterable_dataset(tiny, tmp_path, common, length_reward):
    def make(folder, steps):
        settings = {**common, "output_dir": str(folder), "save_strategy": "steps", "save_steps": 1}
        config = ReasoningGRPOConfig(
            **settings,
            max_steps=steps,
            lr_scheduler_type="constant",
            learning_rate=1e-3,
            num_generations=4,
            max_completion_length=12,
            num_iterations=2,
        )
        reward = type(length_reward)()
        data = make_chain_dataset(size=16, operands=3).to_iterable_dataset()
        return ReasoningGRPOTrainer(model=tiny, args=config, reward_funcs=[reward], train_dataset=data), reward.prompts

    straight, resumed, straight_prompts, resumed_prompts = run(make, tmp_path, steps=5, resume_at=3)
    assert resumed_prompts == straight_prompts
    assert resumed == pytest.approx(straight, abs=1e-5)


@pytest.mark.parametrize("resume_at", [2, 5])
@pytest.mark.parametrize("peft", [False, True])
def test_sft_resumes_exactly(tiny, tmp_path, common, peft, resume_at):
    def make(folder, steps):
        config = ReasoningSFTConfig(
            **{
                **common,
                "output_dir": str(folder),
                "save_strategy": "steps",
                "save_steps": 1,
                "max_steps": steps,
                "lr_scheduler_type": "constant",
                "learning_rate": 1e-3,
                "per_device_train_batch_size": 4,
            }
        )
        data = make_chain_dataset(size=16, operands=3).select_columns(["prompt", "completion"])
        trainer = ReasoningSFTTrainer(
            model=tiny, args=config, train_dataset=data, peft_config=lora() if peft else None
        )
        return trainer, []

    straight, resumed, _, _ = run(make, tmp_path, steps=resume_at + 2, resume_at=resume_at)
    assert resumed == pytest.approx(straight, abs=1e-5)


def test_skipped_epochs_are_those_the_parent_would_have_drawn():
    data = list(range(8))
    whole = ResumableRepeatSampler(data, mini_repeat_count=1, batch_size=2, seed=3)
    orders = [list(whole) for _ in range(3)]
    late = ResumableRepeatSampler(data, mini_repeat_count=1, batch_size=2, seed=3)
    late.skip_epochs(2)
    assert list(late) == orders[2] != orders[0]


def test_checkpoint_of_another_trainer_is_refused(tiny, tmp_path, common, length_reward):
    make = policy_maker(tiny, type(length_reward), DrGRPOTrainer, DrGRPOConfig, common)
    trainer, _ = make(tmp_path / "run", 1)
    trainer.train()
    (tmp_path / "run" / "checkpoint-1" / "rollouts_0.pt").unlink()
    again, _ = make(tmp_path / "run", 2)
    with pytest.raises(FileNotFoundError, match=r"rollouts_0\.pt"):
        again.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-1"))
