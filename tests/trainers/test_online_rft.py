"""Online RFT: the likelihood of right samples, worked by hand, and what every trainer keeps."""

import math

import pytest
import torch
from peft import LoraConfig
from transformers import TrainerCallback

from trl_reasoning.builtin import make_chain_dataset
from trl_reasoning.losses import PolicyTokens, row_weights
from trl_reasoning.rewards import make_accuracy_reward
from trl_reasoning.trainers import OnlineRFTConfig, OnlineRFTTrainer


def lora() -> LoraConfig:
    return LoraConfig(r=4, target_modules="all-linear", lora_dropout=0.1, task_type="CAUSAL_LM")


class Weights(TrainerCallback):
    """The trained weights after each step."""

    def __init__(self):
        self.steps = {}

    def on_step_end(self, args, state, control, model=None, **kwargs):
        trained = [parameter.detach().flatten() for parameter in model.parameters() if parameter.requires_grad]
        self.steps[state.global_step] = torch.cat(trained)


def even_length(completion_ids, **kwargs):
    return [float(len(ids) % 2 == 0) for ids in completion_ids]


@pytest.fixture
def build(tiny, common):
    def make(reward=even_length, peft=False, **settings):
        given = {
            "num_generations": 4,
            "per_device_train_batch_size": 4,
            "max_completion_length": 12,
            "temperature": 1.5,
            "learning_rate": 1e-3,
            "lr_scheduler_type": "constant",
        }
        weights = Weights()
        trainer = OnlineRFTTrainer(
            model=tiny,
            args=OnlineRFTConfig(**{**common, **given, **settings}),
            reward_funcs=reward if isinstance(reward, list) else [reward],
            train_dataset=make_chain_dataset(size=16, operands=3),
            peft_config=lora() if peft else None,
            callbacks=[weights],
        )
        return trainer, weights

    return make


def test_loss_on_the_example(build, loss_on_example):
    """The first of two rows is right; its log-probs are ln 1.1, ln 0.9 and ln 1.5."""
    trainer, _ = build()
    expected = -0.5 * (math.log(1.1) + math.log(0.9) + math.log(1.5)) / 3
    assert expected == pytest.approx(-0.065902, abs=1e-6)
    assert loss_on_example(trainer, [1.0, 0.0]) == pytest.approx(expected, abs=1e-6)


def test_gradient_coefficients_are_one_over_the_length_for_right_rows_and_no_ratio_is_clipped(build):
    trainer, _ = build()
    logps = torch.tensor([[-1.0, -2.0, -0.5], [-0.1, -4.0, 0.0]], requires_grad=True)
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    old = torch.full_like(logps, -3.0)
    tokens = PolicyTokens(
        per_token_logps=logps, old_per_token_logps=old, ref_per_token_logps=None, entropies=logps.detach(),
        advantages=torch.tensor([[0.0], [1.0]]), mask=mask, log_weights=logps - old,
    )  # fmt: skip
    assert trainer.reduction == "sequence_mean"
    (trainer.policy_loss(tokens).loss * mask * row_weights(trainer.reduction, mask)).sum().backward()
    assert logps.grad.tolist() == [[0.0, 0.0, 0.0], [-0.25, -0.25, 0.0]]  # 1 / (2 rows x 2 tokens)


def given_rewards(values):
    return lambda completions, **kwargs: list(values)


@pytest.mark.parametrize(
    ("rewards", "settings", "expected"),
    [
        ([[1.0, 0.0, 0.5, 0.49]], {}, [1, 0, 1, 0]),
        ([[1.0, None, 0.0, None]], {}, [1, 0, 0, 0]),
        ([[1.0, None, 0.0, None]], {"correct_threshold": 0.0}, [1, 0, 1, 0]),  # without a reward: never right
        ([[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, None, 1.0]], {"correct_threshold": 2.0}, [1, 0, 0, 0]),
        (
            [[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, None, 1.0]],
            {"reward_weights": [0.5, 2.0], "correct_threshold": 2.0},
            [1, 0, 0, 1],
        ),
    ],
)
def test_what_is_right(build, chain, rewards, settings, expected):
    functions = [given_rewards(values) for values in rewards]
    for number, function in enumerate(functions):
        function.__name__ = f"reward{number}"
    trainer, _ = build(functions, **settings)
    trainer.model.train()
    batch = trainer._generate_and_score_completions([chain[0]] * 4)
    assert batch["advantages"].tolist() == expected
    assert trainer._metrics["train"]["rft/right"] == [sum(expected) / 4]


@pytest.mark.parametrize(
    ("values", "weight", "threshold"),
    [({}, 1.0, 0.5), ({"right": 10}, 1.0, 5.0), ({"right": 0.4}, 1.0, 0.2), ({"right": 10, "wrong": -2}, 0.1, 0.4)],
)
def test_the_values_of_accuracy_say_what_is_right(build, values, weight, threshold):
    trainer, _ = build(make_accuracy_reward(**values), reward_weights=[weight])
    assert trainer._threshold == pytest.approx(threshold)


