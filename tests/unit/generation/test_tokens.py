"""Prompt rendering, the end of a row, and the text of a completion."""

import copy

import pytest

from trl_reasoning.errors import UserError
from trl_reasoning.generation import completion_to_text, render_prompt, trim_at_stop


EOS, OTHER_EOS, PAD = 1, 3, 0


def test_the_eos_is_kept_and_padding_cut_when_pad_is_eos(tokenizer):
    assert trim_at_stop([7, 8, EOS, EOS], tokenizer, (), [EOS], EOS) == ([7, 8, EOS], "stop")


def test_padding_after_eos_is_cut_when_pad_differs(tokenizer):
    assert trim_at_stop([7, 8, EOS, PAD, PAD], tokenizer, (), [EOS], PAD) == ([7, 8, EOS], "stop")


def test_every_eos_id_ends_a_row(tokenizer):
    assert trim_at_stop([7, OTHER_EOS, PAD], tokenizer, (), [EOS, OTHER_EOS], PAD) == ([7, OTHER_EOS], "stop")


def test_a_row_without_eos_was_cut(tokenizer):
    assert trim_at_stop([7, 8, 9], tokenizer, (), [EOS], PAD) == ([7, 8, 9], "length")


def test_padding_up_to_longer_rows_of_another_batch_is_not_an_end(tokenizer):
    assert trim_at_stop([7, 8, PAD, PAD], tokenizer, (), [EOS], PAD) == ([7, 8], "length")


@pytest.mark.parametrize("pad_is_eos", [False, True])
def test_a_stop_string_ends_a_row_without_padding(tokenizer, pad_is_eos):
    row = tokenizer("4</answer>")["input_ids"]
    pad = tokenizer.eos_token_id if pad_is_eos else tokenizer.pad_token_id
    trimmed = trim_at_stop([*row, pad, pad], tokenizer, ("</answer>",), [tokenizer.eos_token_id], pad)
    assert trimmed == (row, "stop_string")


def test_the_first_of_several_stop_strings_counts(tokenizer):
    row = tokenizer("ab;cd.ef;")["input_ids"]
    assert trim_at_stop(row, tokenizer, (".", ";"), [EOS], PAD) == (row[:3], "stop_string")


def test_an_eos_before_the_stop_string_ends_the_row(tokenizer):
    row = [*tokenizer("ab")["input_ids"], tokenizer.eos_token_id, *tokenizer(";")["input_ids"]]
    assert trim_at_stop(row, tokenizer, (";",), [tokenizer.eos_token_id], PAD) == (row[:3], "stop")


def test_a_stop_string_may_be_a_whole_token(tokenizer):
    row = tokenizer("<think>a</think>b")["input_ids"]
    assert len(row) == 4
    assert trim_at_stop(row, tokenizer, ("</think>",), [tokenizer.eos_token_id], PAD) == (row[:3], "stop_string")


def test_a_stop_string_that_began_in_the_prompt_leaves_only_padding(tokenizer):
    row = tokenizer("r>")["input_ids"]  # the prompt ended with "</answe"
    pad = tokenizer.pad_token_id
    trimmed = trim_at_stop([*row, pad], tokenizer, ("</answer>",), [tokenizer.eos_token_id], pad)
    assert trimmed == (row, "stop_string")


def test_text_keeps_think_tags_and_drops_special_tokens(tokenizer):
    ids = tokenizer("<think>1+1=2</think>2<|end|>")["input_ids"]
    assert completion_to_text(tokenizer, ids) == "<think>1+1=2</think>2"


def test_text_keeps_think_tags_that_are_special(tokenizer):
    special = copy.deepcopy(tokenizer)
    special.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
    ids = special("<think>1</think>2<|end|>")["input_ids"]
    assert special.decode(ids, skip_special_tokens=True) == "12"
    assert completion_to_text(special, ids) == "<think>1</think>2"


def test_messages_go_through_the_chat_template(tokenizer):
    ids = render_prompt(tokenizer, [{"role": "user", "content": "1+1=?"}])
    assert tokenizer.decode(ids) == "<|user|>1+1=?<|end|><|assistant|>"


def test_a_last_assistant_message_is_continued(tokenizer):
    messages = [{"role": "user", "content": "1+1=?"}, {"role": "assistant", "content": "<think>1"}]
    rendered = tokenizer.decode(render_prompt(tokenizer, messages))
    assert rendered.endswith("<|assistant|><think>1")


def test_a_string_is_tokenized_as_it_is(tokenizer):
    assert tokenizer.decode(render_prompt(tokenizer, "1+1=")) == "1+1="


def test_messages_without_a_chat_template_are_refused(tokenizer):
    bare = copy.deepcopy(tokenizer)
    bare.chat_template = None
    with pytest.raises(UserError, match="no chat template"):
        render_prompt(bare, [{"role": "user", "content": "1+1=?"}])
