"""Two tokenizers are one where their tokens, their splits and their ends agree; the first difference is named."""

import pytest
from transformers import AddedToken, AutoTokenizer, PreTrainedTokenizerFast

from trl_reasoning.builtin import resolve_model
from trl_reasoning.errors import UserError
from trl_reasoning.generation.vocabulary import check_same_vocabulary, shared_width


NAMES = {"student_name": "small/one", "teacher_name": "big/one"}


@pytest.fixture
def tokenizer():
    return AutoTokenizer.from_pretrained(resolve_model("builtin:tiny"))


def test_another_class_of_the_same_tokenizer_passes(tokenizer):
    class Renamed(PreTrainedTokenizerFast):
        pass

    same = Renamed(tokenizer_object=tokenizer.backend_tokenizer, eos_token="<|end|>", pad_token="<|end|>")
    check_same_vocabulary(tokenizer, same, **NAMES)


def test_a_token_that_only_one_has_is_named(tokenizer):
    other = AutoTokenizer.from_pretrained(resolve_model("builtin:tiny"))
    other.add_tokens(["<tool>"])
    with pytest.raises(UserError) as found:
        check_same_vocabulary(tokenizer, other, **NAMES)
    for word in ("small/one (student)", "big/one (teacher)", f"token {len(tokenizer)} is none", "'<tool>' of the tea"):
        assert word in str(found.value)


def test_the_first_token_with_another_number_is_named(tokenizer):
    vocabulary = tokenizer.get_vocab()
    swapped = {**vocabulary, "0": vocabulary["1"], "1": vocabulary["0"]}
    other = build(swapped, r"[\s\S]")
    with pytest.raises(UserError, match=rf"token {vocabulary['0']} is '0' of the student and '1' of the teacher"):
        check_same_vocabulary(tokenizer, other, **NAMES)


def test_the_same_tokens_split_differently_are_refused(tokenizer):
    """One splits by characters, the other by words, which are then unknown."""
    by_words = build(tokenizer.get_vocab(), r"\w+|[^\w]")
    with pytest.raises(UserError, match=r"same tokens and split text differently: \['1', '2', '3'\] and .*at token 4"):
        check_same_vocabulary(tokenizer, by_words, **NAMES)


def test_another_end_of_a_reply_is_refused_with_the_setting_that_mends_it(tokenizer):
    other = AutoTokenizer.from_pretrained(resolve_model("builtin:tiny"), eos_token="<|user|>")
    with pytest.raises(UserError, match=r'eos_token: "<\|user\|>"'):
        check_same_vocabulary(tokenizer, other, **NAMES)


@pytest.mark.parametrize(("student", "teacher", "shared"), [(120, 128, 120), (128, 120, 120), (110, 110, 110)])
def test_the_smaller_width_is_shared(tokenizer, student, teacher, shared):
    assert shared_width(tokenizer, student, teacher, **NAMES) == shared


def test_missing_rows_are_refused(tokenizer):
    count = len(tokenizer)
    with pytest.raises(UserError, match=f"big/one has {count - 1} rows of logits and its tokenizer {count} tokens"):
        shared_width(tokenizer, count, count - 1, **NAMES)


def build(vocabulary: dict[str, int], pattern: str) -> PreTrainedTokenizerFast:
    from tokenizers import Regex, Tokenizer, pre_tokenizers
    from tokenizers.models import WordLevel

    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="<|unknown|>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True, normalized=False)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", unk_token="<|unknown|>")
