"""A reward model as a reward: its scores are those of transformers, and it sees what it is meant to see."""

import json
import pickle

import pytest
import torch
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForSequenceClassification

from trl_reasoning.builtin import resolve_model
from trl_reasoning.errors import UserError
from trl_reasoning.generation.reward_model import load_reward_model
from trl_reasoning.generation.scorers import SCORERS, RewardModelScorer


SAY = "<think>9-5 is 4.</think>4"
PROMPTS = [[{"role": "user", "content": question}] for question in ("9-5=?", "7+5-3=?", "1+2+3+4+5=?")]
REPLIES = ["<think>9-5=4</think>4", "9", "<think>1+2=3, 3+3=6, 6+4=10, 10+5=15</think>15"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer):
    """A random reward model of 60 thousand parameters."""
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
    return path


def alone(folder, ids: list[int]) -> float:
    """The score of one unpadded row by transformers alone."""
    model = Qwen3ForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits[0, 0].item()


def chat_ids(folder, prompt: list[dict], reply: str) -> list[int]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    messages = [*prompt, {"role": "assistant", "content": reply}]
    return tokenizer(tokenizer.apply_chat_template(messages, tokenize=False), add_special_tokens=False).input_ids


def scores(scorer, prompts, completions, **kwargs) -> list:
    return scorer(prompts, completions, [[1]] * len(prompts), **kwargs)


@pytest.mark.parametrize("batch_size", [1, 2, 16])
def test_scores_equal_a_forward_of_each_row_alone(folder, batch_size):
    expected = [alone(folder, chat_ids(folder, *pair)) for pair in zip(PROMPTS, REPLIES, strict=True)]
    assert max(expected) - min(expected) > 0.1
    scorer = RewardModelScorer(str(folder), batch_size=batch_size)
    assert scores(scorer, PROMPTS, REPLIES) == pytest.approx(expected, abs=1e-5)
    messages = [[{"role": "assistant", "content": reply}] for reply in REPLIES]
    assert scores(scorer, PROMPTS, messages) == pytest.approx(expected, abs=1e-5)


def test_plain_text_ends_with_the_end_token(folder, tokenizer):
    ids = [*tokenizer("Q: 9-5? A: 4").input_ids, tokenizer.eos_token_id]
    scorer = RewardModelScorer(str(folder))
    assert scores(scorer, ["Q: 9-5?"], [" A: 4"]) == pytest.approx([alone(folder, ids)], abs=1e-5)


def test_the_answer_alone_hides_the_thought(folder):
    scorer = RewardModelScorer(str(folder), sees="answer")
    completions = [SAY, "<think>Something else entirely</think>4", "4"]
    three = scores(scorer, [PROMPTS[0]] * 3, completions)
    assert three == pytest.approx([alone(folder, chat_ids(folder, PROMPTS[0], "4"))] * 3, abs=1e-5)
    opened = scores(scorer, [PROMPTS[0]], ["9-5 is 4.</think>4"], thought_opened=[True])
    assert opened == pytest.approx(three[:1], abs=1e-5)
    whole = scores(RewardModelScorer(str(folder)), [PROMPTS[0]] * 2, completions[:2])
    assert abs(whole[0] - whole[1]) > 1e-3


def test_everything_shows_an_opened_thought_as_a_thought(folder):
    """The policy's template wrote the opening tag into the prompt, which messages do not show."""
    scorer = RewardModelScorer(str(folder))
    opened = scores(scorer, [PROMPTS[0]], ["9-5 is 4.</think>4"], thought_opened=[True])
    assert opened == scores(scorer, [PROMPTS[0]], [SAY])


def test_a_plain_prompt_that_opens_the_thought(folder):
    prompt = "User: 9-5? Assistant: <think>"
    answer = scores(RewardModelScorer(str(folder), sees="answer"), [prompt], ["a</think>4"], thought_opened=[True])
    whole = RewardModelScorer(str(folder))
    assert answer == scores(whole, ["User: 9-5? Assistant: "], ["4"])
    assert scores(whole, [prompt], ["a</think>4"], thought_opened=[True]) == scores(whole, [prompt], ["a</think>4"])


