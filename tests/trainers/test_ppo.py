"""PPO: its gradient against the formula written out, its rollouts, its metrics, and what it refuses."""

from collections import Counter

import pytest
import torch
from ppo_tools import Gradients, logged, ppo, sum_reward
from transformers import AutoModelForCausalLM

from trl_reasoning.losses import generalized_advantages, shaped_rewards, whiten


def rollout_of(trainer, rows=8):
    trainer.model.train()
    return trainer._generate_and_score_completions(list(trainer.train_dataset.select(range(rows))))


def plain_logps(model, batch):
    """Log-probs and last hidden states by transformers alone."""
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    out = model(ids, attention_mask=mask, output_hidden_states=True)
    prompt = batch["prompt_ids"].size(1)
    logps = out.logits[:, prompt - 1 : -1].log_softmax(-1)
    logps = logps.gather(2, batch["completion_ids"].unsqueeze(2)).squeeze(2)
    return logps, out.hidden_states[-1][:, prompt - 1 : -1]


def test_a_rollout_by_hand(tmp_path):
    trainer = ppo(tmp_path, whiten_advantages=False, kl_coef=0.3, gamma=0.9, lam=0.8)
    torch.nn.init.normal_(trainer.value_function.head.weight, std=0.1)
    for parameter in trainer.model.model.parameters():  # away from the reference
        parameter.data.add_(0.01 * torch.randn_like(parameter))
    batch = rollout_of(trainer)
    start = AutoModelForCausalLM.from_pretrained(trainer.model.name_or_path, dtype="float32")
    mask = batch["completion_mask"]
    with torch.no_grad():
        trainer.model.eval()
        logps, _ = plain_logps(trainer.model, batch)
        ref_logps, hidden = plain_logps(start, batch)  # the value's trunk is a copy of the start
        values = (hidden @ trainer.value_function.head.weight.T).squeeze(2)
    scores = torch.tensor(
        sum_reward([ids[kept == 1].tolist() for ids, kept in zip(batch["completion_ids"], mask, strict=True)])
    )
    assert torch.allclose(batch["old_per_token_logps"] * mask, logps * mask, atol=1e-5)
    assert torch.allclose(batch["old_values"] * mask, values * mask, atol=1e-5)
    rewards = shaped_rewards(logps, ref_logps, scores, mask, 0.3)
    advantages, returns = generalized_advantages(rewards, values, mask, 0.9, 0.8)
    assert torch.allclose(batch["advantages"], advantages, atol=1e-4)
    assert torch.allclose(batch["returns"], returns, atol=1e-4)
    kl = ((logps - ref_logps) * mask).sum(1).mean().item()
    assert trainer._metrics["train"]["objective/kl"] == [pytest.approx(kl, abs=1e-5)]
    assert abs(kl) > 1e-3
    residual = (returns - values)[mask == 1]
    explained = 1 - residual.var(correction=0) / returns[mask == 1].var(correction=0)
    assert trainer._metrics["train"]["explained_variance"] == [pytest.approx(explained.item(), abs=1e-4)]


@pytest.mark.parametrize("value_model", ["policy", "shared"])
def test_the_first_gradient_is_the_formula(tmp_path, value_model):
    """At a ratio of 1 the policy's is that of -A log pi, the value's that of c/2 (V - R)^2, both over the tokens."""
    gradients = Gradients()
    trainer = ppo(
        tmp_path, callbacks=[gradients], value_model=value_model, vf_coef=0.25, max_grad_norm=0.0, cliprange_value=None
    )
    torch.nn.init.normal_(trainer.value_function.head.weight, std=0.1)
    head = trainer.value_function.head.weight.detach().clone()
    start = AutoModelForCausalLM.from_pretrained(trainer.model.name_or_path, dtype="float32")
    trainer.train()
    batch = trainer._buffered_inputs[0]
    mask = batch["completion_mask"]

    logps, hidden = plain_logps(start, batch)
    values = (hidden @ head.T).squeeze(2)
    policy_loss = -(batch["advantages"] * logps * mask).sum() / mask.sum()
    value_loss = 0.25 * 0.5 * ((values - batch["returns"]) ** 2 * mask).sum() / mask.sum()
    names = [name for name, _ in start.named_parameters() if name != "lm_head.weight"]
    parameters = [start.get_parameter(name) for name in names]
    of_policy = torch.autograd.grad(policy_loss, parameters, retain_graph=True, allow_unused=True)
    of_value = torch.autograd.grad(value_loss, parameters, allow_unused=True)
    found = gradients.steps[0]
    is_shared = value_model == "shared"
    for name, policy_grad, value_grad in zip(names, of_policy, of_value, strict=True):
        wanted = policy_grad + value_grad if is_shared else policy_grad
        assert torch.allclose(found[name], wanted, atol=2e-6, rtol=1e-4), name
        if not is_shared:
            own = found[name.replace("model.", "value_function.trunk.", 1)]
            assert torch.allclose(own, value_grad, atol=2e-6, rtol=1e-4), name
    assert logged(trainer, "value_loss")[0] == pytest.approx(value_loss.item() / 0.25, rel=1e-4)


