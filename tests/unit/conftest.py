"""A model whose probabilities are written down: what it says next depends on the last token alone."""

from types import SimpleNamespace

import pytest
import torch

from trl_reasoning.builtin.tiny import build_tokenizer


class TableModel:
    """Logits from a table of probabilities by the last character; any other last token has those of `""`."""

    def __init__(self, tokenizer, table):
        vocabulary = tokenizer.get_vocab()
        self.logits = torch.full((len(vocabulary), len(vocabulary)), -60.0)
        for last, probabilities in sorted(table.items()):
            rows = slice(None) if last == "" else vocabulary[last]
            self.logits[rows] = -60.0
            for token, probability in probabilities.items():
                self.logits[rows, vocabulary[token]] = torch.tensor(probability).log()
        text = SimpleNamespace(vocab_size=len(vocabulary), max_position_embeddings=64)
        self.config = SimpleNamespace(get_text_config=lambda: text)
        self.device = torch.device("cpu")

    def __call__(self, input_ids, attention_mask):
        return SimpleNamespace(logits=self.logits[input_ids])


@pytest.fixture(scope="session")
def table_backend():
    """Makes a backend of a table `{last character: {next token: probability}}`; the end token is `<|end|>`."""

    def make(table, name="table", batch_size=4):
        tokenizer = build_tokenizer()
        return SimpleNamespace(
            model=TableModel(tokenizer, table),
            tokenizer=tokenizer,
            batch_size=batch_size,
            name=name,
            pad_id=tokenizer.pad_token_id,
        )

    return make
