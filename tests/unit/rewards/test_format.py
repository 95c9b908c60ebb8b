"""The form of a completion: strict and in parts, for both templates, whoever wrote the opening tag."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trl_reasoning.rewards import make_format_reward
from trl_reasoning.text import split_thought


def score(text, opened=False, **settings):
    return make_format_reward(**settings)(["?"], [text], [[1]], thought_opened=[opened])[0]


def test_shared_cases(shared_dir):
    """Validity, and partial credit below 1 for all that is not valid, also when the text came in pieces."""
    failures = []
    for line in (shared_dir / "cases" / "format_cases.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        opened = row["prompt_ends_with_think"]
        for text in [row["completion"], *(["".join(row["pieces"])] if "pieces" in row else [])]:
            split = split_thought(text, opened=opened)
            strict, partial = score(text, opened), score(text, opened, credit="partial")
            read = (split.valid, split.thought, split.answer)
            if read != (row["valid"], row["think"], row["answer"]):
                failures.append((row["id"], read))
            if strict != float(row["valid"]) or (partial == 1.0) != row["valid"]:
                failures.append((row["id"], strict, partial))
    assert failures == []


# text, whether the prompt opened the thought, the share of right parts
THINK = [
    ("<think>a</think>4", False, 1.0),
    (" \n<think></think> 4<|im_end|>", False, 1.0),
    ("4", False, 0.0),
    ("", False, 0.0),
    ("a</think>4", False, 2 / 3),  # no opening tag
    ("Sure! <think>a</think>4", False, 2 / 3),  # not at the start
    ("<think>a</think>", False, 2 / 3),  # no answer
    ("<think>a", False, 1 / 3),
    ("<think>a</think>b</think>4", False, 2 / 3),
    ("<think>the tag </think> closes</think>4", False, 2 / 3),  # quotes the closing tag
    ("<think>a</think><think>b</think>4", False, 1 / 3),  # only the answer
    ("<think>a</think>4 <think>b", False, 1 / 3),  # only the closing tag
    ("</think><think>", False, 1 / 3),  # only the closing tag
    ("a</think>4", True, 1.0),
    ("a", True, 0.0),
    ("a</think>", True, 0.5),
    ("<think>a</think>4", True, 0.5),  # repeats the tag that the prompt wrote
    ("a</think>b</think>4", True, 0.5),
    ("a</think>4 <think>b</think>", True, 0.0),
]
ANSWER = [
    ("<think>a</think>\n<answer>4</answer>", False, 1.0),
    ("<think>a</think><answer>4</answer>\n<|im_end|>", False, 1.0),
    ("<think>a</think>4", False, 2 / 5),  # both think tags
    ("4", False, 0.0),
    ("<answer>4</answer>", False, 1 / 5),  # it ends well
    ("<think>a</think>So <answer>4</answer>", False, 4 / 5),  # text between
    ("<think>a</think><answer>4</answer> Done.", False, 4 / 5),  # text after
    ("<think>a</think><answer></answer>", False, 4 / 5),  # no answer
    ("<think>a</think><answer>4", False, 3 / 5),  # cut
    ("<think>a</think><answer>4</answer><answer>5</answer>", False, 2 / 5),
    ("<think><answer>3</answer></think><answer>4</answer>", False, 2 / 5),
    ("<think>a</think></answer>4<answer>", False, 2 / 5),
    ("a</think> <answer>4</answer>", True, 1.0),
    ("<answer>4</answer>", True, 1 / 4),
]


@pytest.mark.parametrize(("template", "cases"), [("think", THINK), ("think_answer", ANSWER)])
def test_credit_by_hand(template, cases):
    for text, opened, expected in cases:
        assert score(text, opened, template=template, credit="partial") == pytest.approx(expected), text
        assert score(text, opened, template=template) == float(expected == 1.0), text


def test_an_empty_thought_is_a_choice():
    text = "<think> \n</think>4"
    assert score(text) == score(text, credit="partial") == 1.0
    assert score(text, allow_empty_thought=False) == 0.0
    assert score(text, allow_empty_thought=False, credit="partial") == 0.75
    assert score("<think>a</think>4", allow_empty_thought=False) == 1.0
    assert score("</think>4", True, allow_empty_thought=False, credit="partial") == pytest.approx(2 / 3)


PIECES = ["<think>", "</think>", "<answer>", "</answer>", "a", " ", "\n", "<|im_end|>", "<thi", "nk>"]


@given(
    st.lists(st.sampled_from(PIECES), max_size=9),
    st.booleans(),
    st.sampled_from(["think", "think_answer"]),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_bounds_and_full_credit_for_the_whole_form_only(pieces, opened, template, allow_empty):
    text = "".join(pieces)
    chosen = {"template": template, "allow_empty_thought": allow_empty}
    strict, partial = score(text, opened, **chosen), score(text, opened, credit="partial", **chosen)
    assert 0.0 <= partial <= 1.0
    assert strict == float(partial == 1.0)
    if template == "think" and allow_empty:
        assert strict == float(split_thought(text, opened=opened).valid)
    if strict == 1.0:
        tags = {"<think>": int(not opened), "</think>": 1}
        tags |= {"<answer>": 1, "</answer>": 1} if template == "think_answer" else {}
        assert {tag: text.count(tag) for tag in tags} == tags


@given(st.permutations(range(len(THINK))))
@settings(max_examples=10, deadline=None)
def test_permutation(order):
    reward = make_format_reward(credit="partial")
    texts, opened, expected = zip(*(THINK[index] for index in order), strict=True)
    values = reward(["?"] * len(texts), texts, [[1]] * len(texts), thought_opened=list(opened))
    assert values == pytest.approx(list(expected))


def test_unknown_settings():
    with pytest.raises(ValueError, match="^template: expected think or think_answer, got 'thinks'. Did you"):
        make_format_reward(template="thinks")
    with pytest.raises(ValueError, match="^credit: expected strict or partial, got 'part'"):
        make_format_reward(credit="part")
