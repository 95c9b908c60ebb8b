"""The repetition penalty over tokens and words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trl_reasoning.rewards import make_repetition_reward


def of_words(text, **chosen):
    return make_repetition_reward(unit="words", **chosen)(["?"], [text], [[1]])[0]


@pytest.mark.parametrize(
    ("ids", "ngram", "max_penalty", "expected"),
    [
        ([1, 2, 3, 4], 2, 1.0, 0.0),
        ([5, 5, 5, 5, 5], 2, 1.0, -0.75),  # one of four pairs is different
        ([1, 2, 1, 2, 1], 2, 0.5, -0.25),  # two of four
        ([5] * 101, 1, 1.0, -100 / 101),
        ([1, 2, 3], 4, 1.0, 0.0),  # too short
        ([1, 2, 3, 1], 4, 1.0, 0.0),  # one sequence only
        ([], 3, 1.0, 0.0),
    ],
)
def test_worked_numbers(ids, ngram, max_penalty, expected):
    reward = make_repetition_reward(ngram=ngram, max_penalty=max_penalty)
    assert reward(["?"], ["same text"], [ids]) == [pytest.approx(expected)]


def test_words_of_languages_with_and_without_blanks():
    assert of_words("Wait, let me check. Now the sum is 12.", ngram=3) == 0.0
    # So, so: case does not count. "so it is ." twice: 7 pairs, of which 4 are different.
    assert of_words("So it is. so IT is.", ngram=2) == pytest.approx(-3 / 7)
    # No blanks: 8 characters, 7 pairs, of which 4 are different.
    assert of_words("所以是四所以是四", ngram=2) == pytest.approx(-3 / 7)
    assert of_words("所以答案是四", ngram=2) == 0.0
    assert of_words("ดังนั้น" * 4, ngram=4) < -0.6
    assert of_words("x = 1 + 1\n" * 4, ngram=5) == pytest.approx(-(1 - 5 / 16))  # formulas and code count, too
    assert of_words("四", ngram=4) == 0.0


def test_a_loop_is_punished_and_a_worked_thought_hardly():
    good = "First 7+5 is 12. Then 12-3 leaves 9, and 9 minus 8 is 1. So the answer is 1+4, which makes 5."
    loop = "Wait, let me check again. " * 20
    assert of_words(good) == 0.0
    assert of_words(good, ngram=3) > -0.05
    assert of_words(loop) < -0.9


@given(st.lists(st.integers(0, 3), max_size=30), st.integers(1, 6), st.floats(0.01, 5))
@settings(max_examples=80, deadline=None)
def test_bounds_and_a_repeated_text_is_never_better(ids, ngram, penalty):
    once, twice = make_repetition_reward(ngram, penalty)(["?"] * 2, [""] * 2, [ids, ids + ids])
    assert -penalty <= twice <= once + 1e-12 or len(ids) < ngram
    assert -penalty <= once <= 0.0
    assert twice <= 0.0
    back = make_repetition_reward(ngram, penalty)(["?"] * 2, [""] * 2, [ids + ids, ids])
    assert back == [twice, once]


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"ngram": 0}, "^ngram: expected at least 1, got 0"),
        ({"max_penalty": -1.0}, "^max_penalty: expected a number above 0, which is subtracted, got -1"),
        ({"max_penalty": float("inf")}, "^max_penalty: expected a number above 0"),
        ({"unit": "word"}, "^unit: expected tokens or words, got 'word'. Did you mean `words`"),
    ],
)
def test_parameters(chosen, message):
    with pytest.raises(ValueError, match=message):
        make_repetition_reward(**chosen)