# TRL 1.16 calls the methods that transformers 5.24 renamed.
OLD_NAMES = pytest.mark.filterwarnings("ignore:`gradient_checkpointing_:FutureWarning")


@OLD_NAMES
@pytest.mark.parametrize(
    "settings",
    [{}, {"value_model": "shared"}, {"peft": True}, {"peft": True, "activation_checkpointing": True}],
    ids=["full", "shared", "lora", "recomputed"],
)
def test_accumulation_changes_nothing(tmp_path, chain, settings):
    """Two minibatches, two epochs, and a pretraining mix: the same steps however they are split."""
    steps = []
    for rows, accumulation in ((4, 1), (2, 2), (1, 4)):
        gradients = Gradients()
        trainer = ppo(
            tmp_path,
            per_device_train_batch_size=rows,
            gradient_accumulation_steps=accumulation,
            steps_per_generation=2 * accumulation,
            num_iterations=2,
            max_steps=4,
            vf_coef=1.0,
            ptx=chain.select_columns(["prompt", "completion"]),
            ptx_coef=0.5,
            ptx_batch_size=3,
            callbacks=[gradients],
            **{**settings, "optim": "sgd", "learning_rate": 1e-3, "shuffle_dataset": False, "seed": 3},
        )
        order_rows(trainer)
        trainer.train()
        steps.append(gradients.steps)
    for other in steps[1:]:
        for first, second in zip(steps[0], other, strict=True):
            assert first.keys() == second.keys()
            for name in first:
                assert torch.allclose(first[name], second[name], atol=2e-5, rtol=2e-3), name
    assert all(value.abs().max() > 0 for name, value in steps[0][1].items() if "lora_A" not in name)


def order_rows(trainer):
    """TRL shuffles the rows of a rollout; in order, the minibatches hold the same rows for every split."""
    score = trainer._generate_and_score_completions

    def sorted_rollout(inputs):
        torch.manual_seed(0)
        return score(inputs)

    trainer._generate_and_score_completions = sorted_rollout


@OLD_NAMES
def test_activation_checkpointing_recomputes_through_the_right_adapter(tmp_path):
    found = []
    for recomputes in (False, True):
        gradients = Gradients()
        trainer = ppo(
            tmp_path, peft=True, activation_checkpointing=recomputes, callbacks=[gradients], max_steps=3, vf_coef=1.0
        )
        torch.manual_seed(0)
        for name, parameter in trainer.model.named_parameters():
            if "lora_B.value" in name:  # far from the policy's, whose gradient would be another
                torch.nn.init.normal_(parameter, std=0.3)
        trainer.train()
        found.append(gradients.steps)
    for kept, recomputed in zip(*found, strict=True):
        assert kept.keys() == recomputed.keys()
        for name in kept:
            assert torch.allclose(kept[name], recomputed[name], atol=1e-6, rtol=1e-4), name
    value_b = [grad for name, grad in found[0][2].items() if "lora_A.value" in name]
    assert value_b and all(grad.abs().max() > 0 for grad in value_b)


def test_whitening_and_a_row_that_cannot_be_scored(tmp_path):
    def reward(completion_ids, **kwargs):
        return [None, *sum_reward(completion_ids[1:])]

    trainer = ppo(tmp_path, reward=reward)
    batch = rollout_of(trainer)
    mask = batch["completion_mask"]
    assert mask[0].sum() == 0 and (mask[1:].sum(1) > 0).all()
    real = batch["advantages"][mask == 1]
    assert real.mean().item() == pytest.approx(0.0, abs=1e-5)
    assert real.std().item() == pytest.approx(1.0, abs=1e-4)
    assert batch["num_items_in_batch"] == mask.sum()
    assert trainer.has_gradient(batch).tolist() == [False] + [True] * 7


