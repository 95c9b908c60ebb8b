"""A folder that `method: reward` wrote is a reward in any recipe, and PPO's value function can start from it."""

import json
from pathlib import Path

import pytest
import torch
from ppo_tools import ppo

from trl_reasoning.builtin import make_chain_pairs_dataset
from trl_reasoning.cli import main
from trl_reasoning.generation.scorers import RewardModelScorer


SMOKE = Path(__file__).resolve().parents[2] / "recipes" / "smoke"
PEFT = ["--use_peft", "true", "--lora_r", "4"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, str]:
    """Reward models of the smoke recipe: all weights, and an adapter; both have a bias."""
    made = {}
    for name, words in (("full", []), ("lora", PEFT)):
        folder = tmp_path_factory.mktemp("reward") / name
        words = [*words, "--learning_rate", "1e-2", "--output_dir", str(folder)]
        assert main(["train", str(SMOKE / "reward_tiny.yaml"), *words]) == 0
        assert (folder / "score_bias.json").is_file()
        assert (folder / "config.json").is_file() is (name == "full")
        made[name] = str(folder)
    return made


@pytest.mark.parametrize("kind", ["full", "lora"])
def test_the_smoke_recipes_demonstrations_average_0(folders, kind):
    rows = make_chain_pairs_dataset(size=8)
    scores = RewardModelScorer(folders[kind], dtype="float32").score(
        [(row["prompt"], row["chosen"][-1]["content"]) for row in rows]
    )
    assert sum(scores) / 8 == pytest.approx(0.0, abs=0.02)  # the run computed them in bfloat16
    assert max(scores) - min(scores) > 0.05


@pytest.mark.parametrize("kind", ["full", "lora"])
def test_grpo_takes_the_folder_as_a_reward(folders, tmp_path, kind):
    rewards = f"[{{name: reward_model, model: {folders[kind]}}}]"
    words = ["--reward_funcs", rewards, "--output_dir", str(tmp_path)]
    assert main(["train", str(SMOKE / "grpo_tiny.yaml"), *words]) == 0
    log = [json.loads(line) for line in (tmp_path / "train_log.jsonl").read_text().splitlines()]
    found = [row["rewards/reward_model/mean"] for row in log if "rewards/reward_model/mean" in row]
    assert len(found) == 2 and all(abs(value) > 1e-4 for value in found)


@pytest.mark.parametrize("kind", ["full", "lora"])
def test_the_value_function_starts_from_the_folder(folders, tmp_path, kind):
    """Head, bias and trunk: at the last token of a text that the reward model scores, the value is the score."""
    scorer = RewardModelScorer(folders[kind], dtype="float32")
    trainer = ppo(tmp_path, reward=[scorer], max_steps=1)
    head = trainer.value_function.head
    assert head.bias.item() == pytest.approx(scorer.model.score.bias.item()) and head.bias.item() != 0.0
    ids = torch.tensor([[5, 6, 7, 8]])
    ones = torch.ones_like(ids)
    batch = {"prompt_ids": ids, "prompt_mask": ones, "completion_ids": ids[:, :1], "completion_mask": ones[:, :1]}
    with torch.no_grad():
        score = scorer.model(ids, attention_mask=ones).logits.item()
        assert trainer.value_function(batch).item() == pytest.approx(score, abs=1e-4)
    trainer.train()


@pytest.mark.parametrize("form", ["messages", "text"])
def test_a_reward_adapter_on_the_policys_base_scores_as_the_folder_does(folders, tmp_path, chain, form):
    """With its bias and, for plain text, with the end token of its training."""
    trainer = ppo(tmp_path, peft=True, reward_adapter=folders["lora"], fixed=False, vf_coef=1.0)
    scorer = RewardModelScorer(folders["lora"], dtype="float32")
    prompts, completions = chain["prompt"][:5], chain["completion"][:5]
    if form == "text":
        prompts, completions = ([value[-1]["content"] for value in values] for values in (prompts, completions))
    found = trainer.reward_funcs[-1](prompts, completions)
    assert max(found) - min(found) > 1e-3
    assert found == pytest.approx(scorer(prompts, completions, [[1]] * 5), abs=1e-4)
    head = trainer.value_function.head
    assert head.bias.item() == pytest.approx(scorer.model.score.bias.item()) and head.bias.item() != 0.0