def test_the_score_of_an_empty_answer(folder):
    unfinished = ["<think>and so on", SAY]
    empty = RewardModelScorer(str(folder), sees="answer")
    assert scores(empty, PROMPTS[:2], unfinished)[0] == pytest.approx(
        alone(folder, chat_ids(folder, PROMPTS[0], "")), abs=1e-5
    )
    set_score = scores(RewardModelScorer(str(folder), sees="answer", empty_score=-3.0), PROMPTS[:2], unfinished)
    assert set_score == [-3.0, scores(empty, PROMPTS[:2], unfinished)[1]]


@pytest.mark.parametrize(("side", "cut"), [("left", slice(-8, None)), ("right", slice(0, 8))])
def test_the_side_that_is_cut(folder, side, cut):
    ids = chat_ids(folder, PROMPTS[2], REPLIES[2])
    assert len(ids) > 8
    scorer = RewardModelScorer(str(folder), max_length=8, truncation_side=side)
    assert scores(scorer, [PROMPTS[2]], [REPLIES[2]]) == pytest.approx([alone(folder, ids[cut])], abs=1e-5)


def test_pickles_hold_settings_and_load_again(folder):
    scorer = SCORERS["reward_model"](str(folder), sees="answer", batch_size=2)
    first = scores(scorer, PROMPTS, REPLIES)
    assert scorer.model is scorer.model
    assert scorer.path == str(folder)
    assert scorer.model is RewardModelScorer(str(folder)).model
    data = pickle.dumps(scorer)
    assert len(data) < 2000
    copy = pickle.loads(data)
    assert (copy.__name__, copy.columns, copy.sees) == ("reward_model", (), "answer")
    assert scores(copy, PROMPTS, REPLIES) == first
    assert scores(copy, [], []) == []


def test_the_model_is_on_the_processs_device_and_in_evaluation_mode(folder):
    from accelerate import PartialState

    scorer = RewardModelScorer(str(folder))
    assert scorer.model.device == PartialState().device
    assert not scorer.model.training
    assert RewardModelScorer(str(folder), dtype="bfloat16", device="cpu").model.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sees": "thought"}, "^sees: expected one of answer, everything, got 'thought'"),
        ({"truncation_side": "middle"}, "^truncation_side: expected left or right"),
        ({"batch_size": 0}, "^batch_size: expected at least 1, got 0"),
        ({"max_length": 0}, "^max_length: expected at least 1, got 0"),
        ({"empty_score": 0.0}, "^empty_score: has no effect with `sees: everything`"),
        ({"model": resolve_model("builtin:tiny")}, "^model: .*tiny_base holds Qwen3ForCausalLM, not a sequence"),
    ],
)
def test_what_is_refused_before_the_model_is_loaded(folder, changes, message):
    with pytest.raises(ValueError, match=message):
        RewardModelScorer(**{"model": str(folder), **changes})


def test_a_model_without_a_head_or_with_many_labels_is_refused(folder, tmp_path, tokenizer):
    with pytest.raises(UserError, match=r"hold no weights for score\.weight"):
        load_reward_model(resolve_model("builtin:tiny"), device="cpu")
    model = Qwen3ForSequenceClassification.from_pretrained(folder)
    two = Qwen3ForSequenceClassification(type(model.config)(**{**model.config.to_dict(), "num_labels": 2}))
    two.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(UserError, match="has 2 labels"):
        load_reward_model(str(tmp_path), device="cpu")


def test_messages_without_a_chat_template_are_refused(folder, tmp_path, tokenizer):
    Qwen3ForSequenceClassification.from_pretrained(folder).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert "chat_template" not in config
    with pytest.raises(UserError, match="has no chat template"):
        scores(RewardModelScorer(str(tmp_path)), PROMPTS[:1], REPLIES[:1])
