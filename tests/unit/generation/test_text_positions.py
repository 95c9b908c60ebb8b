"""Places in a text and the tokens that write them, with tokens that go over a boundary and characters of several."""

import pytest
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from trl_reasoning.errors import UserError
from trl_reasoning.generation.text_positions import text_with_token_ends, token_at


@pytest.fixture(scope="module")
def byte_level():
    """Bytes, and a few longer tokens: `=2` with the newline and the digit after it, `ok` with a blank before it."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    newline, blank = "Ċ", "Ġ"
    merges = [("=", "2"), ("=2", newline), (f"=2{newline}", "3"), (blank, "o"), (f"{blank}o", "k")]
    words = [*letters, *("".join(pair) for pair in merges), "<|end|>"]
    tokenizer = Tokenizer(BPE({word: index for index, word in enumerate(words)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>")


def test_a_token_that_goes_over_a_boundary(byte_level):
    ids = byte_level("1+1=2\n3+1=4")["input_ids"]
    assert [byte_level.decode([token]) for token in ids] == ["1", "+", "1", "=2\n3", "+", "1", "=", "4"]
    text, ends = text_with_token_ends(byte_level, ids)
    assert (text, ends) == ("1+1=2\n3+1=4", [1, 2, 3, 7, 8, 9, 10, 11])
    # The first line ends with its fifth character, which the fourth token writes together with the next line's start.
    assert token_at(ends, 5) == 3
    assert token_at(ends, 11) == 7


def test_characters_of_several_tokens(byte_level):
    text = "é 你\n😀 ok"
    ids = byte_level(text)["input_ids"]
    assert len(ids) == 2 + 1 + 3 + 1 + 4 + 1
    found, ends = text_with_token_ends(byte_level, ids)
    assert found == text
    assert ends == [0, 1, 2, 2, 2, 3, 4, 4, 4, 4, 5, 8]
    # 你 is the third character: its last byte is the sixth token.
    assert token_at(ends, 3) == 5


def test_special_tokens_write_nothing_and_a_cut_character_is_left_out(byte_level):
    ids = byte_level("1 ok")["input_ids"]
    end = byte_level.eos_token_id
    assert text_with_token_ends(byte_level, [*ids, end, end]) == ("1 ok", [1, 4, 4, 4])
    cut = byte_level("1😀")["input_ids"][:-1]
    assert text_with_token_ends(byte_level, cut) == ("1", [1, 1, 1, 1])
    assert text_with_token_ends(byte_level, []) == ("", [])


def test_think_tags_are_text(tokenizer):
    ids = tokenizer("<think>1\n2</think>3<|end|>")["input_ids"]
    assert text_with_token_ends(tokenizer, ids) == ("<think>1\n2</think>3", [7, 8, 9, 10, 18, 19, 19])


def test_any_prefix_is_what_the_tokenizer_decodes(byte_level):
    text = "1+1=2\n3 ok é ok"
    ids = byte_level(text)["input_ids"]
    _, ends = text_with_token_ends(byte_level, ids)
    for count, end in enumerate(ends, start=1):
        assert byte_level.decode(ids[:count]).rstrip("\ufffd") == text[:end]


def test_beyond_the_text(byte_level):
    assert token_at([1, 2], 3) == 1


def test_slow_tokenizers_are_refused():
    class Slow:
        is_fast = False

    with pytest.raises(UserError, match="fast tokenizer"):
        text_with_token_ends(Slow(), [1])
