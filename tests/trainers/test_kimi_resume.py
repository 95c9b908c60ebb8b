"""A resumed run of Kimi k1.5 is the uninterrupted one: inside an iteration, at its boundary, with several batches."""

import pytest
import torch
from peft import LoraConfig

from trl_reasoning.trainers import KimiConfig, KimiTrainer


STEPS = 6


@pytest.fixture
def train(tiny, chain, length_reward, common, tmp_path):
    """Trains to step 6, with a checkpoint a step, and gives the numbers of each step and the final weights."""

    def run(batches: int, peft: bool, resume_at: int | None = None):
        folder = tmp_path / (f"from{resume_at}" if resume_at else "straight")
        config = KimiConfig(
            **{**common, "output_dir": str(folder), "save_strategy": "steps"},
            save_steps=1,
            max_steps=STEPS,
            lr_scheduler_type="linear",
            learning_rate=1e-3,
            num_generations=4,
            per_device_train_batch_size=4,
            steps_per_generation=2,
            num_iterations=1 if batches > 1 else 2,
            batches_per_iteration=batches,
            max_completion_length=12,
            temperature=1.5,
        )
        trainer = KimiTrainer(
            model=tiny,
            args=config,
            reward_funcs=[type(length_reward)()],
            train_dataset=chain,
            peft_config=LoraConfig(r=4, target_modules="all-linear", lora_dropout=0.1) if peft else None,
        )
        checkpoint = str(tmp_path / "straight" / f"checkpoint-{resume_at}") if resume_at else None
        trainer.train(resume_from_checkpoint=checkpoint)
        keys = ("loss", "grad_norm", "kimi/log_ratio", "kimi/log_ratio_abs_max")
        numbers = {log["step"]: [log[key] for key in keys] for log in trainer.state.log_history if "loss" in log}
        weights = {name: value.detach().clone() for name, value in trainer.model.named_parameters()}
        return numbers, weights

    return run


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("peft", [False, True])
@pytest.mark.filterwarnings("ignore:batches_per_iteration")
def test_resume_is_exact(train, batches, peft):
    """Iterations of four updates. Step 4 is a boundary; with two batches, step 2 lies between them."""
    numbers, weights = train(batches, peft)
    assert len(numbers) == STEPS
    for resume_at in (2, 3, 4):
        again, weights_again = train(batches, peft, resume_at)
        assert list(again) == list(numbers)
        for step in range(resume_at + 1, STEPS + 1):
            assert again[step] == pytest.approx(numbers[step], rel=1e-4, abs=1e-5), (resume_at, step)
        for name, value in weights.items():
            assert torch.allclose(weights_again[name], value, atol=1e-6), (resume_at, name)
    # The log-ratios start at 0 in each iteration, and only there.
    assert [step for step in numbers if numbers[step][3] < 1e-4] == [1, 5]