def test_wrong_rows_are_not_passed_and_do_not_move_the_policy(build):
    """Of four rows two are right: the step is that of supervised learning on them, over four rows."""
    trainer, weights = build(
        given_rewards([1.0, 0.0, 0.0, 1.0]), max_steps=1, optim="sgd", learning_rate=1.0, max_grad_norm=0.0
    )
    start = torch.cat([p.detach().flatten() for p in trainer.model.parameters()])
    rows = {}
    score = trainer._generate_and_score_completions
    passed = []
    forward = trainer._get_per_token_logps_and_entropies

    def keep(inputs):
        rows.update(score(inputs))
        return rows

    def count(model, input_ids, *args, **kwargs):
        passed.append(len(input_ids))
        return forward(model, input_ids, *args, **kwargs)

    trainer._generate_and_score_completions = keep
    trainer._get_per_token_logps_and_entropies = count
    trainer.train()
    assert sum(passed) == 2
    assert trainer.state.log_history[0]["update/rows_left_out"] == 0.5

    model = trainer.model
    with torch.no_grad():
        torch.nn.utils.vector_to_parameters(start, model.parameters())
    model.zero_grad()
    loss = 0.0
    for row in (0, 3):
        real = rows["prompt_mask"][row].bool()
        prompt = rows["prompt_ids"][row][real]
        completion = rows["completion_ids"][row][: int(rows["completion_mask"][row].sum())]
        ids = torch.cat([prompt, completion])[None]
        logps = (model(input_ids=ids).logits[0, :-1].float() / trainer.temperature).log_softmax(-1)
        chosen = logps[len(prompt) - 1 :].gather(1, completion[:, None])
        loss = loss - chosen.mean() / 4
    loss.backward()
    expected = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert ((start - weights.steps[1]) - expected).norm() < 1e-4 * expected.norm()
    assert trainer.state.log_history[0]["loss"] == pytest.approx(loss.item(), rel=1e-4)


def test_a_step_without_a_right_sample_changes_nothing(build):
    trainer, weights = build(given_rewards([0.0] * 4), max_steps=1, weight_decay=0.0)
    start = torch.cat([p.detach().flatten() for p in trainer.model.parameters()])
    trainer.train()
    assert weights.steps[1].equal(start)
    assert trainer.state.log_history[0]["rft/right"] == 0.0


@pytest.mark.parametrize("peft", [False, True])
def test_splits_of_a_step_agree(build, peft):
    """8 x 1, 4 x 2 and 1 x 8, in passes by length and in TRL's micro-batches, on the same first samples."""
    runs = []
    for batch, accumulation, packs in ((8, 1, True), (8, 1, False), (4, 2, True), (1, 8, True), (1, 8, False)):
        trainer, weights = build(
            peft=peft, max_steps=1, optim="sgd", learning_rate=0.05, per_device_train_batch_size=batch,
            gradient_accumulation_steps=accumulation, pack_updates=packs,
        )  # fmt: skip
        start = torch.cat([p.detach().flatten() for p in trainer.model.parameters() if p.requires_grad])
        trainer.train()
        runs.append(weights.steps[1] - start)
    assert runs[0].norm() > 1e-4
    for run in runs[1:]:
        assert (run - runs[0]).norm() < 1e-4 * runs[0].norm()


@pytest.mark.parametrize("peft", [False, True])
def test_resume_is_exact(build, tmp_path, peft):
    """With two steps a generation batch, the checkpoint lies inside one."""
    settings = {
        "peft": peft, "steps_per_generation": 2, "per_device_train_batch_size": 4, "save_strategy": "steps",
        "save_steps": 1,
    }  # fmt: skip
    straight, whole = build(output_dir=str(tmp_path / "straight"), max_steps=4, **settings)
    straight.train()
    first, _ = build(output_dir=str(tmp_path / "parts"), max_steps=3, **settings)
    first.train()
    second, part = build(output_dir=str(tmp_path / "parts"), max_steps=4, **settings)
    second.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-3"))
    assert part.steps[4].equal(whole.steps[4])
    assert not whole.steps[4].equal(whole.steps[3])


def test_several_rewards_need_a_threshold(build):
    """With accuracy and format added up, a wrong answer in the right format would reach 0.5."""
    functions = [given_rewards([1.0]), given_rewards([1.0])]
    for name, function in zip(("accuracy", "format"), functions, strict=True):
        function.__name__ = name
    with pytest.raises(ValueError, match="^correct_threshold: missing; accuracy and format are added up"):
        build(functions)
    trainer, _ = build(functions, reward_weights=[1.0, 0.0])  # the second is only logged
    assert trainer._threshold == 0.5


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("beta", 0.04),
        ("num_iterations", 2),
        ("loss_type", "dapo"),
        ("importance_sampling_level", "sequence"),
        ("delta", 2.0),
        ("top_entropy_quantile", 0.5),
        ("off_policy_mask_threshold", 0.5),
        ("multi_objective_aggregation", "normalize_then_sum"),
    ],
)
def test_contradictions_are_refused_by_name(common, key, value):
    with pytest.raises(ValueError, match=f"^{key}: online_rft"):
        OnlineRFTConfig(**common, **{key: value})
