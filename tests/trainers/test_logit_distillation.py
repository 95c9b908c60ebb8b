"""Distillation from stored log-probs: the loss by its definition, and supervised fine-tuning as its limit."""

import gc
import weakref

import pytest
import torch
from distillation_tools import TINY, UNTRAINED, gradients_of_a_step, losses, padded_copy
from transformers import AutoModelForCausalLM
from trl import SFTTrainer

from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.errors import UserError
from trl_reasoning.losses import distillation_divergence
from trl_reasoning.trainers import (
    LogitDistillationConfig,
    LogitDistillationTrainer,
    ReasoningSFTConfig,
    ReasoningSFTTrainer,
    _stored_logits,
)


DATA = make_chain_dataset(size=8, operands=(2, 4))


@pytest.fixture
def settings(common) -> dict:
    return {
        **common,
        "per_device_train_batch_size": 4,
        "learning_rate": 1e-3,
        "lr_scheduler_type": "constant",
        "max_steps": 1,
    }


@pytest.fixture
def build(tiny, settings):
    """A trainer of the tiny model with an untrained teacher of all tokens, four rows a step."""

    def build(data=DATA, model=None, eval_dataset=None, peft_config=None, **changes):
        teacher = {"teacher_model_name_or_path": UNTRAINED, "teacher_top_k": 200}
        return LogitDistillationTrainer(
            model=model or tiny,
            args=LogitDistillationConfig(**{**settings, **teacher, **changes}),
            train_dataset=data,
            eval_dataset=eval_dataset,
            peft_config=peft_config,
        )

    return build


def first_batch(trainer) -> dict:
    return next(iter(trainer.get_train_dataloader()))


def logits_of(model, batch, width: int) -> torch.Tensor:
    """(C, V) before each token in the loss."""
    with torch.no_grad():
        logits = model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, :-1, :width]
    return logits[batch["labels"][:, 1:] != -100]


@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_with_all_tokens_stored_the_loss_is_the_full_divergence(build, weight):
    trainer = build(ce_weight=weight)
    trainer.model.train()
    batch = first_batch(trainer)
    teacher = AutoModelForCausalLM.from_pretrained(resolve_model(UNTRAINED)).eval()
    student_logits, teacher_logits = (logits_of(model, batch, 104) for model in (trainer.model, teacher))
    labels = batch["labels"][batch["labels"] != -100]
    divergence = distillation_divergence(student_logits, teacher_logits, 0.0).mean().item()
    cross_entropy = torch.nn.functional.cross_entropy(student_logits, labels).item()
    expected = (1 - weight) * divergence + weight * cross_entropy
    assert trainer.compute_loss(trainer.model, batch).item() == pytest.approx(expected, rel=1e-3)
    logged = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    assert logged["divergence"] == pytest.approx(divergence, rel=1e-3)
    assert logged["cross_entropy"] == pytest.approx(cross_entropy, rel=1e-4)
    assert logged["num_tokens"] == batch["attention_mask"].sum().item()


def test_cross_entropy_alone_is_supervised_fine_tuning(build, settings, tiny, tmp_path):
    """Same losses, weights and metrics as the method `sft`, over two steps of two micro-batches."""
    changes = {"max_steps": 2, "gradient_accumulation_steps": 2, "per_device_train_batch_size": 2}
    ours = build(ce_weight=1.0, **changes)
    ours.train()
    config = ReasoningSFTConfig(**{**settings, **changes, "output_dir": str(tmp_path / "sft")})
    theirs = ReasoningSFTTrainer(model=tiny, args=config, train_dataset=DATA)
    theirs.train()
    for name, weight in ours.model.named_parameters():
        # A gradient of nearly zero makes a step of up to the learning rate, in the direction of its rounding.
        torch.testing.assert_close(weight, theirs.model.get_parameter(name), rtol=1e-3, atol=1e-4)
    for mine, other in zip(ours.state.log_history[:2], theirs.state.log_history[:2], strict=True):
        assert mine.keys() - other.keys() == {"divergence", "cross_entropy"} and other.keys() <= mine.keys()
        for key in ("loss", "entropy", "mean_token_accuracy", "num_tokens", "grad_norm"):
            assert mine[key] == pytest.approx(other[key], rel=1e-3), key


