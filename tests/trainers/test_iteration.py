"""The hook between two iterations: which samples it gets, when, and across a resume."""

import pytest

from trl_reasoning.builtin import make_chain_dataset
from trl_reasoning.rewards.replay import ReplayBuffer
from trl_reasoning.trainers import ReasoningGRPOConfig, ReasoningGRPOTrainer


@pytest.fixture
def build(tiny, common):
    def make(**settings):
        def length(completion_ids, **kwargs):
            return [float(len(ids)) if len(ids) % 3 else None for ids in completion_ids]

        config = ReasoningGRPOConfig(
            **{
                **common, "num_generations": 4, "per_device_train_batch_size": 4, "max_completion_length": 8,
                "temperature": 1.5, "sync_ref_model": True, "ref_model_sync_steps": 2, **settings,
            }
        )  # fmt: skip
        trainer = ReasoningGRPOTrainer(
            model=tiny, args=config, reward_funcs=[length], train_dataset=make_chain_dataset(size=16, operands=3),
            eval_dataset=make_chain_dataset(size=4, operands=3),
        )  # fmt: skip
        calls = []

        def hook(samples, history, reward_funcs):
            assert reward_funcs == [length]
            calls.append((trainer.state.global_step, samples, history))

        if settings.get("sync_ref_model", True):
            trainer.set_iteration_hook(hook, ReplayBuffer(share=0.5, capacity=6))
        return trainer, calls

    return make


@pytest.mark.parametrize("evaluation", ["no", "steps"])
def test_each_iteration_gives_its_own_samples_and_history(build, evaluation):
    trainer, calls = build(max_steps=7, eval_strategy=evaluation, eval_steps=2, per_device_eval_batch_size=4)
    trainer.train()
    # Iterations end before the generations of steps 3, 5 and 7; each holds two steps of four completions.
    assert [(step, len(samples), len(history)) for step, samples, history in calls] == [
        (2, 8, 0),
        (4, 8, 6),
        (6, 8, 6),
    ]
    known = calls[0][1]
    assert all(sample in known for sample in calls[1][2])
    for sample in known:
        text = sample.completion[0]["content"]
        assert sample.prompt[-1]["role"] == "user"
        (reward,) = sample.rewards
        # The end token is a token that the text does not show.
        assert reward is None or reward - len(text.replace("<think>", "#").replace("</think>", "#")) in (0.0, 1.0)


def test_resume_is_exact(build, tmp_path):
    settings = {"save_strategy": "steps", "save_steps": 1}
    straight, whole = build(output_dir=str(tmp_path / "straight"), max_steps=5, **settings)
    straight.train()
    first, before = build(output_dir=str(tmp_path / "parts"), max_steps=3, **settings)
    first.train()
    second, after = build(output_dir=str(tmp_path / "parts"), max_steps=5, **settings)
    second.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-3"))
    assert before + after == whole
    assert len(before) == len(after) == 1


def test_refused_where_there_is_one_iteration(build):
    trainer, _ = build(sync_ref_model=False)
    with pytest.raises(ValueError, match="^sync_ref_model: "):
        trainer.set_iteration_hook(lambda *args: None)
