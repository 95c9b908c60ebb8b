import subprocess
import sys

import pytest

from trl_reasoning.data import DataError, chat_template_names, resolve_chat_template


TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "1+1?"},
    {"role": "assistant", "content": "<think>\none more\n</think>\n\n2"},
    {"role": "user", "content": "+1?"},
    {"role": "assistant", "reasoning_content": "one more", "content": "3"},
]


@pytest.fixture(scope="module")
def tokenizer():
    """A byte-level tokenizer without merges, so that each character of these texts is one token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={char: index for index, char in enumerate(alphabet)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core)
    tokenizer.chat_template = resolve_chat_template("chatml_think")
    return tokenizer


def render(tokenizer, turns, **settings):
    return tokenizer.apply_chat_template(turns, tokenize=False, **settings)


def test_thoughts_stay_in_every_turn(tokenizer):
    assert render(tokenizer, TURNS) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\n1+1?<|im_end|>\n"
        "<|im_start|>assistant\n<think>\none more\n</think>\n\n2<|im_end|>\n"
        "<|im_start|>user\n+1?<|im_end|>\n"
        "<|im_start|>assistant\n<think>\none more\n</think>\n\n3<|im_end|>\n"
    )


def test_the_generation_prompt_and_its_empty_thought(tokenizer):
    prompt = render(tokenizer, TURNS[:2], add_generation_prompt=True)
    assert prompt.endswith("1+1?<|im_end|>\n<|im_start|>assistant\n")
    switched_off = render(tokenizer, TURNS[:2], add_generation_prompt=True, enable_thinking=False)
    assert switched_off == f"{prompt}<think>\n\n</think>\n\n"
    assert render(tokenizer, TURNS[:2], add_generation_prompt=True, enable_thinking=True) == prompt


@pytest.mark.parametrize("turns", [3, 5])
def test_a_prompt_is_a_prefix_of_prompt_and_reply(tokenizer, turns):
    prompt = render(tokenizer, TURNS[: turns - 1], add_generation_prompt=True)
    assert render(tokenizer, TURNS[:turns]).startswith(prompt)


def test_generation_marks_cover_replies_and_their_end_token(tokenizer):
    encoded = tokenizer.apply_chat_template(TURNS, return_dict=True, return_assistant_tokens_mask=True)
    marked = [token for token, mark in zip(encoded["input_ids"], encoded["assistant_masks"], strict=True) if mark]
    assert tokenizer.decode(marked) == (
        "<think>\none more\n</think>\n\n2<|im_end|><think>\none more\n</think>\n\n3<|im_end|>"
    )


def test_names_are_ours_and_trls():
    names = chat_template_names()
    assert {"builtin_tiny", "chatml_think", "qwen3", "qwen3_training"} <= set(names)
    assert "{%- generation %}" in resolve_chat_template("qwen3_training")


def test_a_path(tmp_path, monkeypatch):
    (tmp_path / "mine.jinja").write_text("{{ messages }}", "utf-8")
    assert resolve_chat_template(str(tmp_path / "mine.jinja")) == "{{ messages }}"
    assert resolve_chat_template("mine.jinja", base_dir=tmp_path) == "{{ messages }}"
    with pytest.raises(DataError, match=r"no file at .*other\.jinja"):
        resolve_chat_template(str(tmp_path / "other.jinja"))


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(DataError, match=r"did you mean 'chatml_think'\?.*qwen3_training"):
        resolve_chat_template("chatml_thinks")


def test_finding_templates_imports_no_trl():
    code = (
        "import sys; from trl_reasoning.data import resolve_chat_template; resolve_chat_template('qwen3_training'); "
        "assert not {'trl', 'torch', 'datasets', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
