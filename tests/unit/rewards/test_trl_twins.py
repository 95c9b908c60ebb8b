"""Where TRL has the same reward, the values are equal; where it differs, the test says how."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from trl import rewards as trl_rewards

from trl_reasoning.rewards import REWARDS


TOKENS = st.lists(st.lists(st.integers(0, 3), max_size=30), min_size=1, max_size=6)


def ours(name, texts, ids, solution=None, **chosen):
    return REWARDS[name](**chosen)(["?"] * len(texts), texts, ids, solution=solution)


@given(TOKENS, st.integers(1, 25), st.data())
@settings(max_examples=60, deadline=None)
def test_soft_overlong(ids, max_length, data):
    cache = data.draw(st.integers(0, max_length))
    theirs = trl_rewards.get_soft_overlong_punishment(max_length, cache)(ids)
    assert ours("soft_overlong", [""] * len(ids), ids, max_length=max_length, cache=cache) == pytest.approx(theirs)


@given(TOKENS, st.integers(1, 5), st.floats(0.1, 3.0))
@settings(max_examples=60, deadline=None)
@example(ids=[[], [1], [1, 1], [2] * 30], ngram=2, max_penalty=1.0)
def test_repetition(ids, ngram, max_penalty):
    theirs = trl_rewards.get_repetition_penalty_reward(ngram, -max_penalty)(ids)
    found = ours("repetition", [""] * len(ids), ids, ngram=ngram, max_penalty=max_penalty)
    assert found == pytest.approx(theirs)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 150)), min_size=1, max_size=4))
@settings(max_examples=8, deadline=None)
def test_cosine_on_answers_that_both_read(rows):
    """Beyond these, TRL misreads a gold in bare LaTeX and gives no value where an answer cannot be parsed."""
    texts = [r"\boxed{4}" if is_right else r"\boxed{5}" for is_right, _ in rows]
    ids = [[1] * length for _, length in rows]
    golds = ["$4$"] * len(rows)
    chosen = {"max_length": 100, "right_short": 2.0, "right_long": 1.0, "wrong_short": -3.0, "wrong_long": -0.25}
    theirs = trl_rewards.get_cosine_scaled_reward(
        max_len=100, min_value_wrong=-3.0, max_value_wrong=-0.25, min_value_correct=1.0, max_value_correct=2.0
    )([[{"content": text}] for text in texts], golds, ids)
    assert ours("cosine_length", texts, ids, golds, **chosen) == pytest.approx(theirs)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("<think>a</think>4", True),
        ("<think>\na\n</think>\n4", True),
        ("<think></think>4", True),
        ("4", True),
        ("a</think>4", True),
        ("<think>a", True),
        ("<think><think>a</think>4", True),
        ("<think>a</think><think>b</think>4", True),
        ("Sure! <think>a</think>4", True),
        # Where TRL's pattern is wrong.
        ("\n<think>a</think>4", False),  # blanks before the tag are harmless
        ("<think>a</think>b</think>4", False),  # a second closing tag
        ("<think>a</think>", False),  # no answer
        ("<think>a</think>\n", False),
    ],
)
def test_format(text, same):
    [theirs] = trl_rewards.think_format_reward([[{"content": text}]])
    assert (ours("format", [text], [[1]]) == [theirs]) is same


def test_format_where_the_prompt_wrote_the_tag():
    """TRL's reward does not know how the prompt ended and scores every such completion 0."""
    [theirs] = trl_rewards.think_format_reward([[{"content": "a</think>4"}]])
    assert theirs == 0.0
    assert REWARDS["format"]()(["?"], ["a</think>4"], [[1]], thought_opened=[True]) == [1.0]
