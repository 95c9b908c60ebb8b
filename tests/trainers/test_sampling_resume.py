"""A run with curriculum or prioritised sampling that is stopped goes on as if nothing had happened."""

import pytest
import torch

from trl_reasoning.builtin import make_chain_dataset
from trl_reasoning.errors import UserError
from trl_reasoning.trainers import DrGRPOConfig, DrGRPOTrainer


DATA = make_chain_dataset(size=12, operands=(2, 7), unique=True)
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


@pytest.fixture
def build(tiny, common, tmp_path):
    def build(settings, steps: int, reward=None, folder="out", data=DATA):
        config = DrGRPOConfig(
            **{
                **common,
                "output_dir": str(tmp_path / folder),
                "save_strategy": "steps",
                "save_steps": 1,
                "max_steps": steps,
                "lr_scheduler_type": "constant",
                "learning_rate": 1e-3,
                "num_generations": 2,
                "per_device_train_batch_size": 6,
                "max_completion_length": 8,
                "temperature": 1.5,
                "zero_truncated_reward": False,
                **settings,
            }
        )
        return DrGRPOTrainer(model=tiny, args=config, reward_funcs=[reward or ParityReward()], train_dataset=data)

    return build


def check_resume(build, settings, stops: list[int], steps: int) -> None:
    """Prompts, rewards, losses and sampling state of a run are those of one that goes on from its checkpoints."""
    reward = ParityReward()
    straight = build(settings, steps, reward)
    straight.train()
    state = straight._prompt_sampler.state_dict()
    for stop in stops:
        later = ParityReward()
        resumed = build(settings, steps, later, folder=f"from{stop}")
        resumed.train(resume_from_checkpoint=f"{straight.args.output_dir}/checkpoint-{stop}")
        assert 0 < len(later.calls) < len(reward.calls)
        assert later.calls == reward.calls[-len(later.calls) :]
        assert losses(resumed) == pytest.approx(losses(straight), abs=1e-5)
        end = resumed._prompt_sampler.state_dict()
        assert end.keys() == state.keys()
        for name, value in state.items():
            assert torch.equal(value, end[name]) if torch.is_tensor(value) else value == end[name], name


def losses(trainer) -> dict[int, float]:
    return {log["step"]: log["loss"] for log in trainer.state.log_history if "loss" in log}


@pytest.mark.parametrize("kind", KINDS)
def test_resume(build, kind):
    """Inside an epoch of four batches, at its end, and in the second one."""
    check_resume(build, KINDS[kind], stops=[2, 4, 5], steps=8)


@pytest.mark.parametrize("kind", ["prioritized", "easy_to_hard"])
def test_resume_inside_a_generation_window(build, kind):
    """
    A batch serves six micro-steps and an optimizer step takes five, the last of an epoch four: step 5 ends the epoch,
    and the others end inside a batch.
    """
    settings = {
        "num_iterations": 2,
        "per_device_train_batch_size": 2,
        "steps_per_generation": 3,
        "gradient_accumulation_steps": 5,
    }
    check_resume(build, {**KINDS[kind], **settings}, stops=[2, 5, 6], steps=11)


def test_resume_with_workers(build):
    check_resume(build, {**PRIORITIZED, "dataloader_num_workers": 1}, stops=[2], steps=6)


def test_a_checkpoint_without_sampling_is_refused(build):
    build({}, steps=1).train()
    trainer = build(PRIORITIZED, steps=2)
    with pytest.raises(FileNotFoundError, match=r"no sampling\.pt; it was written with `sampling: uniform`"):
        trainer.train(resume_from_checkpoint=f"{trainer.args.output_dir}/checkpoint-1")


def test_a_checkpoint_of_other_data_is_refused(build):
    build(PRIORITIZED, steps=1).train()
    trainer = build(PRIORITIZED, steps=2, data=DATA.select(range(9)))
    with pytest.raises(UserError, match="rows 12, and this run has 9"):
        trainer.train(resume_from_checkpoint=f"{trainer.args.output_dir}/checkpoint-1")
