"""Process supervision: token advantages worked by hand, and what every trainer keeps."""

import pytest
import torch
from peft import LoraConfig
from transformers import TrainerCallback

from trl_reasoning.builtin import make_chain_dataset
from trl_reasoning.rewards.steps import StepScore, make_chain_step_reward
from trl_reasoning.trainers import GRPOPSConfig, GRPOPSTrainer


# One token is one character. The first completion has steps that end at its 2nd and 4th token, the other at its 3rd.
TEXTS = ["1111", "222"]
STEPS = [[(2, 0.8), (4, 0.6)], [(3, 0.2)]]


def lora() -> LoraConfig:
    return LoraConfig(r=4, target_modules="all-linear", lora_dropout=0.1, task_type="CAUSAL_LM")


def by_text(texts, **kwargs):
    """Steps of the two known completions; a fixed score for each character of others."""
    known = dict(zip(TEXTS, STEPS, strict=True))
    return [
        [
            StepScore(end, score)
            for end, score in known.get(text, [(n + 1, float(ord(c) % 3)) for n, c in enumerate(text)])
        ]
        for text in texts
    ]


def rollout(texts):
    def run(prompts, trainer):
        tokenizer = trainer.processing_class
        rows = [texts[index % len(texts)] for index in range(len(prompts))]
        return {
            "prompt_ids": [tokenizer.apply_chat_template(p, add_generation_prompt=True)["input_ids"] for p in prompts],
            "completion_ids": [tokenizer(text)["input_ids"] for text in rows],
            "logprobs": None,
        }

    return run


class Weights(TrainerCallback):
    """The trained weights after each step."""

    def __init__(self):
        self.steps = {}

    def on_step_end(self, args, state, control, model=None, **kwargs):
        trained = [parameter.detach().flatten() for parameter in model.parameters() if parameter.requires_grad]
        self.steps[state.global_step] = torch.cat(trained)


@pytest.fixture
def build(tiny, common, length_reward, monkeypatch):
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")  # `rollout_func`

    def make(step_reward=by_text, texts=TEXTS, peft=False, reward=None, **settings):
        given = {
            "num_generations": 2,
            "per_device_train_batch_size": 2,
            "max_completion_length": 8,
            "temperature": 1.5,
            "learning_rate": 1e-3,
            "lr_scheduler_type": "constant",
            "beta": 0.0,
        }
        weights = Weights()
        trainer = GRPOPSTrainer(
            model=tiny,
            args=GRPOPSConfig(**{**common, **given, **settings}),
            reward_funcs=[reward or length_reward],
            step_reward=step_reward,
            train_dataset=make_chain_dataset(size=16, operands=3),
            rollout_func=rollout(texts) if texts else None,
            peft_config=lora() if peft else None,
            callbacks=[weights],
        )
        return trainer, weights

    return make


def advantages(trainer, chain, groups: int = 1) -> torch.Tensor:
    trainer.model.train()
    return trainer._generate_and_score_completions([chain[0]] * (2 * groups))["advantages"]


@pytest.mark.parametrize(
    ("std", "first", "second", "third"),
    [("population", 1.069045, 0.267261, -1.336306), ("sample", 0.872872, 0.218218, -1.091089)],
)
def test_worked_numbers(build, chain, std, first, second, third):
    trainer, _ = build(step_std=std)
    rows = advantages(trainer, chain)
    # 1e-4 is added to deviations of 0.249 and 0.306.
    assert rows[0].tolist() == pytest.approx([first + second] * 2 + [second] * 2, rel=5e-4)
    assert rows[1].tolist() == pytest.approx([third] * 3 + [0.0], rel=5e-4)


def test_without_the_division(build, chain):
    trainer, _ = build(scale_rewards="none")
    rows = advantages(trainer, chain)
    assert rows[0].tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 15, 1 / 15], abs=1e-6)
    assert rows[1].tolist() == pytest.approx([-1 / 3] * 3 + [0.0], abs=1e-6)


