"""A reference that is renewed: when, with what, with LoRA and 4-bit weights, and across a resume."""

import pytest
import torch
from peft import LoraConfig, PeftModel
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from trl_reasoning.builtin import make_chain_dataset
from trl_reasoning.trainers import DrGRPOConfig, ReasoningGRPOConfig, ReasoningGRPOTrainer


SETTINGS = {
    "num_generations": 4,
    "per_device_train_batch_size": 4,
    "max_completion_length": 12,
    "temperature": 1.5,
    "learning_rate": 1e-2,
    "lr_scheduler_type": "constant",
    "beta": 0.04,
    "sync_ref_model": True,
}


def lora() -> LoraConfig:
    return LoraConfig(r=4, target_modules="all-linear", lora_dropout=0.1, task_type="CAUSAL_LM")


class Snapshots(TrainerCallback):
    """Copies of the trained weights after each step, and of the reference that the step used."""

    def __init__(self):
        self.policy = {}
        self.reference = {}
        self.trainer = None

    def on_train_begin(self, args, state, control, **kwargs):
        self.policy[state.global_step] = weights(self.trainer, "policy")

    def on_step_end(self, args, state, control, **kwargs):
        self.policy[state.global_step] = weights(self.trainer, "policy")
        self.reference[state.global_step] = weights(self.trainer, "reference")


def weights(trainer, which: str) -> list[torch.Tensor]:
    model = trainer.accelerator.unwrap_model(trainer.model)
    if isinstance(model, PeftModel):
        mark = ".default" if which == "policy" else ".ref"
        return [p.detach().clone() for name, p in model.named_parameters() if mark in name]
    model = model if which == "policy" else trainer.ref_model
    return [p.detach().clone() for p in model.parameters()]


