"""The packed update takes TRL's optimizer steps: the same gradients from the same rollouts, with less computed."""

import pytest
import torch
from peft import LoraConfig
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.trainers import ReasoningGRPOConfig, ReasoningGRPOTrainer


LOSS_TYPES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo")


class Gradients(TrainerCallback):
    """The accumulated gradient of each optimizer step, as one vector."""

    def __init__(self):
        self.steps = []

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        trained = [parameter for _, parameter in sorted(model.named_parameters()) if parameter.requires_grad]
        assert all(parameter.grad is not None for parameter in trained)
        self.steps.append(torch.cat([parameter.grad.flatten() for parameter in trained]))


def half_right(completions, completion_ids, **kwargs):
    """Every other group has no spread of rewards."""
    groups = [row // 4 for row in range(len(completions))]
    return [1.0 if group % 2 else float(sum(ids) % 5) for group, ids in zip(groups, completion_ids, strict=True)]


def train(trainer_class, config_class, folder, reward=half_right, peft=None, prepare=None, **settings):
    """Gradients, logs and the number of rows passed with gradient in a short run."""
    shared = {
        "num_generations": 4,
        "per_device_train_batch_size": 8,
        "max_completion_length": 16,
        "temperature": 1.3,
        "max_steps": 3,
        # Adam's first steps have the size of the rate whatever the gradient, and would blow rounding near 0 up.
        "optim": "sgd",
        "learning_rate": 0.02,
        "lr_scheduler_type": "constant",
        "logging_steps": 1,
        "max_grad_norm": 0.0,
        "use_cpu": True,
        "bf16": False,
        "activation_checkpointing": False,
        "dataloader_pin_memory": False,
        "report_to": [],
        "disable_tqdm": True,
        "save_strategy": "no",
        "disable_dropout": True,
        "beta": 0.0,
        "use_bias_correction_kl": False,
        "loss_type": "grpo",
    }
    gradients = Gradients()
    trainer = trainer_class(
        model=resolve_model("builtin:tiny"),
        args=config_class(output_dir=str(folder), **{**shared, **settings}),
        reward_funcs=[reward],
        train_dataset=make_chain_dataset(size=64, operands=(2, 5)),
        callbacks=[gradients],
        peft_config=peft,
    )
    passes = []
    forward = trainer._get_per_token_logps_and_entropies

    def count(model, input_ids, *args, **kwargs):
        passes.append((tuple(input_ids.shape), torch.is_grad_enabled()))
        return forward(model, input_ids, *args, **kwargs)

    trainer._get_per_token_logps_and_entropies = count
    if prepare:
        prepare(trainer)
    trainer.train()
    return gradients.steps, trainer.state.log_history, passes


def compare(tmp_path, reward=half_right, peft=None, prepare=None, tolerance=1e-5, **settings):
    theirs = train(GRPOTrainer, GRPOConfig, tmp_path, reward, peft, prepare, **settings)
    ours = train(ReasoningGRPOTrainer, ReasoningGRPOConfig, tmp_path, reward, peft, prepare, **settings)
    assert len(ours[0]) == len(theirs[0]) == settings.get("max_steps", 3)
    for our_step, their_step in zip(ours[0], theirs[0], strict=True):
        assert (our_step - their_step).norm() <= tolerance * their_step.norm()
    assert max(step.norm() for step in theirs[0]) > 1e-3
    for our_log, their_log in zip(ours[1][:-1], theirs[1][:-1], strict=True):
        own = {"update/rows_left_out", "update/padding", "update/tokens"}
        if "reward" in their_log:  # a step with new completions
            own |= {"thoughts/missing", "thoughts/asked", f"rewards/{reward.__name__}/skipped"}
        assert set(our_log) - set(their_log) == own
        assert set(their_log) <= set(our_log)
        for name in ("loss", "policy_loss", "reward", "completions/mean_length"):
            if name in their_log:
                assert our_log[name] == pytest.approx(their_log[name], abs=1e-5), name
        if "gradient_accumulation_steps" not in settings:
            # Over several micro-batches TRL averages their numbers; ours are those of the step.
            for name in ("clip_ratio/region_mean", "clip_ratio/high_max"):
                assert our_log[name] == pytest.approx(their_log[name], abs=1e-5), name
    return theirs, ours


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_every_loss_type(tmp_path, loss_type):
    compare(tmp_path, loss_type=loss_type, per_device_train_batch_size=4, gradient_accumulation_steps=4)


@pytest.mark.parametrize(("batch", "accumulation"), [(8, 1), (4, 2), (1, 8)])
@pytest.mark.parametrize("loss_type", ["grpo", "dr_grpo", "dapo"])
def test_accumulation(tmp_path, loss_type, batch, accumulation):
    compare(
        tmp_path,
        loss_type=loss_type,
        per_device_train_batch_size=batch,
        gradient_accumulation_steps=accumulation,
    )


def test_the_last_window_of_an_epoch_may_be_shorter(tmp_path):
    """64 prompts make 32 micro-batches an epoch: 10 steps of 3 and one of 2, which TRL weighs by 2."""
    _, ours = compare(
        tmp_path,
        gradient_accumulation_steps=3,
        steps_per_generation=1,
        max_steps=22,
        max_completion_length=4,
        tolerance=1e-4,
        loss_type="dr_grpo",
    )
    assert ours[1][-1]["epoch"] == 2.0


def test_splits_of_a_step_agree_with_each_other(tmp_path):
    runs = [
        train(
            ReasoningGRPOTrainer,
            ReasoningGRPOConfig,
            tmp_path,
            per_device_train_batch_size=batch,
            gradient_accumulation_steps=8 // batch,
        )[0]
        for batch in (8, 4, 1)
    ]
    for other in runs[1:]:
        for step, reference in zip(other, runs[0], strict=True):
            assert (step - reference).norm() <= 1e-5 * reference.norm()


@pytest.mark.parametrize("peft", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {"num_iterations": 3},
        {"steps_per_generation": 4},
        {"steps_per_generation": 4, "num_iterations": 2},
        {"steps_per_generation": 2, "gradient_accumulation_steps": 4},
        {"steps_per_generation": 3, "gradient_accumulation_steps": 2},
        {"steps_per_generation": 3, "gradient_accumulation_steps": 4, "num_iterations": 2},
    ],
    ids=str,
)
def test_several_updates_from_one_generation(tmp_path, settings, peft):
    lora = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM") if peft else None
    theirs, ours = compare(tmp_path, peft=lora, per_device_train_batch_size=4, max_steps=6, tolerance=1e-4, **settings)
    their_scoring = [shape for shape, has_gradient in theirs[2] if not has_gradient]
    our_scoring = [shape for shape, has_gradient in ours[2] if not has_gradient and shape]
    assert sum(rows for rows, _ in our_scoring) <= sum(rows for rows, _ in their_scoring)


