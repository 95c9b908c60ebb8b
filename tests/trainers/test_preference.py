"""What the preference trainers share: ways of training, accumulation, short replies, the alarm."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from peft import PeftModel
from preference_tools import OWN_METRICS, STEMS, log_of, lora, make_trainer, pairs, weights_of
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from trl_reasoning.errors import UserError


@pytest.fixture
def start_adapter(tiny, tmp_path) -> str:
    """A saved adapter that is not the base: its second matrix is not 0."""
    torch.manual_seed(0)
    model = PeftModel(AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32), lora())
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight += 0.05 * torch.randn_like(weight)
    model.save_pretrained(tmp_path / "start")
    return str(tmp_path / "start")


@pytest.mark.parametrize("stem", STEMS)
def test_it_goes_on_from_a_saved_adapter(tiny, common, start_adapter, tmp_path, stem):
    base = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
    trainer = make_trainer(stem, PeftModel.from_pretrained(base, start_adapter, is_trainable=True), common)
    trainer.train()
    first, second = log_of(trainer)
    if stem == "simpo":
        assert set(trainer.model.peft_config) == {"default"}
    else:  # the reference is the start adapter, not the base
        assert first["rewards/margins"] == pytest.approx(0.0, abs=1e-6)
        assert second["rewards/margins"] != 0.0
    trainer.save_model(str(tmp_path / "saved"))
    assert not (tmp_path / "saved" / "ref").exists()
    saved, start = (load_file(f"{folder}/adapter_model.safetensors") for folder in (tmp_path / "saved", start_adapter))
    assert saved.keys() == start.keys()
    assert any(not saved[name].equal(start[name]) for name in saved)


@pytest.mark.parametrize("stem", STEMS)
def test_on_a_4_bit_base(tiny, common, stem):
    pytest.importorskip("bitsandbytes", reason="bitsandbytes (extra `quantization`) is not installed")
    quantization = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
    trainer = make_trainer(stem, tiny, common, peft=True, trainer={"quantization_config": quantization})
    assert {weight.dtype for weight in weights_of(trainer).values()} == {torch.float32}
    trainer.train()
    assert all(math.isfinite(row["loss"]) and row["grad_norm"] > 0 for row in log_of(trainer))
    if stem != "simpo":
        assert log_of(trainer)[0]["rewards/margins"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.filterwarnings("ignore:`gradient_checkpointing_:FutureWarning")  # TRL 1.16 calls the older names
@pytest.mark.parametrize("stem", STEMS)
def test_activation_checkpointing_changes_nothing(tiny, common, stem):
    rows = []
    for is_on in (False, True):
        settings = {**common, "activation_checkpointing": is_on}
        trainer = make_trainer(stem, tiny, settings, peft=True)
        trainer.train()
        rows.append(log_of(trainer)[1])
    assert rows[0] == pytest.approx(rows[1], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("stem", STEMS)
def test_accumulation_has_the_gradient_of_the_whole_batch(tiny, common, stem):
    """A step of plain SGD moves the weights by their gradient."""
    moved, logs = [], []
    for rows in (1, 2, 3, 4):  # with 3 the last micro-batch holds one pair
        trainer = make_trainer(
            stem,
            tiny,
            common,
            data=pairs(4),
            per_device_train_batch_size=rows,
            gradient_accumulation_steps=-(-4 // rows),
            max_steps=1,
            optim="sgd",
            learning_rate=1.0,
            max_grad_norm=0.0,
            **({"sft_weight": 0.5} if stem == "simpo" else {}),
        )
        start = weights_of(trainer)
        trainer.train()
        moved.append({name: weight - start[name] for name, weight in weights_of(trainer).items()})
        logs.append(log_of(trainer)[0])
    assert max(change.abs().max() for change in moved[0].values()) > 1e-3
    for other, log in zip(moved[1:], logs[1:], strict=True):
        for name, change in other.items():
            torch.testing.assert_close(change, moved[0][name], rtol=1e-3, atol=2e-6)
        assert {key: log[key] for key in OWN_METRICS} == pytest.approx(
            {key: logs[0][key] for key in OWN_METRICS}, rel=1e-5
        )


@pytest.mark.parametrize("stem", STEMS)
def test_an_evaluation_counts_each_pair_once(tiny, common, stem):
    """Five pairs in batches of four and one, or each alone: the same means."""
    data = pairs(5)
    found = []
    for rows in (5, 4, 1):
        trainer = make_trainer(
            stem, tiny, common, data=data, per_device_eval_batch_size=rows, trainer={"eval_dataset": data},
            **({"ld_alpha": 0.5} if stem == "dpo" else {}),
        )  # fmt: skip
        with torch.no_grad():  # away from the reference
            trainer.model.model.norm.weight.mul_(1.2)
        metrics = trainer.evaluate()
        found.append({key: value for key, value in metrics.items() if "_per_second" not in key and "time" not in key})
    assert {"eval_rewards/margins", "eval_logps/chosen_per_token", "eval_entropy", "eval_logits/chosen"} <= set(
        found[0]
    )
    assert found[0]["eval_rewards/margins"] != 0
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("mode", ["empty chosen", "empty rejected", "both empty"])
@pytest.mark.parametrize("stem", STEMS)
def test_replies_without_tokens_give_no_nan(tiny, common, stem, mode):
    trainer = make_trainer(stem, tiny, common)
    rows = [trainer.train_dataset[index] for index in range(2)]
    if mode != "empty rejected":
        rows[0]["chosen_ids"] = []
    if mode != "empty chosen":
        rows[0]["rejected_ids"] = []
    trainer.model.train()
    for batch in (rows, rows[:1]):
        loss = trainer._compute_loss(trainer.model, trainer.data_collator(batch), False)
        loss.backward()
        assert math.isfinite(loss.item())
    assert all(weight.grad.isfinite().all() for weight in trainer.model.parameters())
    metrics = trainer._metrics["train"]
    assert all(math.isfinite(value) for values in metrics.values() for value in values)
    # A reply without tokens has no average; the other one of the first batch has.
    alone = make_trainer(stem, tiny, common)
    alone._compute_loss(alone.model.train(), alone.data_collator(rows[1:]), False)
    is_missing = {"empty chosen": ("chosen",), "empty rejected": ("rejected",), "both empty": ("chosen", "rejected")}
    for who in ("chosen", "rejected"):
        name = f"logps/{who}_per_token"
        (found,), (expected,) = metrics[name], alone._metrics["train"][name]
        assert (found == pytest.approx(expected, rel=1e-4)) == (who in is_missing[mode])


@pytest.mark.parametrize("stem", STEMS)
def test_rows_whose_prompt_fills_max_length_are_left_out(tiny, common, stem, caplog):
    data: Any = pairs(8, operands=(2, 3), length_bias=0.0).select_columns(["prompt", "chosen", "rejected"])
    long = {**data[0], "prompt": [{"role": "user", "content": "1+1+1+1+1=?"}]}
    rows = Dataset.from_list([*data, long])
    whole = make_trainer(stem, tiny, common, data=rows)
    sizes = sorted(len(ids) for ids in whole.train_dataset["prompt_ids"])
    trainer = make_trainer(stem, tiny, common, data=rows, max_length=sizes[-2] + 1, logging_steps=1)
    assert f"1 of 9 train rows are left out, their prompts fill {sizes[-2] + 1} tokens" in caplog.text
    assert len(trainer.train_dataset) == 8
    trainer.train()
    assert all(math.isfinite(value) for row in log_of(trainer) for value in row.values())
    assert log_of(trainer)[0]["lengths/chosen"] < 4
    with pytest.raises(UserError, match="max_length: every prompt of the train rows fills 4 tokens"):
        make_trainer(stem, tiny, common, data=rows, max_length=4)


def falling(tiny, common, **settings):
    """A trainer that goes uphill: plain SGD makes the preferred replies less likely at every step."""
    settings = {"max_steps": 24, "optim": "sgd", "learning_rate": 3e-2, "beta": 1.0, **settings}
    trainer = make_trainer("dpo", tiny, common, data=pairs(4), **settings)
    inner = trainer._compute_loss
    trainer._compute_loss = lambda *args: -inner(*args)
    return trainer


def test_a_collapse_stops_the_run_with_a_checkpoint(tiny, common):
    trainer = falling(tiny, {**common, "save_strategy": "steps", "save_steps": 100}, collapse_alarm="stop")
    with pytest.warns(UserWarning, match="LIKELIHOOD COLLAPSE .* raise beta, lower learning_rate or add sft"):
        trainer.train()
    step = trainer.state.global_step
    assert 10 < step < 24
    assert (Path(trainer.args.output_dir) / f"checkpoint-{step}" / "trainer_state.json").is_file()


def test_a_collapse_under_a_floor_of_ones_own_warns_and_goes_on(tiny, common):
    trainer = falling(tiny, common, collapse_floor=-0.01, max_steps=2)
    with pytest.warns(UserWarning, match=r"at step 1: .* floor of -0\.01"):
        trainer.train()
    assert trainer.state.global_step == 2


def test_the_alarm_can_be_off(tiny, common):
    falling(tiny, common, collapse_alarm="off", collapse_floor=-0.01, max_steps=2).train()
