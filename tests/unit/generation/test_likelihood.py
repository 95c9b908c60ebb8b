"""Log-probabilities and divergences of given replies, by hand and by a forward of each row alone."""

import itertools
import math
from types import SimpleNamespace

import pytest
import torch

from trl_reasoning.errors import UserError
from trl_reasoning.generation import TransformersBackend, likelihood
from trl_reasoning.generation.likelihood import render_replies, reply_divergences, reply_logprobs


END = "<|end|>"
# Two tokens and an end; what comes next depends on the last one.
OURS = {
    "": {"a": 0.5, "b": 0.25, END: 0.25},
    "a": {"a": 0.25, "b": 0.25, END: 0.5},
    "b": {"a": 0.6, "b": 0.2, END: 0.2},
}
START = {"": {"a": 0.3, "b": 0.3, END: 0.4}, "a": {"a": 0.5, "b": 0.1, END: 0.4}, "b": {"a": 0.2, "b": 0.4, END: 0.4}}


def ids(backend, text):
    return backend.tokenizer(text=text)["input_ids"]


def test_log_probabilities_by_hand(table_backend):
    backend = table_backend(OURS)
    prompt = ids(backend, "x")
    replies = [(prompt, ids(backend, f"ab{END}")), (prompt, []), (prompt, ids(backend, "b"))]
    found = reply_logprobs(backend, replies)
    assert found[0] == pytest.approx([math.log(0.5), math.log(0.25), math.log(0.2)])
    assert found[1] == []
    assert found[2] == pytest.approx([math.log(0.25)])


def test_the_divergence_of_a_token_by_hand(table_backend):
    backend, start = table_backend(OURS), table_backend(START)
    [found] = reply_divergences(backend, start, [(ids(backend, "x"), ids(backend, "ab"))])
    # At the start 0.5 ln(0.5/0.3) + 0.25 ln(0.25/0.3) + 0.25 ln(0.25/0.4); after `a` likewise.
    first = 0.5 * math.log(5 / 3) + 0.25 * math.log(5 / 6) + 0.25 * math.log(5 / 8)
    second = 0.25 * math.log(0.5) + 0.25 * math.log(2.5) + 0.5 * math.log(1.25)
    assert found == pytest.approx([first, second], abs=1e-6)


def test_its_mean_over_all_replies_is_the_divergence_of_the_replies(table_backend):
    """Brute force: every reply of at most three tokens, with its probability under both models."""
    backend, start = table_backend(OURS), table_backend(START)
    replies = [
        [*body, END] if len(body) < 3 else list(body)
        for size in range(4)
        for body in itertools.product("ab", repeat=size)
    ]
    probabilities = [[_probability(table, reply) for reply in replies] for table in (OURS, START)]
    assert sum(probabilities[0]) == pytest.approx(1)
    exact = sum(ours * math.log(ours / theirs) for ours, theirs in zip(*probabilities, strict=True))
    prompt = ids(backend, "x")
    found = reply_divergences(backend, start, [(prompt, ids(backend, "".join(reply))) for reply in replies])
    mean = sum(weight * sum(values) for weight, values in zip(probabilities[0], found, strict=True))
    assert mean == pytest.approx(exact, abs=1e-6)
    assert exact > 0.1


def _probability(table, reply):
    return math.prod(table[last][token] for last, token in zip(["", *reply], reply, strict=False))


def test_neither_batches_nor_chunks_change_a_number(model, tokenizer, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    rows = [
        tuple(torch.randint(7, len(tokenizer), (size,), generator=generator).tolist() for size in sizes)
        for sizes in ((3, 9), (12, 2), (5, 20), (4, 1), (6, 0))
    ]
    alone = []
    for prompt, reply in rows:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([prompt + reply])).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        alone.append([logits[place, token].item() for place, token in enumerate(reply)])
    for batch_size, chunk, most in ((1, 256, 2**28), (5, 4, 2**28), (5, 256, 3000)):
        monkeypatch.setattr(likelihood, "_CHUNK", chunk)
        monkeypatch.setattr(likelihood, "_MOST_LOGITS", most)
        found = reply_logprobs(TransformersBackend(model, tokenizer, batch_size), rows)
        for values, expected in zip(found, alone, strict=True):
            assert values == pytest.approx(expected, abs=2e-5)


def test_padding_rows_of_an_embedding_do_not_count(table_backend):
    ours, theirs = table_backend(OURS), table_backend(OURS)
    wider = theirs.model.logits.shape[1] + 22
    padded = torch.full((theirs.model.logits.shape[0], wider), 5.0)
    padded[:, : theirs.model.logits.shape[1]] = theirs.model.logits
    theirs.model.logits = padded
    [found] = reply_divergences(ours, theirs, [(ids(ours, "x"), ids(ours, f"ab{END}"))])
    assert found == pytest.approx([0, 0, 0], abs=1e-6)


def test_rows_that_cannot_be_measured_say_why(table_backend):
    backend = table_backend(OURS)
    with pytest.raises(UserError, match="reply 0 has no prompt"):
        reply_logprobs(backend, [([], [5])])
    with pytest.raises(UserError, match="reply 1 has 65 tokens with its prompt, more than the 64 positions of table"):
        reply_logprobs(backend, [([7], [8]), ([7] * 60, [8] * 5)])
    other = table_backend(START, name="other")
    other.tokenizer.add_tokens(["<new>"])
    with pytest.raises(UserError, match="reference: the vocabularies of table and other differ"):
        reply_divergences(backend, other, [([7], [8])])


def test_replies_are_rendered_as_in_training(tokenizer):
    prompt = [{"role": "user", "content": "7+5=?"}]
    replies = [[{"role": "assistant", "content": text}] for text in ("<think>7+5=12</think>12", "<think></think>9")]
    start = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=True, return_dict=True)
    for (found, reply), text in zip(render_replies(tokenizer, prompt, replies), replies, strict=True):
        assert found == start["input_ids"]
        assert tokenizer.decode(reply) == text[0]["content"] + END
    (shown, first), (_, second) = render_replies(tokenizer, "7+5=?", [" 12", f"9{END}"])
    assert tokenizer.decode(shown) == "7+5=?"
    assert (tokenizer.decode(first), tokenizer.decode(second)) == (f" 12{END}", f"9{END}")


def test_a_reply_begins_where_the_texts_with_and_without_it_part():
    """A template that opens the thought in the generation prompt alone: that end of the prompt is no context."""
    rendered = {0: [1, 2, 3, 9], 1: [1, 2, 3, 4, 5], 2: [1, 2, 3, 6]}

    def apply_chat_template(messages, **kwargs):
        return {"input_ids": rendered[len(messages) - 1 and messages[-1]["number"]]}

    tokenizer = SimpleNamespace(chat_template="template", apply_chat_template=apply_chat_template)
    replies = [[{"role": "assistant", "content": "", "number": number}] for number in (1, 2)]
    found = render_replies(tokenizer, [{"role": "user", "content": ""}], replies)  # type: ignore[arg-type]
    assert found == [([1, 2, 3], [4, 5]), ([1, 2, 3], [6])]