def test_a_reward_that_does_not_apply_adds_nothing(tmp_path):
    def other(completion_ids, **kwargs):
        return [None if row % 2 else 3.0 for row in range(len(completion_ids))]

    trainer = ppo(tmp_path, reward=[sum_reward, other], reward_weights=[2.0, 0.5])
    batch = rollout_of(trainer)
    kept = [
        ids[real == 1].tolist() for ids, real in zip(batch["completion_ids"], batch["completion_mask"], strict=True)
    ]
    sums = sum_reward(kept)
    assert trainer._scores.tolist() == [2 * score + 1.5 * (row % 2 == 0) for row, score in enumerate(sums)]


def test_a_completion_without_an_end_token_gets_the_penalty(tmp_path):
    trainer = ppo(tmp_path, missing_eos_penalty=-10.0, kl_coef=0.0, whiten_advantages=False, lam=1.0)
    batch = rollout_of(trainer)
    eos = trainer.processing_class.eos_token_id
    ends = (batch["completion_ids"] == eos).any(1)
    assert 0 < ends.sum() < 8
    # Values are 0 at the start, so that without discount every return is the score.
    for row, complete in enumerate(ends):
        ids = batch["completion_ids"][row][batch["completion_mask"][row] == 1].tolist()
        expected = sum_reward([ids])[0] if complete else -10.0
        assert batch["returns"][row, : len(ids)].tolist() == pytest.approx([expected] * len(ids))
        assert batch["returns"][row, len(ids) :].abs().sum() == 0


def test_rewards_of_a_prompt_are_not_centred(tmp_path):
    def reward(completions, **kwargs):
        return [2.0] * len(completions)

    trainer = ppo(tmp_path, num_generations=4, kl_coef=0.0, whiten_advantages=False, lam=1.0, reward=reward)
    batch = rollout_of(trainer)
    assert set(batch["advantages"][batch["completion_mask"] == 1].tolist()) == {2.0}


def test_metric_names(tmp_path):
    trainer = ppo(tmp_path, fixed=False, num_iterations=2, max_steps=2)
    trainer.train()
    first, second = trainer.state.log_history[:2]
    trl_names = {"reward", "reward_std", "entropy", "clip_ratio/region_mean", "completions/mean_length", "step_time"}
    own = {"objective/kl", "objective/shaped_reward", "value_loss", "values", "returns", "explained_variance"}
    assert set(first) >= trl_names | own
    assert first["clip_ratio/region_mean"] == 0.0  # the rollout's own policy
    assert second["clip_ratio/region_mean"] > 0.0
    assert first["objective/kl"] == pytest.approx(0.0, abs=1e-5)
    assert set(second) >= {"value_loss", "values", "value_clip_ratio"}


def test_the_value_may_have_its_own_learning_rate(tmp_path):
    trainer = ppo(tmp_path, value_learning_rate=0.5, learning_rate=1e-6)
    before = [p.clone() for p in trainer.model.model.parameters()]
    optimizer = trainer.create_optimizer()
    rates = Counter()
    for group in optimizer.param_groups:
        rates[group["lr"]] += sum(p.numel() for p in group["params"])
    own = sum(p.numel() for p in trainer.value_function.parameters())
    assert rates == {1e-6: sum(p.numel() for p in trainer.model.parameters()) - own, 0.5: own}
    trainer.train()
    assert (
        max((p - q).abs().max().item() for p, q in zip(trainer.model.model.parameters(), before, strict=True)) < 1e-5
    )
    assert trainer.value_function.head.bias.item() == pytest.approx(0.5, rel=1e-3)  # one step of Adam


def test_whiten_is_over_the_rollout(tmp_path):
    trainer = ppo(tmp_path, whiten_advantages=False)
    batch = rollout_of(trainer)
    white = ppo(tmp_path, whiten_advantages=True)
    whitened = rollout_of(white)["advantages"]
    assert torch.allclose(whitened, whiten(batch["advantages"], batch["completion_mask"]), atol=1e-5)
