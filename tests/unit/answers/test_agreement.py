"""Verdicts on generated answers whose verdict is known: rewritings of a gold answer and near misses."""

import random

import pytest
from answer_cases import MAKERS, make_case, prediction_of
from hypothesis import given, settings
from hypothesis import strategies as st

from trl_reasoning.answers import verify, verify_batch
from trl_reasoning.answers.normalize import read_value
from trl_reasoning.answers.numeric import decide


RANDOMS = st.randoms(use_true_random=False)
# Kinds in which math-verify, given both texts in math marks, has the same policy.
SHARED_KINDS = ("root", "polynomial", "power", "pi", "fraction")


@pytest.mark.parametrize("maker", MAKERS)
@settings(deadline=None, max_examples=80)
@given(draw=RANDOMS)
def test_every_answer_gets_its_known_verdict(maker, draw):
    case = maker(draw)
    verdict = verify(prediction_of(case.answer, draw), case.gold)
    assert verdict.status == ("right" if case.is_right else "wrong"), case


@settings(deadline=None, max_examples=100)
@given(draw=RANDOMS)
def test_every_gold_is_equal_to_itself(draw):
    gold = make_case(draw).gold
    assert verify(prediction_of(gold, draw), gold).is_right


@settings(deadline=None, max_examples=300)
@given(draw=RANDOMS)
def test_values_at_points_never_contradict_the_known_verdict(draw):
    case = make_case(draw)
    if case.kind in SHARED_KINDS:
        assert decide(read_value(case.answer).text, read_value(case.gold).text) in (None, case.is_right)


def test_a_batch_gives_the_verdicts_of_single_answers():
    draw = random.Random(0)
    cases = [make_case(draw) for _ in range(200)]
    predictions = [prediction_of(case.answer, draw) for case in cases]
    golds = [case.gold for case in cases]
    assert verify_batch(predictions, golds) == [verify(*pair) for pair in zip(predictions, golds, strict=True)]


def test_the_generator_agrees_with_math_verify():
    from math_verify import parse
    from math_verify import verify as verify_there

    draw = random.Random(0)
    cases = [case for case in (make_case(draw) for _ in range(300)) if case.kind in SHARED_KINDS]
    assert len(cases) > 80
    for case in cases:
        if case.answer.startswith(("y=", "pi")) or " " in case.answer or "/" in case.answer or "pi/" in case.answer:
            continue  # plain spellings, which are not in its grammar
        # No time limits: on a busy machine they would make it say no.
        gold, answer = (parse(f"${text}$", parsing_timeout=None) for text in (case.gold, case.answer))
        there = verify_there(gold, answer, timeout_seconds=None)
        assert there == case.is_right, case
