"""Kimi k1.5: its loss on worked numbers, its iterations, and what it refuses."""

import copy
import math

import pytest
import torch
from peft import LoraConfig
from transformers import TrainerCallback

from trl_reasoning.trainers import KimiConfig, KimiTrainer


# r (1, 0, 0, 1) and the log-ratios (0.2, -0.1, 0.3, -0.4), spread over their rows' tokens; the last column is padding.
ADVANTAGES = [0.5, -0.5, -0.5, 0.5]
LOG_RATIOS = torch.tensor([[0.3, -0.1, 0.0, 9.0], [-0.1, 0.0, 0.0, 9.0], [0.1, 0.1, 0.1, 9.0], [-0.5, 0.1, 0.0, 9.0]])
MASK = torch.tensor([[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 0, 0]])
RESIDUALS = {0.5: [0.4, -0.45, -0.65, 0.7], 0.1: [0.48, -0.49, -0.53, 0.54]}


@pytest.fixture
def settings(common) -> dict:
    """Iterations of two updates on one batch of four completions."""
    return {
        **common,
        "num_generations": 4,
        "per_device_train_batch_size": 4,
        "num_iterations": 2,
        "max_completion_length": 12,
        "temperature": 1.5,
        "learning_rate": 1e-3,
        "lr_scheduler_type": "constant",
    }


def lora() -> LoraConfig:
    return LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")


def logs(trainer, key: str) -> list:
    return [log[key] for log in trainer.state.log_history if key in log]


def worked_example(trainer, scale: float = 1.0, **more):
    """The loss of the example's batch, and the log-probs that it is a function of."""
    logps = (LOG_RATIOS - 2.0).requires_grad_()
    trainer._get_per_token_logps_and_entropies = lambda *args, **kwargs: (logps, torch.zeros_like(logps), None)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = scale
    batch = {
        "prompt_ids": torch.ones(4, 1, dtype=torch.long),
        "prompt_mask": torch.ones(4, 1, dtype=torch.long),
        "completion_ids": torch.ones(4, 4, dtype=torch.long),
        "completion_mask": MASK,
        "advantages": torch.tensor(ADVANTAGES),
        "old_per_token_logps": torch.full_like(LOG_RATIOS, -2.0),
        "num_items_in_batch": torch.tensor(8),
        **more,
    }
    return trainer._compute_loss(trainer.model, batch), logps


@pytest.mark.parametrize(("tau", "loss", "scale"), [(0.5, 0.31875, 1.0), (0.1, 1.30375, 1.0), (0.5, 0.31875, 2.0)])
def test_loss_and_gradient_on_the_worked_example(make, settings, tau, loss, scale):
    found, logps = worked_example(make(KimiTrainer, KimiConfig(**settings, tau=tau)), scale)
    assert found.item() == pytest.approx(loss / scale, abs=1e-5)
    found.backward()
    by_row = -torch.tensor(RESIDUALS[tau]) / (4 * scale)
    assert torch.allclose(logps.grad, by_row.unsqueeze(1) * MASK, atol=1e-6)


def test_the_correction_for_vllm_weighs_whole_completions(make, settings):
    ratio = torch.tensor([[1.0], [0.0], [0.5], [2.0]])
    trainer = make(KimiTrainer, KimiConfig(**settings, tau=0.5))
    found, _ = worked_example(trainer, importance_sampling_ratio=ratio)
    # 0.4^2 x 1, 0.45^2 x 0, 0.65^2 x 0.5 and 0.7^2 x 2 over four rows; 2 tau is 1
    assert found.item() == pytest.approx((0.16 + 0.21125 + 0.98) / 4, abs=1e-5)


