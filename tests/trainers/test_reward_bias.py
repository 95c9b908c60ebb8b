"""The bias: demonstrations score 0 on average after training and after loading; checkpoints have none."""

import json

import pytest
import torch
from datasets import Dataset
from reward_tools import chain_pairs, lora, make_trainer
from safetensors.torch import load_file
from transformers import TrainerCallback

from trl_reasoning.builtin import make_chain_pairs_dataset
from trl_reasoning.generation.reward_model import BIAS_FILE, set_score_bias
from trl_reasoning.generation.scorers import RewardModelScorer


DEMONSTRATIONS = {"path": "builtin:chain_pairs", "size": 7, "columns": {"completion": "chosen"}}


class StopAtOnce(TrainerCallback):
    """Ends training after its first step, as a time limit or a signal does."""

    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop = True


def weights_of(folder, is_peft: bool) -> dict[str, torch.Tensor]:
    return load_file(folder / ("adapter_model.safetensors" if is_peft else "model.safetensors"))


@pytest.mark.parametrize("peft", [False, True], ids=["full", "lora"])
def test_demonstrations_average_0_after_training_and_after_loading(tiny, common, tmp_path, peft):
    settings = {"max_steps": 2, "learning_rate": 1e-2, "per_device_eval_batch_size": 3, "save_strategy": "steps"}
    settings |= {"save_steps": 1, "demonstrations": DEMONSTRATIONS, "peft_config": lora() if peft else None}
    trainer = make_trainer(tiny, common, chain_pairs(), **settings)
    trainer.train()
    assert abs(trainer.score_bias) > 1e-3
    assert trainer._score_demonstrations().mean().item() == pytest.approx(0.0, abs=1e-6)
    trainer.save_model(str(tmp_path / "model"))
    content = json.loads((tmp_path / "model" / BIAS_FILE).read_text())
    assert content == {"bias": trainer.score_bias, "demonstrations": 7}
    names = weights_of(tmp_path / "model", peft).keys()
    assert any(name.endswith("score.weight") for name in names)
    assert not any(name.endswith("score.bias") for name in names)
    # The bias does not move the model in memory, and a new one is not added to the old one.
    assert trainer._score_demonstrations().mean().item() == pytest.approx(0.0, abs=1e-6)
    bias = trainer.score_bias
    trainer.centre_scores()
    assert trainer.score_bias == pytest.approx(bias, abs=1e-6)

    scorer = RewardModelScorer(str(tmp_path / "model"), dtype="float32")
    demonstrations = make_chain_pairs_dataset(size=7)
    scores = scorer(demonstrations["prompt"], demonstrations["chosen"], [[1]] * 7)
    assert sum(scores) / 7 == pytest.approx(0.0, abs=1e-5)
    assert scores == pytest.approx(trainer._score_demonstrations().tolist(), abs=1e-4)
    assert max(scores) - min(scores) > 1e-3

    checkpoint = tmp_path / "out" / "checkpoint-1"
    assert not (checkpoint / BIAS_FILE).exists()
    assert weights_of(checkpoint, peft).keys() == names
    again = make_trainer(tiny, common, chain_pairs(), **settings)
    again.train(resume_from_checkpoint=str(checkpoint))
    assert again.score_bias == pytest.approx(trainer.score_bias, abs=1e-5)


def test_a_shift_of_all_scores_changes_no_loss(tiny, common):
    trainer = make_trainer(tiny, common, chain_pairs(4))
    batch = trainer.data_collator([trainer.train_dataset[row] for row in range(4)])
    losses, means = [], []
    for bias in (None, 3.0, None):
        set_score_bias(trainer.model, bias)
        with torch.no_grad():
            losses.append(trainer.compute_loss(trainer.model.eval(), batch).item())
        means += trainer._metrics["eval"].pop("mean_reward")
        trainer._totals.clear("eval")
    assert losses[1:] == pytest.approx([losses[0]] * 2, abs=1e-5)
    assert means[1] == pytest.approx(means[0] + 3.0, abs=1e-5) and means[2] == pytest.approx(means[0])


def test_a_run_that_stopped_early_is_centred_when_it_is_saved(tiny, common, tmp_path):
    rows = Dataset.from_dict({"messages": [row["prompt"] + row["chosen"] for row in chain_pairs(3)]})
    trainer = make_trainer(tiny, common, chain_pairs(), max_steps=4, demonstrations=rows)
    trainer.add_callback(StopAtOnce())
    trainer.train()
    assert trainer.state.global_step == 1 and trainer.score_bias is None
    trainer.save_model(str(tmp_path / "model"))
    scorer = RewardModelScorer(str(tmp_path / "model"), dtype="float32")
    scores = scorer(chain_pairs(3)["prompt"], chain_pairs(3)["chosen"], [[1]] * 3)
    assert sum(scores) / 3 == pytest.approx(0.0, abs=1e-5)


def test_a_run_without_demonstrations_leaves_no_bias_behind(tiny, common, tmp_path):
    (tmp_path / BIAS_FILE).write_text('{"bias": 1.0}')
    trainer = make_trainer(tiny, common, chain_pairs(), max_steps=1)
    trainer.train()
    trainer.save_model(str(tmp_path))
    assert trainer.score_bias is None and not (tmp_path / BIAS_FILE).exists()