def test_the_outcome_is_added_at_every_token(build, chain):
    trainer, _ = build(
        scale_rewards="none",
        outcome_weight=0.5,
        reward=lambda completions, **kwargs: [1.0, 0.0] * (len(completions) // 2),
    )
    rows = advantages(trainer, chain)
    assert rows[0].tolist() == pytest.approx([1 / 3 + 0.25, 1 / 3 + 0.25, 1 / 15 + 0.25, 1 / 15 + 0.25], abs=1e-6)
    assert rows[1][:3].tolist() == pytest.approx([-1 / 3 - 0.25] * 3, abs=1e-6)


def test_steps_that_cannot_be_judged_and_completions_without_steps(build, chain):
    def steps(texts, **kwargs):
        return [[StepScore(1, 1.0), StepScore(2, None), StepScore(3, 0.0)], []]

    trainer, _ = build(steps, scale_rewards="none")
    rows = advantages(trainer, chain)
    assert rows.tolist() == [[0.0, -0.5, -0.5, 0.0], [0.0] * 4]
    metrics = trainer._metrics["train"]
    assert metrics["steps/count"] == [1.5]
    assert metrics["steps/unjudged"] == [pytest.approx(1 / 3)]
    assert metrics["steps/reward"] == [0.5]


def test_groups_without_a_spread_give_nothing(build, chain):
    def steps(texts, **kwargs):
        return [[StepScore(1, 0.1), StepScore(3, 0.1)], [StepScore(2, 0.1)], [StepScore(1, 1.0)], [StepScore(1, 0.0)]]

    trainer, _ = build(steps, per_device_train_batch_size=4)
    rows = advantages(trainer, chain, groups=2)
    assert rows[:2].abs().max() == 0.0 and rows[2:].abs().max() > 0.7
    assert trainer._metrics["train"]["steps/frac_zero_std"] == [0.5]


def test_loss_on_the_example(build, loss_on_example):
    """Terms min(rA, clip(r)A): 1.1, 0.9, 0.6 of three tokens and -1, -0.4 of two; minus half the mean of each."""
    trainer, _ = build(texts=None)
    loss = loss_on_example(trainer, [[1.0, 1.0, 0.5], [-1.0, -0.5, 0.0]])
    assert loss == pytest.approx(-0.5 * (2.6 / 3 - 1.4 / 2), abs=1e-6)


def test_the_step_reward_sees_columns_and_the_raw_text(build, chain):
    seen = {}

    def steps(texts, question, thought_opened=None, **kwargs):
        seen.update(texts=texts, question=question, keys=sorted(kwargs))
        return [[] for _ in texts]

    trainer, _ = build(steps, texts=["<think>7</think>8<|end|>"])
    advantages(trainer, chain)
    assert seen["texts"] == ["<think>7</think>8"] * 2
    assert seen["question"] == [chain[0]["question"]] * 2
    assert {"prompts", "completion_ids", "solution"} <= set(seen["keys"])


def test_a_list_too_few_is_an_error(build, chain):
    trainer, _ = build(lambda texts, **kwargs: [[]])
    with pytest.raises(ValueError, match="^step_reward gave 1 lists of steps for 2 completions"):
        advantages(trainer, chain)


LONG = ["<think>1+1=2\n2+2=5</think>5<|end|>", "<think>1+1=3</think>3<|end|>", "7<|end|>", "<think>1\n2\n3</think>4"]


@pytest.mark.parametrize("peft", [False, True])
def test_splits_of_a_step_agree(build, peft):
    """8 x 1, 4 x 2 and 1 x 8, in passes by length and in TRL's micro-batches."""
    runs = []
    for batch, accumulation, packs in ((8, 1, True), (8, 1, False), (4, 2, True), (1, 8, True), (1, 8, False)):
        trainer, weights = build(
            texts=LONG, peft=peft, max_steps=2, optim="sgd", learning_rate=0.05, num_generations=4,
            per_device_train_batch_size=batch, gradient_accumulation_steps=accumulation, max_completion_length=40,
            pack_updates=packs, beta=0.04,
        )  # fmt: skip
        start = torch.cat([p.detach().flatten() for p in trainer.model.parameters() if p.requires_grad])
        trainer.train()
        runs.append(weights.steps[2] - start)
    assert runs[0].norm() > 1e-4
    for run in runs[1:]:
        assert (run - runs[0]).norm() < 1e-4 * runs[0].norm()


@pytest.mark.parametrize("peft", [False, True])
def test_resume_is_exact(build, tmp_path, peft):
    """A checkpoint inside a generation batch keeps its token advantages."""
    settings = {
        "step_reward": by_text, "texts": None, "peft": peft, "num_iterations": 2, "save_strategy": "steps",
        "save_steps": 1, "num_generations": 4, "per_device_train_batch_size": 4, "beta": 0.04,
    }  # fmt: skip
    straight, whole = build(output_dir=str(tmp_path / "straight"), max_steps=4, **settings)
    straight.train()
    first, _ = build(output_dir=str(tmp_path / "parts"), max_steps=3, **settings)
    first.train()
    second, part = build(output_dir=str(tmp_path / "parts"), max_steps=4, **settings)
    second.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-3"))
    assert part.steps[4].equal(whole.steps[4])
    assert not whole.steps[4].equal(whole.steps[3])


def test_chain_steps_in_a_real_run(build):
    trainer, _ = build(
        make_chain_step_reward(), texts=None, max_steps=1, num_generations=4, per_device_train_batch_size=8,
        max_completion_length=40,
    )  # fmt: skip
    trainer.train()
    log = trainer.state.log_history[0]
    assert 0.0 <= log["steps/reward"] <= 1.0 and log["steps/count"] > 0.5
    assert log["grad_norm"] > 0.0


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"step_std": "biased"}, "step_std"),
        ({"outcome_weight": -1.0}, "outcome_weight"),
        ({"scale_rewards": "batch"}, "scale_rewards"),
    ],
)
def test_refused(common, settings, key):
    with pytest.raises(ValueError, match=f"^{key}: "):
        GRPOPSConfig(**common, **settings)