def test_the_first_step_does_not_depend_on_tau(make, settings):
    steps = []
    for tau in (0.01, 10.0):
        trainer = make(KimiTrainer, KimiConfig(**settings, tau=tau, max_steps=2))
        trainer.train()
        steps.append(logs(trainer, "grad_norm"))
        assert logs(trainer, "kimi/log_ratio_abs_max")[0] == 0.0
        assert logs(trainer, "kimi/log_ratio_abs_max")[1] > 0.0
    assert steps[0][0] == pytest.approx(steps[1][0], rel=1e-5)
    assert steps[0][1] != pytest.approx(steps[1][1], rel=1e-2)


class Recorder(KimiTrainer):
    """Keeps the policy that each iteration starts with, and what every pass takes for the reference."""

    def __init__(self, *args, **kwargs):
        self.starts, self.passes = [], []
        super().__init__(*args, **kwargs)

    def _generate_and_score_completions(self, inputs):
        if self.is_reference_due():
            self.starts.append(copy.deepcopy(self.model))
        return super()._generate_and_score_completions(inputs)

    def policy_loss(self, tokens):
        own = tokens.batch["ref_per_token_logps"] if self.renews_reference else tokens.old_per_token_logps
        kept = {key: tokens.batch[key] for key in ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")}
        self.passes.append((self.state.global_step, len(self.starts) - 1, own * tokens.mask, tokens.mask, kept))
        return super().policy_loss(tokens)


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("peft", [False, True])
@pytest.mark.filterwarnings("ignore:batches_per_iteration")
def test_the_reference_is_the_policy_that_the_iteration_started_with(
    tiny, chain, length_reward, settings, batches, peft
):
    config = KimiConfig(
        **{**settings, "per_device_train_batch_size": 2, "steps_per_generation": 2, "learning_rate": 1e-2},
        batches_per_iteration=batches,
        max_steps=8 * batches,
    )
    peft_config = lora() if peft else None
    trainer = Recorder(
        model=tiny, args=config, reward_funcs=[length_reward], train_dataset=chain, peft_config=peft_config
    )
    trainer.train()
    assert logs(trainer, "kimi/iteration") == [0.0] * batches + [1.0] * batches
    assert {step // (4 * batches) for step, *_ in trainer.passes} == {0, 1}
    drifts = []
    for step, iteration, reference, mask, kept in trainer.passes:
        assert iteration == step // (4 * batches)
        expected = []
        for start in trainer.starts:
            logps, _, _ = trainer._get_per_token_logps_and_entropies(
                start,
                torch.cat([kept["prompt_ids"], kept["completion_ids"]], dim=1),
                torch.cat([kept["prompt_mask"], kept["completion_mask"]], dim=1),
                mask.size(1),
            )
            expected.append(logps.detach() * mask)
        assert torch.allclose(reference, expected[iteration], atol=1e-4)
        drifts.append((expected[0] - expected[1]).abs().max().item())
    assert max(drifts) > 1e-2  # the two references can be told apart


@pytest.mark.filterwarnings("ignore:batches_per_iteration")
def test_only_the_first_batch_of_an_iteration_is_the_same_with_more_batches(make, settings):
    losses = {}
    for batches in (1, 2):
        config = KimiConfig(**settings, batches_per_iteration=batches, reset_optimizer=False, max_steps=4)
        trainer = make(KimiTrainer, config)
        trainer.train()
        losses[batches] = logs(trainer, "loss")
    assert losses[1][:2] == pytest.approx(losses[2][:2], abs=1e-5)
    assert losses[1][2] != pytest.approx(losses[2][2], abs=1e-3)


class OptimizerSteps(TrainerCallback):
    """The step that Adam believes to be at before each of its steps, and the learning rate."""

    def __init__(self):
        self.seen, self.rates = [], []

    def on_pre_optimizer_step(self, args, state, control, optimizer=None, **kwargs):
        states = [state for state in optimizer.state.values() if state]
        self.seen.append(max((int(state["step"]) for state in states), default=0))
        self.rates.append(optimizer.param_groups[0]["lr"])


@pytest.mark.parametrize("peft", [False, True])
@pytest.mark.parametrize(("reset", "expected"), [(True, [0, 1, 0, 1, 0]), (False, [0, 1, 2, 3, 4])])
def test_the_optimizer_starts_anew_at_each_iteration(tiny, chain, length_reward, settings, peft, reset, expected):
    record = OptimizerSteps()
    trainer = KimiTrainer(
        model=tiny,
        args=KimiConfig(**{**settings, "lr_scheduler_type": "linear"}, max_steps=5, reset_optimizer=reset),
        reward_funcs=[length_reward],
        train_dataset=chain,
        peft_config=lora() if peft else None,
        callbacks=[record],
    )
    trainer.train()
    assert record.seen == expected
    assert record.rates == pytest.approx([1e-3 * (5 - step) / 5 for step in range(5)])  # the schedule goes on


def test_rows_without_advantage_are_left_out_until_they_have_moved(make, settings, chain):
    """A group of equal rewards has nothing to learn from, and is pulled back once another group has moved it."""
    config = KimiConfig(**{**settings, "per_device_train_batch_size": 8}, max_steps=2)
    trainer = make(KimiTrainer, config, lambda completions, **kwargs: [1.0, 0.0, 1.0, 0.0] + [1.0] * 4)
    trainer.train()
    assert logs(trainer, "update/rows_left_out") == [0.5, 0.0]


def test_unscorable_rows_are_out_of_the_baseline_and_do_not_move(make, settings, chain):
    config = KimiConfig(**settings, max_steps=2)
    trainer = make(KimiTrainer, config, lambda completions, **kwargs: [1.0, 0.0, 0.0, None])
    trainer.model.train()
    trainer.create_optimizer()
    batch = trainer._generate_and_score_completions([chain[0]] * 4)
    assert batch["advantages"][:3].tolist() == pytest.approx([2 / 3, -1 / 3, -1 / 3])
    assert math.isnan(batch["advantages"][3])
    batch["old_per_token_logps"] = torch.zeros_like(batch["completion_mask"], dtype=torch.float)
    assert trainer.has_gradient(batch).tolist() == [True, True, True, False]
    trainer.train()
    assert all(math.isfinite(value) for value in logs(trainer, "grad_norm") + logs(trainer, "loss"))


def test_the_log_ratio_of_unscorable_rows_is_not_logged(make, settings):
    """What stands in for their reference is no policy's log-prob."""
    trainer = make(KimiTrainer, KimiConfig(**settings))
    worked_example(trainer, advantages=torch.tensor([0.5, -0.5, -0.5, math.nan]))
    assert trainer._metrics["train"]["kimi/log_ratio"] == pytest.approx([(0.2 - 0.1 + 0.3 + 0.0) / 4])


def test_log_mean_exp_baseline(make, settings, chain):
    rewards = [1.0, 0.0, 0.0, 1.0]
    config = KimiConfig(**settings, tau=0.5, baseline="log_mean_exp")
    trainer = make(KimiTrainer, config, lambda completions, **kwargs: rewards)
    trainer.model.train()
    trainer.create_optimizer()
    batch = trainer._generate_and_score_completions([chain[0]] * 4)
    assert batch["advantages"].tolist() == pytest.approx([reward - 0.716890 for reward in rewards], abs=1e-6)


def test_accumulation_changes_nothing(make, settings):
    """Updates of eight rows, two an iteration, however the rows are split."""
    runs = []
    for rows, accumulation in ((8, 1), (4, 2), (1, 8)):
        config = KimiConfig(
            **{**settings, "num_iterations": 1, "per_device_train_batch_size": rows},
            gradient_accumulation_steps=accumulation,
            steps_per_generation=2 * accumulation,
            max_steps=3,
        )
        trainer = make(KimiTrainer, config)
        trainer.train()
        runs.append([*logs(trainer, "loss"), *logs(trainer, "grad_norm")])
    assert runs[1] == pytest.approx(runs[0], rel=1e-4, abs=1e-5)
    assert runs[2] == pytest.approx(runs[0], rel=1e-4, abs=1e-5)
