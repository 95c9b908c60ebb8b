"""Our `_compute_loss` against TRL's on the same batch: loss, gradients and metrics of every loss type."""

import math

import pytest
import torch
from trl import GRPOConfig, GRPOTrainer

from trl_reasoning.builtin import make_chain_dataset, resolve_model
from trl_reasoning.trainers import ReasoningGRPOConfig, ReasoningGRPOTrainer
from trl_reasoning.trainers._policy import _MULTIMODAL


LOSS_TYPES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo")
ROWS, PROMPT, TOKENS = 6, 5, 7
LENGTHS = [7, 3, 5, 1, 6, 4]

CORRECTED = {"args.use_bias_correction_kl": True}
# Each changes attributes of the trainer ("args.x" of its configuration) and adds to the batch.
VARIANTS = {
    "on_policy": ({}, ()),
    "off_policy": ({}, ("old",)),
    "kl": ({"beta": 0.04, "args.use_bias_correction_kl": False}, ("old", "ref")),
    "kl_corrected": ({"beta": 0.04, "args.use_bias_correction_kl": True}, ("old", "ref")),
    "tool_mask": ({}, ("old", "tools")),
    "two_sided": ({"args.delta": 1.3}, ("old",)),
    "sequence_ratio": ({"importance_sampling_level": "sequence"}, ("old",)),
    "entropy_mask": ({"top_entropy_quantile": 0.5}, ("old",)),
    "off_policy_mask": ({"off_policy_mask_threshold": 0.02}, ("old",)),
    "off_policy_mask_of_the_sampler": ({"off_policy_mask_threshold": 0.02}, ("old", "sampling")),
    "vllm_token": ({"use_vllm": True, "vllm_importance_sampling_correction": True}, ("old", "token_ratio")),
    "vllm_sequence": ({"use_vllm": True, "vllm_importance_sampling_correction": True}, ("old", "sequence_ratio")),
    "vllm_kl_tools": (
        {"use_vllm": True, "vllm_importance_sampling_correction": True, "beta": 0.1, **CORRECTED},
        ("old", "ref", "tools", "token_ratio"),
    ),
    "entropy_bonus": ({"entropy_coef": 0.01, "_entropy_bonus_enabled": True}, ("old",)),
    "entropy_bonus_on_masked_tokens": (
        {"entropy_coef": 0.01, "_entropy_bonus_enabled": True, "top_entropy_quantile": 0.5},
        ("old", "tools"),
    ),
    "adaptive_entropy": (
        {"entropy_coef": 0.01, "_entropy_bonus_enabled": True, "use_adaptive_entropy": True},
        ("old",),
    ),
    "token_advantages": ({}, ("old", "token_advantages")),
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """TRL's trainer and ours on the same weights."""
    shared = {
        "num_generations": 2,
        "per_device_train_batch_size": ROWS,
        "gradient_accumulation_steps": 4,
        "max_completion_length": 9,
        "loss_type": "grpo",
        "beta": 0.04,  # so that a reference exists; the cases set their own
        "use_cpu": True,
        "bf16": False,
        "activation_checkpointing": False,
        "report_to": [],
        "disable_tqdm": True,
        "disable_dropout": True,
    }
    made = []
    for trainer_class, config_class in ((GRPOTrainer, GRPOConfig), (ReasoningGRPOTrainer, ReasoningGRPOConfig)):
        trainer = trainer_class(
            model=resolve_model("builtin:tiny"),
            args=config_class(output_dir=str(tmp_path_factory.mktemp("pair")), **shared),
            reward_funcs=[lambda completions, **kwargs: [0.0] * len(completions)],
            train_dataset=make_chain_dataset(size=8, operands=2),
        )
        trainer.current_gradient_accumulation_steps = 4
        trainer.beta = 0.0
        made.append(trainer)
    return made


def make_batch(extras) -> dict:
    draw = torch.Generator().manual_seed(3)

    def noise(*shape):
        return torch.randn(*shape, generator=draw)

    steps = torch.arange(TOKENS)
    mask = (steps < torch.tensor(LENGTHS).unsqueeze(1)).long()
    batch = {
        "prompt_ids": torch.randint(5, 40, (ROWS, PROMPT), generator=draw),
        "prompt_mask": (torch.arange(PROMPT) >= torch.tensor([0, 1, 2, 0, 3, 1]).unsqueeze(1)).long(),
        "completion_ids": torch.randint(5, 40, (ROWS, TOKENS), generator=draw),
        "completion_mask": mask,
        "advantages": torch.tensor([1.0, -1.0, 0.5, -0.5, 0.0, 0.7]),
        "num_items_in_batch": torch.tensor(90),
    }
    # The log-probs of the other policies lie near those of the tiny model, which the test fills in.
    batch["noise"] = {name: 0.3 * noise(ROWS, TOKENS) for name in ("old", "ref", "sampling")}
    if "tools" in extras:
        batch["tool_mask"] = (torch.rand(ROWS, TOKENS, generator=draw) > 0.3).long()
    if "token_ratio" in extras:
        batch["importance_sampling_ratio"] = (0.2 * noise(ROWS, TOKENS)).exp()
    if "sequence_ratio" in extras:
        batch["importance_sampling_ratio"] = torch.tensor([[1.2], [0.0], [0.8], [1.0], [1.1], [0.5]])
    if "token_advantages" in extras:
        batch["advantages"] = noise(ROWS, TOKENS)
    return batch


def fill_logps(trainer, batch, extras) -> dict:
    noise = batch.pop("noise")
    with torch.no_grad():
        logps, _, _ = trainer._get_per_token_logps_and_entropies(
            trainer.model,
            torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1),
            torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1),
            TOKENS,
        )
    names = {"old": "old_per_token_logps", "ref": "ref_per_token_logps", "sampling": "sampling_per_token_logps"}
    batch.update({key: logps + noise[name] for name, key in names.items() if name in extras})
    return batch