def test_accumulation_changes_nothing(build):
    found = [
        gradients_of_a_step(build(per_device_train_batch_size=rows, gradient_accumulation_steps=4 // rows))
        for rows in (4, 2, 1)
    ]
    for other in found[1:]:
        for name, gradient in found[0].items():
            torch.testing.assert_close(other[name], gradient, rtol=1e-3, atol=1e-6)


def test_the_teacher_is_gone_before_the_student_is_loaded(build, monkeypatch):
    teachers, at_student = [], []
    load, init = _stored_logits.load_teacher, SFTTrainer.__init__

    def remember(args):
        teacher = load(args)
        teachers.append(weakref.ref(teacher))
        return teacher

    def check(self, *args, **kwargs):
        gc.collect()
        at_student.append([teacher() for teacher in teachers])
        init(self, *args, **kwargs)

    monkeypatch.setattr(_stored_logits, "load_teacher", remember)
    monkeypatch.setattr(SFTTrainer, "__init__", check)
    build()
    assert at_student == [[None]]
    build()  # the store is there, and no teacher is loaded again
    assert at_student == [[None], [None]]


def test_stored_rows_need_no_teacher(build, tmp_path):
    stored = build().train_dataset.with_format(None)
    trainer = build(stored, teacher_model_name_or_path=None, output_dir=str(tmp_path / "other"), shuffle_dataset=False)
    assert trainer.train_dataset.with_format(None).to_list() == stored.to_list()
    assert not (tmp_path / "other" / "teacher_logits").exists()


def test_rows_without_log_probs_need_a_teacher(build):
    with pytest.raises(UserError, match=r"teacher_model_name_or_path: missing; the rows hold no log-probs"):
        build(teacher_model_name_or_path=None)


def test_a_temperature_needs_the_rest(build):
    """The teacher itself as the student has no divergence at 4, either; rows that cannot say so are refused."""
    options = {"teacher_model_name_or_path": TINY, "teacher_top_k": 2, "temperature": 4.0}
    trainer = build(eval_dataset=DATA.select(range(3)), **options)
    assert trainer.evaluate()["eval_divergence"] == pytest.approx(0.0, abs=1e-4)
    with pytest.raises(UserError, match=r"temperature: 4\.0 needs the column `rest_logps`"):
        build(trainer.train_dataset.remove_columns("rest_logps"), **options)


def test_an_evaluation_set_gets_its_own_store(build, tmp_path):
    trainer = build(eval_dataset=DATA.select(range(3)), teacher_model_name_or_path=TINY)
    assert trainer.evaluate()["eval_divergence"] == pytest.approx(0.0, abs=1e-3)
    assert (tmp_path / "out" / "teacher_logits_eval" / "meta.json").exists()


def test_rows_are_cut_with_their_log_probs(build, tokenizer):
    """Stored whole, trained on their first 14 tokens; rows whose reply begins later are left out."""
    whole = build().train_dataset
    trainer = build(whole, max_length=14)
    batch = trainer.data_collator([trainer.train_dataset[index] for index in range(2)])
    assert batch["input_ids"].shape[1] == 14
    assert len(batch["top_ids"]) == len(batch["top_logps"]) == (batch["labels"] != -100).sum()
    first = trainer.train_dataset[0]
    count = int((batch["labels"][0] != -100).sum())
    assert batch["top_ids"][:count].tolist() == first["top_ids"][:count].tolist()
    with pytest.raises(UserError, match="max_length: the loss of all 8 rows begins beyond 3 tokens"):
        build(whole, max_length=3)


def test_a_student_with_padding_rows_keeps_them(build, tmp_path):
    trainer = build(model=padded_copy(tmp_path / "wide", 128), output_dir=str(tmp_path / "out2"))
    trainer.train()
    trainer.save_model()
    assert losses(trainer)[1] > 0
    saved = AutoModelForCausalLM.from_pretrained(tmp_path / "out2")
    assert saved.get_output_embeddings().weight.shape[0] == 128
