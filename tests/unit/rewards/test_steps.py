"""Steps of a thought, and the step reward of chain arithmetic."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trl_reasoning.rewards.steps import StepScore, aggregate_steps, make_chain_step_reward, split_steps
from trl_reasoning.text import split_thought, thought_span


def texts(text: str, **kwargs) -> list[str]:
    return [text[start:end] for start, end in split_steps(text, **kwargs)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a\nb</think>c", ["a", "b", "c"]),
        ("<think>\n a \n\n\nb\n</think>\n\n c d \n", ["a", "b", "c d"]),
        ("<think></think>4", ["4"]),
        ("<think>a\nb", ["a", "b"]),  # cut inside the thought
        ("<think>a</think>", ["a"]),
        ("a\nb", ["a", "b"]),  # no thought
        ("a\nb</think>c", ["a", "b", "c"]),  # no opening tag
        ("", []),
        ("<think>4</think>4", ["4", "4"]),
    ],
)
def test_lines(text, expected):
    assert texts(text) == expected


def test_where_the_prompt_opened_the_thought():
    assert texts("a\nb</think>c", opened=True) == ["a", "b", "c"]
    assert texts("<think>a\nb</think>c", opened=True) == ["a", "b", "c"]
    assert texts("a\nb", opened=True) == ["a", "b"]


def test_places_are_those_of_the_whole_text():
    assert split_steps("<think>a\nbc</think>\nd") == [(7, 8), (9, 11), (20, 21)]


def test_paragraphs():
    text = "<think>a\nb\n\nc\n  \n\nd</think>e"
    assert texts(text, by="paragraph") == ["a\nb", "c", "d", "e"]


@pytest.mark.parametrize("answer", ["k", "think", "hi", ">"])
def test_an_answer_that_the_closing_tag_spells_too(answer):
    text = f"<think>a</think>{answer}"
    assert split_steps(text)[-1] == (len(text) - len(answer), len(text))


def test_without_the_answer():
    assert texts("<think>a</think>b", answer=False) == ["a"]


def test_unknown_split():
    with pytest.raises(ValueError, match="^by: expected one of"):
        split_steps("a", by="sentence")


def scores(text: str, question: str = "7+5-3=?", **kwargs) -> list[float | None]:
    reward = make_chain_step_reward(**kwargs)
    return [step.score for step in reward(["?"], [text], question=[question])[0]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>7+5=12\n12-3=9</think>9", [1, 1, 1]),
        ("<think>7+5=13\n13-3=10</think>10", [0, 1, 0]),  # the slip costs its own line, and the answer is wrong
        ("<think>7+5=12\n12-3=8</think>8", [1, 0, 0]),
        ("<think>7+5=12\n12-3=9\n12-3=9</think>9", [1, 1, 0, 1]),  # a line too many earns nothing
        ("<think>7+5-3=9</think>9", [0, 1]),  # two operations in a line
        ("<think>5+7=12\n12-3=9</think>9", [0, 1, 1]),  # starts from another number
        ("<think>7+5=12\n11-3=8</think>8", [1, 0, 0]),  # does not go on from 12
        ("<think>7+5=12\n12-4=8</think>8", [1, 0, 0]),  # another operation than the question's
        ("<think>so 7+5\n12-3=9</think>9", [0, 0, 1]),
        ("<think></think>9", [1]),
        ("<think></think>8", [0]),
        ("<think>7+5=12\n12-", [1, 0]),  # cut
        ("9", []),  # no thought
    ],
)
def test_chain(text, expected):
    assert scores(text) == expected


def test_chain_of_larger_numbers_and_below_zero():
    assert scores("<think>9+9=18\n18+9=27\n27-8=19</think>19", "9+9+9-8=?") == [1, 1, 1, 1]
    assert scores("<think>1-3=-2\n-2+5=3</think>3", "1-3+5=?") == [1, 1, 1]


def test_chain_without_the_answer():
    assert scores("<think>7+5=12</think>9", answer=False) == [1]


def test_rows_and_columns():
    reward = make_chain_step_reward()
    rows = reward(
        ["?", "?"], ["1+1=2</think>2", "<think>1+2=4"], question=["1+1=?", "1+2=?"], thought_opened=[True, False]
    )
    assert rows == [[StepScore(5, 1.0), StepScore(14, 1.0)], [StepScore(12, 0.0)]]
    assert reward.columns == ("question",)
    assert pickle.loads(pickle.dumps(reward)).__name__ == "chain_step_reward"


def test_every_style_of_the_task_is_judged():
    from trl_reasoning.builtin import make_chain_dataset

    for style, right in (("careful", True), ("wrong", False)):
        for row in make_chain_dataset(size=30, operands=(2, 7), styles={style: 1.0}):
            found = scores(row["completion"][0]["content"], row["question"])
            assert len(found) == row["difficulty"]  # one line an operation, and the answer
            assert (found == [1.0] * len(found)) is right
            assert found.count(0.0) == (0 if right else 2)  # the slip and the answer


PIECES = st.sampled_from(["<think>", "</think>", "a", " ", "\n", "1+1=2"])


@given(st.lists(PIECES, max_size=8).map("".join), st.booleans())
def test_the_span_of_a_thought_is_its_text(text, opened):
    span = thought_span(text, opened=opened)
    assert (text[slice(*span)] if span else "").strip() == split_thought(text, opened=opened).thought


@given(st.lists(PIECES, max_size=8).map("".join), st.booleans())
def test_steps_rise_and_have_text(text, opened):
    steps = split_steps(text, opened=opened)
    assert all(text[start:end].strip() == text[start:end] != "" for start, end in steps)
    assert [place for step in steps for place in step] == sorted(place for step in steps for place in step)


@pytest.mark.parametrize(
    ("scores", "least", "product", "last"),
    [
        ([0.9, 0.5, 0.8], 0.5, 0.36, 0.8),
        ([0.0, 1.0], 0.0, 0.0, 1.0),
        ([0.7], 0.7, 0.7, 0.7),
        ([0.9, None, 0.5, None], 0.5, 0.45, 0.5),  # steps beyond the model's room
        ([None, None], None, None, None),
        ([], None, None, None),
    ],
)
def test_one_score_of_all_steps(scores, least, product, last):
    found = [aggregate_steps(scores, how) for how in ("min", "product", "last")]
    assert found == [value if value is None else pytest.approx(value) for value in (least, product, last)]


def test_unknown_aggregate():
    with pytest.raises(ValueError, match=r"^aggregate: expected one of \['min', 'product', 'last'\], got 'mean'"):
        aggregate_steps([0.5], "mean")