def set_attributes(monkeypatch, trainer, changes):
    for name, value in changes.items():
        owner = trainer.args if name.startswith("args.") else trainer
        monkeypatch.setattr(owner, name.removeprefix("args."), value)


def run(trainer, batch, train: bool):
    trainer.model.train(train)
    trainer.model.zero_grad()
    mode = "train" if train else "eval"
    trainer._metrics[mode].clear()
    loss = trainer._compute_loss(trainer.model, dict(batch))
    loss.backward()
    gradients = torch.cat([parameter.grad.flatten() for parameter in trainer.model.parameters()])
    return loss.item(), gradients, {name: list(values) for name, values in trainer._metrics[mode].items()}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_loss_gradients_and_metrics(pair, monkeypatch, loss_type, variant):
    changes, extras = VARIANTS[variant]
    results = []
    for trainer in pair:
        set_attributes(monkeypatch, trainer, {"loss_type": loss_type, **changes})
        monkeypatch.setattr(trainer, "_last_world_entropy", 0.0)
        monkeypatch.setattr(trainer, "_entropy_window_stats", None)
        batch = fill_logps(trainer, make_batch(extras), extras)
        results.append((*run(trainer, batch, train=True), trainer.entropy_coef))
    (loss, gradients, metrics, coefficient), (our_loss, our_gradients, our_metrics, our_coefficient) = results
    assert our_loss == pytest.approx(loss, rel=1e-6, abs=1e-6)
    assert gradients.norm() > 1e-4  # a comparison of zeros would show nothing
    assert (our_gradients - gradients).norm() <= 1e-6 * gradients.norm() + 1e-9
    assert our_metrics.keys() == metrics.keys()
    for name, values in metrics.items():
        assert our_metrics[name] == pytest.approx(values, rel=1e-5, abs=1e-6), name
    assert our_coefficient == coefficient


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_evaluation_loss(pair, monkeypatch, loss_type):
    losses = []
    for trainer in pair:
        set_attributes(monkeypatch, trainer, {"loss_type": loss_type})
        losses.append(run(trainer, fill_logps(trainer, make_batch(("old",)), ("old",)), train=False)[0])
    assert losses[1] == pytest.approx(losses[0], rel=1e-6, abs=1e-7)