@pytest.mark.parametrize("peft", [False, True])
def test_kl(tmp_path, peft):
    lora = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM") if peft else None
    settings = {"beta": 0.1, "gradient_accumulation_steps": 2, "num_iterations": 2}
    theirs, ours = compare(tmp_path, peft=lora, tolerance=1e-4, **settings)
    assert ours[1][0]["update/rows_left_out"] == 0  # the KL term moves every row
    assert [log["kl"] for log in ours[1][:-1]] == pytest.approx(
        [log["kl"] for log in theirs[1][:-1]], rel=0.2, abs=1e-6
    )


@pytest.mark.parametrize("loss_type", ["dr_grpo", "dapo"])
def test_entropy_bonus(tmp_path, loss_type):
    _, ours = compare(tmp_path, loss_type=loss_type, entropy_coef=0.01, gradient_accumulation_steps=2)
    assert any(abs(log["policy_loss"]) > 1e-3 for log in ours[1][:-1])
    assert ours[1][0]["update/rows_left_out"] == 0


def test_adaptive_entropy(tmp_path):
    settings = {"use_adaptive_entropy": True, "entropy_target": 0.4, "entropy_coef": 0.01, "entropy_coef_delta": 0.005}
    theirs, ours = compare(tmp_path, gradient_accumulation_steps=2, tolerance=1e-4, **settings)
    assert [log["entropy_coef"] for log in ours[1][:-1]] == [log["entropy_coef"] for log in theirs[1][:-1]]


