"""On-policy distillation: the loss is the divergence of student and teacher on the student's samples."""

import pytest
import torch
from distillation_tools import TINY, UNTRAINED, gradients_of_a_step, losses, padded_copy
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DistillationConfig, DistillationTrainer

from trl_reasoning.builtin import resolve_model
from trl_reasoning.errors import UserError
from trl_reasoning.losses import distillation_divergence
from trl_reasoning.trainers import ReasoningDistillationConfig, ReasoningDistillationTrainer


WIDTH = 104  # tokens of the tokenizer


@pytest.fixture
def build(tiny, common, chain):
    """A trainer with an untrained student of the tiny teacher, four rows a step, unless told otherwise."""

    def build(model=None, peft_config=None, data=chain, processing_class=None, **settings):
        config = ReasoningDistillationConfig(
            **{
                **common,
                "teacher_model_name_or_path": UNTRAINED,
                "per_device_train_batch_size": 4,
                "max_completion_length": 10,
                "learning_rate": 1e-3,
                "lr_scheduler_type": "constant",
                "max_steps": 1,
                **settings,
            }
        )
        return ReasoningDistillationTrainer(
            model=model or tiny,
            args=config,
            train_dataset=data,
            peft_config=peft_config,
            processing_class=processing_class,
        )

    return build


def loss_by_hand(student, teacher, batch, beta, temperature, width) -> float:
    """The mean divergence over the completions' tokens, from both models' whole logits."""
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    count = batch["completion_ids"].size(1)
    with torch.no_grad():
        logits = [
            model(ids, attention_mask=mask).logits[:, -count - 1 : -1, :width] for model in (student, teacher)
        ]  # (N, T, V) each
    values = distillation_divergence(*logits, beta, temperature) * batch["completion_mask"]
    return (values.sum() / batch["completion_mask"].sum()).item()


@pytest.mark.parametrize(("divergence", "beta"), [("forward", 0.0), ("js", 0.5), ("reverse", 1.0)])
def test_the_loss_is_the_divergence_that_is_named(build, chain, divergence, beta):
    trainer = build(divergence=divergence, temperature=0.8)
    assert trainer.beta == beta
    trainer.model.train()
    batch = trainer._generate_and_score_completions([chain[index] for index in range(4)])
    loss = trainer.compute_loss(trainer.model, batch)
    expected = loss_by_hand(trainer.model, trainer.teacher_model, batch, beta, 0.8, width=WIDTH)
    assert loss.item() == pytest.approx(expected, rel=1e-4)
    assert trainer._metrics["train"]["divergence"] == [pytest.approx(expected, rel=1e-4)]


def test_a_run_is_trls_run(build, common, chain, tiny, tmp_path):
    """Same samples, losses and weights as the parent class with the same settings."""
    ours = build(divergence="js", gradient_accumulation_steps=2, max_steps=2)
    ours.train()
    config = DistillationConfig(
        **{**common, "output_dir": str(tmp_path / "trl")},
        beta=0.5,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        max_completion_length=10,
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        max_steps=2,
    )
    theirs = DistillationTrainer(model=tiny, teacher_model=resolve_model(UNTRAINED), args=config, train_dataset=chain)
    theirs.train()
    assert losses(ours) == losses(theirs)
    for name, weight in ours.model.named_parameters():
        assert weight.equal(theirs.model.get_parameter(name)), name
    logged = [set(trainer.state.log_history[0]) for trainer in (ours, theirs)]
    assert logged[0] - logged[1] == {"divergence"} and logged[1] <= logged[0]


def test_accumulation_changes_nothing(build):
    """One optimizer step of four rows, as 1 x 4, 2 x 2 and 4 x 1; the samples are the same."""
    found = [
        gradients_of_a_step(build(per_device_train_batch_size=rows, gradient_accumulation_steps=4 // rows))
        for rows in (4, 2, 1)
    ]
    for other in found[1:]:
        for name, gradient in found[0].items():
            torch.testing.assert_close(other[name], gradient, rtol=1e-3, atol=1e-6)


def test_a_student_of_its_own_weights_has_nothing_to_learn(build, tiny):
    trainer = build(teacher_model_name_or_path=TINY)
    trainer.train()
    assert losses(trainer)[1] == pytest.approx(0.0, abs=1e-6)


def test_rows_ended_by_a_string_are_complete_and_unpadded(build, tokenizer, chain):
    trainer = build(stop_strings=["</think>"], max_completion_length=48)
    trainer.model.train()
    batch = trainer._generate_and_score_completions([chain[3]] * 4)
    close = tokenizer.convert_tokens_to_ids("</think>")
    for ids, mask in zip(batch["completion_ids"], batch["completion_mask"].bool(), strict=True):
        assert ids[mask][-1] == close and (ids[mask] == close).sum() == 1
    assert trainer._metrics["train"]["completions/clipped_ratio"] == [0.0]


@pytest.mark.parametrize("wider", ["teacher", "student"])
@pytest.mark.parametrize("peft", [False, True], ids=["full", "lora"])
def test_padding_rows_are_not_in_the_loss_and_stay_in_the_student(build, chain, tmp_path, wider, peft):
    """128 rows of logits against 104; the additional ones have large weights, which would show in the loss."""
    wide = padded_copy(tmp_path / "wide", 128)
    settings = {"teacher_model_name_or_path": wide} if wider == "teacher" else {"model": wide}
    lora = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM") if peft else None
    trainer = build(**settings, peft_config=lora, divergence="js", output_dir=str(tmp_path / "out"))
    batch = trainer._generate_and_score_completions([chain[index] for index in range(4)])
    assert batch["completion_ids"].max() < WIDTH
    loss = trainer.compute_loss(trainer.model, batch)
    expected = loss_by_hand(trainer.model, trainer.teacher_model, batch, 0.5, 1.0, width=WIDTH)
    assert loss.item() == pytest.approx(expected, rel=1e-4, abs=1e-6)
    trainer.train()
    trainer.save_model()
    if not peft:
        rows = WIDTH if wider == "teacher" else 128
        saved = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
        assert saved.get_output_embeddings().weight.shape[0] == saved.config.vocab_size == rows
    assert "get_output_embeddings" not in vars(trainer.model)


def test_another_tokenizer_is_refused_before_a_model_is_loaded(build, tmp_path, monkeypatch):
    other = padded_copy(tmp_path / "other", 128)
    tokenizer = AutoTokenizer.from_pretrained(other)
    tokenizer.add_tokens(["<tool>"])
    tokenizer.save_pretrained(other)
    monkeypatch.setattr("trl.trainer.distillation_trainer.create_model_from_path", None)
    monkeypatch.setattr("trl_reasoning.trainers._teacher.create_model_from_path", None)
    with pytest.raises(UserError, match=r"tiny_base \(student\) and .*other \(teacher\) differ: token 104 is none"):
        build(teacher_model_name_or_path=other)


def test_a_teacher_is_needed(build):
    with pytest.raises(UserError, match="teacher_model_name_or_path: missing"):
        build(teacher_model_name_or_path=None)
