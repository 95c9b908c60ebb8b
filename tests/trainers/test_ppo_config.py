"""What PPO's configuration and trainer refuse, and one completion a prompt."""

import math

import pytest
from ppo_tools import ppo

from trl_reasoning.rewards import REWARDS
from trl_reasoning.trainers import PPOConfig, ReasoningGRPOConfig


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"loss_type": "grpo"}, "loss_type"),
        ({"beta": 0.04}, "beta"),
        ({"scale_rewards": "group"}, "scale_rewards"),
        ({"importance_sampling_level": "sequence"}, "importance_sampling_level"),
        ({"gamma": 1.5}, "gamma"),
        ({"lam": -0.1}, "lam"),
        ({"kl_coef": -1.0}, "kl_coef"),
        ({"cliprange_value": 0.0}, "cliprange_value"),
        ({"value_model": "critic"}, "value_model"),
        ({"missing_eos_penalty": 10.0}, "missing_eos_penalty"),
        ({"missing_eos_penalty": -1.0, "mask_truncated_completions": True}, "missing_eos_penalty"),
        ({"ptx_coef": 1.0, "temperature": 0.7}, "ptx_coef"),
        ({"ptx_batch_size": 0}, "ptx_batch_size"),
        ({"num_generations": 0}, "num_generations"),
        ({"per_device_train_batch_size": 1}, "per_device_train_batch_size"),
        ({"ddp_find_unused_parameters": True}, "ddp_find_unused_parameters"),
        ({"activation_checkpointing_kwargs": {"use_reentrant": True}}, "activation_checkpointing_kwargs"),
    ],
)
def test_bad_settings_are_refused_by_name(common, settings, key):
    with pytest.raises(ValueError, match=f"^{key}: "):
        PPOConfig(**common, **settings)


def test_refused_with_the_models_at_hand(tmp_path, chain):
    with pytest.raises(ValueError, match="^value_model: there is no reward model"):
        ppo(tmp_path, value_model="reward")
    with pytest.raises(ValueError, match="^reward_adapter: .*LoRA"):
        ppo(tmp_path, reward_adapter="somewhere")
    with pytest.raises(ValueError, match="^ptx_dataset: needs `ptx_coef`"):
        ppo(tmp_path, ptx=chain)
    with pytest.raises(ValueError, match="^ptx_dataset: expected the column"):
        ppo(tmp_path, ptx=chain.select_columns(["question"]), ptx_coef=1.0)
    with pytest.raises(ValueError, match="^num_generations: kimi_length compares"):  # it would be 0 for every group
        ppo(tmp_path, reward=[REWARDS["accuracy"](), REWARDS["kimi_length"]()])


@pytest.mark.parametrize(("rows", "steps"), [(3, 1), (1, 3), (5, 7)])
def test_one_completion_a_prompt(common, rows, steps):
    config = PPOConfig(**common, per_device_train_batch_size=rows, gradient_accumulation_steps=steps)
    assert (config.num_generations, config.num_generations_eval) == (1, 1)
    assert config.generation_batch_size == rows * steps
    with pytest.raises(ValueError, match="at least 2 generations"):
        ReasoningGRPOConfig(**common, num_generations=1, per_device_train_batch_size=rows)
    assert math.isclose(PPOConfig(**common).epsilon, 0.2)