def test_a_row_without_tokens_leaves_finite_numbers(pair, monkeypatch):
    results = []
    for trainer in pair:
        set_attributes(monkeypatch, trainer, {"loss_type": "grpo"})
        batch = fill_logps(trainer, make_batch(("old",)), ("old",))
        batch["completion_mask"][1] = 0
        results.append(run(trainer, batch, train=True))
    assert math.isfinite(results[0][0])
    assert results[1][0] == pytest.approx(results[0][0], abs=1e-7)
    assert results[1][2]["clip_ratio/low_min"] == results[0][2]["clip_ratio/low_min"]


def test_keys_of_images_reach_the_forward_pass(pair, monkeypatch):
    """Both trainers hand the same keywords to the model's pass."""
    seen = []
    for trainer in pair:
        logps = torch.zeros(ROWS, TOKENS, requires_grad=True)

        def record(*args, calls=seen, values=logps, **kwargs):
            calls.append(kwargs)
            return values, values.detach(), None

        set_attributes(monkeypatch, trainer, {"loss_type": "grpo"})
        monkeypatch.setattr(trainer, "_get_per_token_logps_and_entropies", record)
        batch = make_batch(())
        del batch["noise"]
        trainer._compute_loss(trainer.model, {**batch, **{key: f"<{key}>" for key in _MULTIMODAL}})
    assert seen[0] == seen[1]
    assert all(seen[1][key] == f"<{key}>" for key in _MULTIMODAL)


def test_auxiliary_loss_of_experts(tmp_path, monkeypatch):
    from transformers import AutoTokenizer, Qwen3MoeConfig, Qwen3MoeForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(resolve_model("builtin:tiny"))
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "moe_intermediate_size": 8, "num_hidden_layers": 2}
    config = Qwen3MoeConfig(
        vocab_size=len(tokenizer),
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        num_experts=4,
        num_experts_per_tok=2,
        output_router_logits=True,
        router_aux_loss_coef=0.1,
        **sizes,
    )
    Qwen3MoeForCausalLM(config).save_pretrained(tmp_path / "moe")
    tokenizer.save_pretrained(tmp_path / "moe")
    results = []
    for trainer_class, config_class in ((GRPOTrainer, GRPOConfig), (ReasoningGRPOTrainer, ReasoningGRPOConfig)):
        trainer = trainer_class(
            model=str(tmp_path / "moe"),
            args=config_class(
                output_dir=str(tmp_path / "out"),
                num_generations=2,
                use_cpu=True,
                bf16=False,
                beta=0.0,
                loss_type="grpo",
                activation_checkpointing=False,
                report_to=[],
                model_init_kwargs={"dtype": "float32"},
            ),
            reward_funcs=[lambda completions, **kwargs: [0.0] * len(completions)],
            train_dataset=make_chain_dataset(size=8, operands=2),
        )
        trainer.current_gradient_accumulation_steps = 4
        assert trainer.aux_loss_enabled
        results.append(run(trainer, fill_logps(trainer, make_batch(("old",)), ("old",)), train=True))
    (loss, gradients, metrics), (our_loss, our_gradients, our_metrics) = results
    assert our_loss == pytest.approx(loss, rel=1e-6)
    assert (our_gradients - gradients).norm() <= 1e-6 * gradients.norm()
    assert our_metrics["aux_loss"] == pytest.approx(metrics["aux_loss"], rel=1e-6)
    assert metrics["aux_loss"][0] > 0
