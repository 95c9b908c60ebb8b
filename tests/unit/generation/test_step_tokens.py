"""How a process reward model reads a solution: the same separator after every step, the same format in every use."""

import os

import pytest

from trl_reasoning.errors import UserError
from trl_reasoning.generation.step_tokens import (
    STEP_FORMAT_FILE,
    StepFormat,
    read_step_format,
    settle_step_format,
)
from trl_reasoning.generation.tokens import render_prompt


SMOLLM2 = os.environ.get("TRL_REASONING_SMOLLM2")
CHAT = [{"role": "system", "content": "think"}, {"role": "user", "content": "7+5-3=?"}]
STEPS = ["7+5=12", "12-3=9", "So it is 9."]


@pytest.fixture(scope="module")
def bpe():
    """A byte-pair tokenizer, trained here: it merges a full stop with the line break after it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "isolated")
    tokenizer.decoder = decoders.Fuse()
    trainer = trainers.BpeTrainer(vocab_size=60, special_tokens=["<s>"], show_progress=False)
    tokenizer.train_from_iterator(["9.\n" * 50 + "So it is 7+5=12\n12-3=9\n?"], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", pad_token="<s>")


def check(tokenizer, prompt, step_format):
    """The pieces between the ends are the prompt, and each step with the separator's own tokens at its end."""
    ids, ends = step_format.token_ids(tokenizer, prompt, STEPS)
    separator = tokenizer(text=step_format.separator, add_special_tokens=False)["input_ids"]
    start = len(render_prompt(tokenizer, prompt))
    assert ids[:start] == render_prompt(tokenizer, prompt)
    for step, end in zip(STEPS, ends, strict=True):
        piece = ids[start : end + 1]
        assert piece[-len(separator) :] == separator
        assert tokenizer.decode(piece[: -len(separator)]) == step
        start = end + 1
    assert start == len(ids)


@pytest.mark.parametrize("separator", ["\n", "\n\n", ";"])
def test_separator_is_the_same_after_every_step(tokenizer, separator):
    check(tokenizer, CHAT, StepFormat(separator=separator))


def test_a_tokenizer_that_would_merge_it_with_the_step(bpe):
    together = bpe(text="So it is 9.\n", add_special_tokens=False)["input_ids"]
    alone = bpe(text="\n", add_special_tokens=False)["input_ids"]
    assert together[-1:] != alone
    check(bpe, "7+5", StepFormat())


@pytest.mark.skipif(SMOLLM2 is None, reason="TRL_REASONING_SMOLLM2 names no folder with SmolLM2-135M-Instruct")
@pytest.mark.parametrize("separator", ["\n", "\n\n", " ки\n"])
def test_a_real_tokenizer(separator):
    from transformers import AutoTokenizer

    check(AutoTokenizer.from_pretrained(SMOLLM2), CHAT, StepFormat(separator=separator))


def test_messages_as_plain_text(tokenizer):
    ids, _ = StepFormat(plain_prompt=True).token_ids(tokenizer, CHAT, STEPS[:1])
    assert tokenizer.decode(ids) == "7+5-3=?7+5=12\n"
    ids, _ = StepFormat().token_ids(tokenizer, CHAT, STEPS[:1])
    assert tokenizer.decode(ids) == "<|system|>think<|end|><|user|>7+5-3=?<|end|><|assistant|>7+5=12\n"


def test_no_template_reads_text(bpe):
    ids, _ = StepFormat().token_ids(bpe, CHAT, STEPS[:1])
    assert ids == StepFormat().token_ids(bpe, "7+5-3=?", STEPS[:1])[0]


def test_a_separator_without_tokens(bpe):
    with pytest.raises(UserError, match="separator: the tokenizer makes no token of 'ж'"):
        StepFormat(separator="ж").token_ids(bpe, "7", STEPS)


def test_saved_and_read(tmp_path):
    wanted = StepFormat(separator="\n\n", plain_prompt=True)
    wanted.save(tmp_path)
    assert read_step_format(tmp_path / STEP_FORMAT_FILE) == wanted
    assert read_step_format(tmp_path / "nothing.json") is None
    assert read_step_format(None) is None


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, StepFormat(";", True)),
        ({"separator": ";"}, StepFormat(";", True)),
        ({"plain_prompt": True}, StepFormat(";", True)),
    ],
)
def test_the_training_decides(asked, found):
    asked = {"separator": None, "plain_prompt": None, **asked}
    assert settle_step_format(StepFormat(";", True), "model", **asked) == found


@pytest.mark.parametrize(("key", "value"), [("separator", "\n"), ("plain_prompt", False)])
def test_what_contradicts_it_is_an_error(key, value):
    asked = {"separator": None, "plain_prompt": None, key: value}
    with pytest.raises(ValueError, match=f"^{key}: outputs/prm was trained with .*remove the key"):
        settle_step_format(StepFormat(";", True), "outputs/prm", **asked)


def test_models_that_say_nothing():
    assert settle_step_format(None, "m", separator=None, plain_prompt=None) == StepFormat("\n", False)
    assert settle_step_format(None, "m", separator=";", plain_prompt=True) == StepFormat(";", True)
