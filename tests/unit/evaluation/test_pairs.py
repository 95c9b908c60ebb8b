"""Accuracy on held-out pairs: worked numbers of its forms, intervals, and a reward model's scores."""

import json
import math

import pytest
import torch
from datasets import Dataset
from transformers import Qwen3Config, Qwen3ForSequenceClassification

from trl_reasoning.builtin import make_chain_pairs_dataset
from trl_reasoning.data import DataError
from trl_reasoning.evaluation import is_reward_model, load_pairs, pair_accuracy, pair_score_accuracy
from trl_reasoning.evaluation.pairs import summarize_margins
from trl_reasoning.generation import RewardModelScorer
from trl_reasoning.metrics import accuracy_interval


END = "<|end|>"
MODEL = {"": {"a": 0.5, "b": 0.25, END: 0.25}}
UNIFORM = {"": {"a": 0.25, "b": 0.25, END: 0.25, "c": 0.25}}


def pairs(*rows):
    return Dataset.from_list([{"prompt": "x", "chosen": chosen, "rejected": rejected} for chosen, rejected in rows])


def test_the_forms_of_the_margin_by_hand(table_backend):
    # In units of ln 2: `aa` and its end -1 -1 -2, `b` and its end -2 -2; the uniform model has -2 for each token.
    found = pair_accuracy(pairs(("aa", "b")), table_backend(MODEL), reference=table_backend(UNIFORM))
    assert found["forms"] == {
        "sum": 0.5,  # -4 against -4: a tie
        "mean": 1.0,  # -4/3 against -2
        "sum_against_reference": 1.0,  # -4 + 6 against -4 + 4
        "mean_against_reference": 1.0,  # 2/3 against 0
    }
    assert (found["by"], found["accuracy"], found["margin"]) == ("sum", 0.5, 0)
    assert (found["chosen_tokens"], found["rejected_tokens"]) == (3, 2)
    assert found["chosen_logprob"] == pytest.approx(-4 / 3 * math.log(2))
    assert found["rejected_logprob"] == pytest.approx(-2 * math.log(2))
    mean = pair_accuracy(pairs(("aa", "b")), table_backend(MODEL), by="mean")
    assert mean["margin"] == pytest.approx(2 / 3 * math.log(2))
    assert (mean["by"], mean["accuracy"]) == ("mean", 1.0)
    assert mean["forms"].keys() == {"sum", "mean"}


def test_a_longer_reply_loses_by_the_sum_and_wins_by_the_mean(table_backend):
    # `aaaa` -1 -1 -1 -1 -2 = -6, `b` -4: the mean is -6/5 against -2.
    rows = pairs(("aaaa", "b"), ("b", "aaaa"), ("ab", "bb"))
    assert pair_accuracy(rows, table_backend(MODEL))["by_length"] == {
        "chosen_longer": {"accuracy": 0.0, "pairs": 1},
        "chosen_shorter": {"accuracy": 1.0, "pairs": 1},
        "equal": {"accuracy": 1.0, "pairs": 1},
    }
    assert pair_accuracy(rows, table_backend(MODEL), by="mean")["by_length"]["chosen_longer"]["accuracy"] == 1.0


def test_pairs_of_one_prompt_are_one_cluster_of_the_interval():
    margins = [1.0] * 6 + [-1.0] * 2
    lengths = [[1, 1]] * 8
    alone = summarize_margins(margins, lengths, [str(index) for index in range(8)])
    assert alone["accuracy"] == 0.75
    assert alone["interval"] == pytest.approx(accuracy_interval([1, 1, 1, 1, 1, 1, 0, 0], 1))
    grouped = summarize_margins(margins, lengths, ["p", "p", "q", "q", "r", "r", "s", "s"])
    assert grouped["accuracy"] == 0.75
    # The means 1, 1, 1, 0: standard error 0.25, t(0.975, 3) = 3.1824.
    assert grouped["interval"] == pytest.approx([max(0.0, 0.75 - 3.1824 * 0.25), 1.0], abs=1e-4)


@pytest.fixture(scope="module")
def reward_model(tmp_path_factory):
    from trl_reasoning.builtin.tiny import build_tokenizer

    tokenizer = build_tokenizer()
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, max_position_embeddings=256, initializer_range=0.5,
        pad_token_id=tokenizer.pad_token_id, bos_token_id=None, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    config.num_labels = 1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Qwen3ForSequenceClassification(config)
    path = tmp_path_factory.mktemp("reward") / "model"
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return str(path)


def test_a_reward_model_is_measured_by_its_scores(reward_model):
    rows = make_chain_pairs_dataset(size=20, length_bias=0.5)
    scorer = RewardModelScorer(reward_model, device="cpu")
    found = pair_score_accuracy(rows, scorer)
    wins = []
    for row in rows:
        chosen, rejected = (
            scorer.score([(row["prompt"], row[side][0]["content"])])[0] for side in ("chosen", "rejected")
        )
        wins.append(chosen > rejected)
    assert found["accuracy"] == sum(wins) / 20
    assert 0 < found["accuracy"] < 1
    assert found["by"] == "score"
    assert found["by_length"]["chosen_longer"]["pairs"] == rows["pair_kind"].count("longer")


def test_earlier_turns_of_a_reply_belong_to_the_prompt(reward_model):
    user, thanks = {"role": "user", "content": "1+1=?"}, {"role": "user", "content": "thanks"}
    turns = [[{"role": "assistant", "content": text}, thanks, {"role": "assistant", "content": "ok"}] for text in "23"]
    rows = Dataset.from_list([{"prompt": [user], "chosen": turns[0], "rejected": turns[1]}])
    scorer = RewardModelScorer(reward_model, device="cpu")
    margins = [scorer.score([([user, *turn[:2]], "ok")])[0] for turn in turns]
    assert pair_score_accuracy(rows, scorer)["margin"] == pytest.approx(margins[0] - margins[1], abs=1e-5)


def test_what_a_reward_model_is(reward_model, tmp_path):
    assert is_reward_model(reward_model)
    assert not is_reward_model("builtin:tiny")
    assert not is_reward_model("some/hub-id")
    for task, expected in (("SEQ_CLS", True), ("CAUSAL_LM", False)):
        (tmp_path / "adapter_config.json").write_text(json.dumps({"task_type": task}))
        assert is_reward_model(str(tmp_path)) is expected


def test_pairs_are_read_from_the_held_out_split_and_checked(tmp_path):
    rows = load_pairs({"path": "builtin:chain_pairs", "size": 5})
    assert rows["question"] == make_chain_pairs_dataset("heldout", size=5)["question"]
    dialogue = [{"role": "user", "content": "1+1=?"}, {"role": "assistant", "content": "2"}]
    wrong = [dialogue[0], {"role": "assistant", "content": "3"}]
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"chosen": dialogue, "rejected": wrong}) + "\n")
    [row] = load_pairs({"path": str(path)})
    assert (row["prompt"], row["rejected"]) == (dialogue[:1], wrong[1:])
    path.write_text(json.dumps({"prompt": "1+1=?", "chosen": "2"}) + "\n")
    with pytest.raises(DataError, match="no column `rejected`"):
        load_pairs({"path": str(path)})
