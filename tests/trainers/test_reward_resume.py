"""A resumed run of a reward model is the uninterrupted one."""

import pytest
import torch
from reward_tools import logged, lora, make_trainer, rankings


@pytest.mark.parametrize("peft", [False, True], ids=["full", "lora"])
def test_resume_is_exact(tiny, common, tmp_path, peft):
    def run(folder: str, checkpoint: str | None = None):
        trainer = make_trainer(
            tiny,
            {**common, "output_dir": str(tmp_path / folder), "save_strategy": "steps"},
            rankings([2, 4, 3, 2, 5, 3]),
            save_steps=1,
            max_steps=4,
            per_device_train_batch_size=2,
            learning_rate=1e-3,
            peft_config=lora(lora_dropout=0.1) if peft else None,
        )
        trainer.train(resume_from_checkpoint=checkpoint)
        weights = torch.cat([p.detach().flatten() for p in trainer.model.parameters()])
        return logged(trainer, "loss", "grad_norm", "accuracy", "mean_reward"), weights

    numbers, weights = run("straight")
    assert len(numbers) == 4
    for step in (2, 3):  # in the first epoch of three steps, and at its end
        again, weights_again = run(f"from{step}", str(tmp_path / "straight" / f"checkpoint-{step}"))
        for found, row in zip(again, numbers, strict=True):
            assert found == pytest.approx(row, rel=1e-4, abs=1e-5)
        assert torch.allclose(weights_again, weights, atol=1e-6)
