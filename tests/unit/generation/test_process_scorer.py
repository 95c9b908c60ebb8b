"""Process reward models: where a step's score stands, for one label and two, in batches and beyond the room."""

import pickle

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForTokenClassification

from trl_reasoning.errors import UserError
from trl_reasoning.generation.process_scorer import ProcessScorer, load_process_model
from trl_reasoning.generation.tokens import render_prompt


PROMPT = [{"role": "user", "content": "7+5-3=?"}]
TEXT = "<think>7+5=12\n12-3=9</think>9"


def save_model(folder, tokenizer, labels: int) -> str:
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, max_position_embeddings=256, num_labels=labels, initializer_range=0.5,
        pad_token_id=tokenizer.pad_token_id, bos_token_id=None, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(labels)
        Qwen3ForTokenClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(params=[1, 2])
def path(request, tmp_path, tokenizer):
    return save_model(tmp_path / "model", tokenizer, request.param)


def by_hand(path, tokenizer, prompt, steps: list[str]) -> list[float]:
    """One forward pass for each step, over the prompt and the steps up to it."""
    model = Qwen3ForTokenClassification.from_pretrained(path).eval()
    ids, found = list(render_prompt(tokenizer, prompt)), []
    for step in steps:
        ids += tokenizer(step + "\n")["input_ids"]
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, -1].double()
        found.append((logits.sigmoid() if len(logits) == 1 else logits.softmax(0))[-1].item())
    return found


def test_scores_stand_at_the_end_of_each_step(path, tokenizer):
    scorer = ProcessScorer(path)
    (steps,) = scorer([PROMPT], [TEXT])
    assert [step.end for step in steps] == [13, 20, 29]
    expected = by_hand(path, tokenizer, PROMPT, ["7+5=12", "12-3=9", "9"])
    assert [step.score for step in steps] == pytest.approx(expected, abs=1e-5)
    assert len({round(value, 3) for value in expected}) == 3


def test_batches_and_plain_prompts_give_the_same(path, tokenizer):
    texts = [TEXT, "<think>1</think>", "no thought", ""]
    prompts = [PROMPT, "1+1=?", PROMPT, PROMPT]
    alone = [ProcessScorer(path)([prompt], [text])[0] for prompt, text in zip(prompts, texts, strict=True)]
    together = ProcessScorer(path, batch_size=4)(prompts, texts)
    assert [len(row) for row in together] == [3, 1, 1, 0]
    for left, right in zip(alone, together, strict=True):
        assert [step.score for step in right] == pytest.approx([step.score for step in left], abs=1e-5)
    assert together[1][0].score == pytest.approx(by_hand(path, tokenizer, "1+1=?", ["1"])[0], abs=1e-5)


def test_messages_as_plain_text(path, tokenizer):
    messages = [{"role": "system", "content": "think"}, *PROMPT]
    (steps,) = ProcessScorer(path, plain_prompt=True)([messages], ["<think>1</think>"])
    assert steps[0].score == pytest.approx(by_hand(path, tokenizer, "7+5-3=?", ["1"])[0], abs=1e-5)


def test_steps_beyond_the_room_get_no_score(path, tokenizer):
    whole = [step.score for step in ProcessScorer(path)([PROMPT], [TEXT])[0]]
    prompt = len(render_prompt(tokenizer, PROMPT))
    room = prompt + len("7+5=12\n")
    scored = [step.score for step in ProcessScorer(path, max_length=room)([PROMPT], [TEXT])[0]]
    assert scored == [pytest.approx(whole[0], abs=1e-6), None, None]
    assert [step.score for step in ProcessScorer(path, max_length=room - 1)([PROMPT], [TEXT])[0]] == [None] * 3


def test_settings_survive_pickling(path):
    scorer = ProcessScorer(path, by="paragraph", answer=False)
    scorer([PROMPT], [TEXT])
    copy = pickle.loads(pickle.dumps(scorer))
    assert copy._loaded is None and copy.by == "paragraph"
    assert copy([PROMPT], [TEXT]) == scorer([PROMPT], [TEXT])


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"by": "word"}, "by"),
        ({"separator": ""}, "separator"),
        ({"batch_size": 0}, "batch_size"),
        ({"max_length": 0}, "max_length"),
    ],
)
def test_bad_settings(settings, key):
    with pytest.raises(ValueError, match=f"^{key}: "):
        ProcessScorer("somewhere", **settings)


def test_other_models_are_refused(tmp_path, tokenizer, model):
    with pytest.raises(UserError, match="has 3 labels"):
        load_process_model(save_model(tmp_path / "three", tokenizer, 3), device="cpu")
    model.save_pretrained(tmp_path / "causal")
    with pytest.raises(ValueError, match="^model: .*Qwen3ForCausalLM"):
        ProcessScorer(str(tmp_path / "causal"))
    tokenizer.save_pretrained(tmp_path / "causal")
    with pytest.raises(UserError, match="no weights for"):
        load_process_model(str(tmp_path / "causal"), device="cpu")