def equal(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return len(left) > 0 and all(a.equal(b) for a, b in zip(left, right, strict=True))


@pytest.fixture
def build(tiny, common, length_reward):
    def make(peft=False, model=None, **settings):
        snapshots = Snapshots()
        config = ReasoningGRPOConfig(**{**common, **SETTINGS, **settings})
        trainer = ReasoningGRPOTrainer(
            model=model or tiny,
            args=config,
            reward_funcs=[length_reward],
            train_dataset=make_chain_dataset(size=16, operands=3),
            eval_dataset=make_chain_dataset(size=4, operands=3),
            peft_config=lora() if peft is True else peft or None,
            callbacks=[snapshots],
        )
        snapshots.trainer = trainer
        return trainer, snapshots

    return make


def kl(trainer) -> list[float]:
    return [log["kl"] for log in trainer.state.log_history if "kl" in log]


@pytest.mark.parametrize("peft", [False, True])
def test_every_second_step(build, peft):
    trainer, seen = build(peft, max_steps=5, ref_model_sync_steps=2)
    trainer.train()
    assert [equal(seen.reference[step], seen.policy[source]) for step, source in ((3, 2), (4, 2), (5, 4))] == [
        True
    ] * 3
    assert not equal(seen.policy[2], seen.policy[0]) and not equal(seen.policy[3], seen.policy[2])
    if not peft:
        assert equal(seen.reference[2], seen.policy[0])
    # The first step after a renewal trains the policy that its reference is.
    values = kl(trainer)
    assert [value == pytest.approx(0.0, abs=1e-9) for value in values] == [True, False, True, False, True]
    steps = [log["reference/step"] for log in trainer.state.log_history if "reference/step" in log]
    assert steps == [0.0, 0.0, 2.0, 2.0, 4.0]


@pytest.mark.parametrize("evaluation", ["no", "steps"])
def test_never_inside_a_generation_batch(build, evaluation):
    # Completions serve four steps: step 3 asks for a new reference, and the next completions come with step 5.
    trainer, seen = build(
        max_steps=6, ref_model_sync_steps=3, num_iterations=2, steps_per_generation=2, per_device_train_batch_size=2,
        eval_strategy=evaluation, eval_steps=1, per_device_eval_batch_size=4,
    )  # fmt: skip
    trainer.train()
    assert equal(seen.reference[4], seen.policy[0])
    assert equal(seen.reference[5], seen.policy[4]) and equal(seen.reference[6], seen.policy[4])


def test_mixup(build):
    trainer, seen = build(max_steps=3, ref_model_sync_steps=2, ref_model_mixup_alpha=0.25)
    trainer.train()
    for start, then, mixed in zip(seen.policy[0], seen.policy[2], seen.reference[3], strict=True):
        torch.testing.assert_close(mixed, 0.75 * start + 0.25 * then)


@pytest.mark.parametrize("mixup", [1.0, 0.6])
def test_full_fine_tuning_as_trls_callback(build, tiny, common, length_reward, mixup):
    """With one step a generation, TRL's moment, the end of a step, is ours."""
    settings = {"max_steps": 4, "ref_model_sync_steps": 2, "ref_model_mixup_alpha": mixup}
    ours, _ = build(**settings)
    ours.train()
    theirs = GRPOTrainer(
        model=tiny,
        args=GRPOConfig(
            **{**common, **SETTINGS, **settings}, loss_type="grpo", use_bias_correction_kl=False, disable_dropout=True
        ),
        reward_funcs=[length_reward],
        train_dataset=make_chain_dataset(size=16, operands=3),
    )
    theirs.train()
    assert kl(ours) == pytest.approx(kl(theirs), rel=1e-3, abs=1e-8)
    for left, right in zip(weights(ours, "policy"), weights(theirs, "policy"), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("peft", [False, True])
@pytest.mark.parametrize("every", [1, 2, 3])
def test_resume_is_exact(build, tmp_path, peft, every):
    """At step 2 of 4 the reference is a former one, or due; it is renewed before, after and at the checkpoint."""
    settings = {"ref_model_sync_steps": every, "save_strategy": "steps", "save_steps": 1}
    straight, whole = build(peft, output_dir=str(tmp_path / "straight"), max_steps=4, **settings)
    straight.train()
    first, _ = build(peft, output_dir=str(tmp_path / "parts"), max_steps=2, **settings)
    first.train()
    second, part = build(peft, output_dir=str(tmp_path / "parts"), max_steps=4, **settings)
    second.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-2"))
    for step in (3, 4):
        assert equal(part.reference[step], whole.reference[step])
        assert equal(part.policy[step], whole.policy[step])
    assert kl(second) == kl(straight)


def test_resume_inside_a_generation_batch(build, tmp_path):
    settings = {
        "ref_model_sync_steps": 2, "num_iterations": 2, "steps_per_generation": 2, "per_device_train_batch_size": 2,
        "save_strategy": "steps", "save_steps": 1,
    }  # fmt: skip
    straight, whole = build(output_dir=str(tmp_path / "straight"), max_steps=9, **settings)
    straight.train()
    first, _ = build(output_dir=str(tmp_path / "parts"), max_steps=7, **settings)
    first.train()
    second, part = build(output_dir=str(tmp_path / "parts"), max_steps=9, **settings)
    second.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-7"))
    assert equal(part.reference[8], whole.policy[4])  # step 6 asked for a new one, the completions last until step 8
    assert equal(part.reference[9], whole.policy[8])
    assert equal(part.policy[9], whole.policy[9])


def test_a_full_reference_is_saved_only_once_it_differs_from_the_start(build, tmp_path):
    trainer, _ = build(max_steps=3, ref_model_sync_steps=2, save_strategy="steps", save_steps=1)
    trainer.train()
    folders = [(tmp_path / "out" / f"checkpoint-{step}" / "reference").is_dir() for step in (1, 2, 3)]
    assert folders == [False, False, True]


def test_only_the_trained_adapter_is_trained_and_saved(build, tmp_path):
    trainer, _ = build(peft=True, max_steps=3, ref_model_sync_steps=1, save_strategy="steps", save_steps=1)
    trainer.train()
    trainer.save_model(str(tmp_path / "saved"))
    assert not (tmp_path / "saved" / "ref").exists()
    assert not (tmp_path / "out" / "checkpoint-2" / "ref").exists()
    trained = [name for name, parameter in trainer.model.named_parameters() if parameter.requires_grad]
    assert trained and all(".default." in name for name in trained)


def test_an_initialisation_that_changes_the_base_does_not_do_it_twice(build, tiny):
    """PiSSA moves a part of the base into the adapter; base and adapter together stay what they were."""
    config = LoraConfig(r=4, target_modules="all-linear", init_lora_weights="pissa", task_type="CAUSAL_LM")
    trainer, _ = build(config, max_steps=2, ref_model_sync_steps=1)
    ids = torch.arange(10, 30)[None]
    with torch.no_grad():
        expected = AutoModelForCausalLM.from_pretrained(tiny, dtype="float32")(ids).logits
        for adapter in ("default", "ref"):
            trainer.model.set_adapter(adapter)
            torch.testing.assert_close(trainer.model(ids).logits, expected, rtol=1e-3, atol=1e-3)
        trainer.model.set_adapter("default")
    trainer.train()
    assert kl(trainer) == pytest.approx([0.0, 0.0], abs=1e-9)


def test_a_mixture_of_adapters_is_refused(build):
    with pytest.raises(ValueError, match="^ref_model_mixup_alpha: expected 1.0 with an adapter"):
        build(peft=True, ref_model_mixup_alpha=0.6)


@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`")
def test_embedding_adapters_are_part_of_the_reference(build):
    config = LoraConfig(r=4, target_modules=["embed_tokens", "q_proj"], task_type="CAUSAL_LM")
    trainer, seen = build(config, max_steps=3, ref_model_sync_steps=2)
    trainer.train()
    assert equal(seen.reference[3], seen.policy[2])
    assert any("lora_embedding_A.ref" in name for name, _ in trainer.model.named_parameters())


def test_on_a_4bit_base(build, tiny):
    pytest.importorskip("bitsandbytes", reason="bitsandbytes (extra `quantization`) is not installed")
    quantization = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.float32)
    model = AutoModelForCausalLM.from_pretrained(tiny, dtype="float32", quantization_config=quantization)
    trainer, seen = build(model=model, peft=True, max_steps=4, ref_model_sync_steps=2)
    assert {tensor.dtype for tensor in weights(trainer, "reference")} == {torch.float32}
    trainer.train()
    assert equal(seen.reference[4], seen.policy[2])
    values = kl(trainer)
    assert values[0] == values[2] == 0.0 and values[1] > 0.0


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"beta": 0.0}, "sync_ref_model"),
        ({"ref_model_sync_steps": 0}, "ref_model_sync_steps"),
        ({"ref_model_mixup_alpha": 0.0}, "ref_model_mixup_alpha"),
        ({"ref_model_mixup_alpha": 1.5}, "ref_model_mixup_alpha"),
    ],
)
def test_refused(common, settings, key):
    with pytest.raises(ValueError, match=f"^{key}: "):
        ReasoningGRPOConfig(**{**common, **SETTINGS, **settings})


def test_refused_without_a_reference(common):
    with pytest.raises(ValueError, match="^sync_ref_model: "):
        DrGRPOConfig(**common, sync_ref_model=True)
