"""Differences of logits against values worked out by hand."""

import math

import pytest
import torch
from transformers import AutoTokenizer

from trl_reasoning.builtin import resolve_model
from trl_reasoning.exporting import Difference, compare, probe_sequences


def test_equal_logits_differ_by_nothing():
    logits = [torch.randn(3, 7)]
    assert compare(logits, [logits[0].clone()]) == Difference(0.0, 0.0, 0.0, scale=logits[0].abs().max().item())


def test_a_shift_of_all_logits_changes_no_probability():
    logits = torch.randn(3, 7)
    difference = compare([logits], [logits + 2.0])
    assert (difference.mean, difference.max) == pytest.approx((2.0, 2.0), rel=1e-6)
    assert difference.kl == pytest.approx(0.0, abs=1e-12)


def test_kl_by_hand_and_its_direction():
    # p = (3/4, 1/4), q = (1/2, 1/2): KL(p, q) = 3/4 ln(3/2) + 1/4 ln(1/2), KL(q, p) = 1/2 ln(2/3) + 1/2 ln 2.
    p, q = torch.tensor([[math.log(3.0), 0.0]]), torch.tensor([[0.0, 0.0]])
    assert compare([p], [q]).kl == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5), rel=1e-6)
    assert compare([q], [p]).kl == pytest.approx(0.5 * math.log(2 / 3) + 0.5 * math.log(2), rel=1e-6)


def test_every_position_counts_once_whatever_its_sequence():
    same, half = torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 0.0], [0.0, 0.0]])
    other = torch.tensor([[math.log(3.0), 0.0], [math.log(3.0), 0.0]])
    one = compare([half], [other]).kl
    assert compare([same, half], [same, other]).kl == pytest.approx(2 * one / 3, rel=1e-6)
    assert compare([same, half], [same, other]).max == pytest.approx(math.log(3.0))


def test_a_broken_model_is_not_near():
    assert math.isnan(compare([torch.zeros(1, 2)], [torch.full((1, 2), torch.nan)]).max)


def test_probes_are_worked_problems_in_the_models_format():
    tokenizer = AutoTokenizer.from_pretrained(resolve_model("builtin:tiny"))
    sequences = probe_sequences(tokenizer)
    assert (
        tokenizer.decode(sequences[0])
        == "<|user|>What is 17+25?<|end|><|assistant|>17+25 is 42. The answer is 42.<|end|>"
    )
    tokenizer.chat_template = None
    assert tokenizer.decode(probe_sequences(tokenizer)[0]) == "What is 17+25?\n17+25 is 42. The answer is 42."