def test_masked_rows(tmp_path):
    compare(tmp_path, mask_truncated_completions=True, loss_type="dr_grpo", max_completion_length=10)


def test_sequence_ratio(tmp_path):
    compare(tmp_path, importance_sampling_level="sequence", num_iterations=2, tolerance=1e-4)


def test_tool_mask(tmp_path):
    """`env_mask` of a rollout function masks tokens that the policy did not write."""

    def rollout(prompts, trainer):
        prompt_ids = [
            trainer.processing_class.apply_chat_template(prompt, add_generation_prompt=True)["input_ids"]
            for prompt in prompts
        ]
        rows = [[7, 8, 9, 10, 11, 12][: 2 + index % 4] for index in range(len(prompts))]
        masks = [[1, 0, 1, 1, 0, 1][: len(row)] for row in rows]
        return {"prompt_ids": prompt_ids, "completion_ids": rows, "logprobs": None, "env_mask": masks}

    def prepare(trainer):
        trainer.rollout_func = rollout

    compare(tmp_path, prepare=prepare, gradient_accumulation_steps=2)


def test_rows_without_gradient_are_not_passed(tmp_path):
    theirs, ours = compare(tmp_path, per_device_train_batch_size=16, loss_type="dr_grpo")
    assert [shape[0] for shape, has_gradient in theirs[2] if has_gradient] == [16, 16, 16]
    assert sum(shape[0] for shape, has_gradient in ours[2] if has_gradient) <= 24
    assert all(log["update/rows_left_out"] >= 0.5 for log in ours[1][:-1])


def test_a_step_without_any_gradient_still_moves_the_momentum(tmp_path):
    """Rewards without spread after the first step: Adam goes on with its averages, in both trainers."""

    def reward(completions, completion_ids, trainer_state, **kwargs):
        return [float(sum(ids) % 5) if trainer_state.global_step == 0 else 1.0 for ids in completion_ids]

    weights = []

    def prepare(trainer):
        weights.append(trainer.model)

    adam = {"optim": "adamw_torch", "learning_rate": 1e-3, "adam_epsilon": 1e-3}
    compare(tmp_path, reward=reward, prepare=prepare, tolerance=1e-4, **adam)
    theirs, ours = ([parameter.detach() for parameter in model.parameters()] for model in weights)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(theirs, ours, strict=True))


def test_passes_keep_to_the_budget(tmp_path):
    _, ours = compare(tmp_path, per_device_train_batch_size=16, loss_type="dr_grpo")
    budget = train(
        ReasoningGRPOTrainer, ReasoningGRPOConfig, tmp_path, per_device_train_batch_size=16, max_tokens_per_pass=60
    )
    shapes = [shape for shape, has_gradient in budget[2] if has_gradient]
    assert all(rows * width <= 60 for rows, width in shapes)
    assert len(shapes) > len([shape for shape, has_gradient in ours[2] if has_gradient])


def test_switched_off_it_is_trls_split(tmp_path):
    theirs = train(GRPOTrainer, GRPOConfig, tmp_path, gradient_accumulation_steps=2)
    ours = train(
        ReasoningGRPOTrainer, ReasoningGRPOConfig, tmp_path, gradient_accumulation_steps=2, pack_updates=False
    )
    assert ours[2] == theirs[2]
    assert not any(name.startswith("update/") for log in ours[1] for name in log)
    assert set(theirs[1][0]) <= set(ours[1][0])
    for name in ("loss", "entropy", "grad_norm"):
        assert [log[name] for log in ours[1][:-1]] == pytest.approx([log[name] for log in theirs[1][:-1]], abs=1e-5)
