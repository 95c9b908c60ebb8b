import json
import pickle
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trl_reasoning.rewards import make_instructions_reward, write_instructions
from trl_reasoning.rewards._instruction_checks import CHECKS, count_sentences, holds
from trl_reasoning.rewards.instructions import follows, read_instructions


# name, arguments, an answer that follows, one that does not
SAMPLES = [
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": "at least"},
     "NASA and the ESA met", "NASA met Europe"),
    ("change_case:english_capital", {}, "THE CAT SAT ON THE MAT.", "THE CAT sat ON THE MAT."),
    ("change_case:english_lowercase", {}, "the cat sat on the mat.", "The cat sat on the mat."),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say hello."}, "Say hello.\nHello!", "Hello! Say hello."),
    ("combination:two_responses", {}, "First one\n******\nSecond one", "Same\n******\nSame"),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[name] lives in [town]", "[name] lives"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye.\nP.S. Buy milk", "Bye. PSA: buy milk"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "Bye.\nP.P.S more", "Bye.\nP.S. more"),
    ("detectable_format:constrained_response", {}, "My answer is yes.", "My answer is perhaps."),
    ("detectable_format:json_format", {}, '```json\n{"a": [1]}\n```', "{'a': 1}"),
    ("detectable_format:multiple_sections", {"section_spliter": "Section", "num_sections": 2},
     "Section 1\na\nSection 2\nb", "Section 1\na\nSection two\nb"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* one\n* two", "* one\n* two\n- three"),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*one* and **two**", "*one* and two * x"),
    ("detectable_format:title", {}, "<<A poem>>\nRoses", "< <A poem> >\nRoses"),
    ("keywords:existence", {"keywords": ["tea", "milk"]}, "Milk and Tea", "Milk and coffee"),
    ("keywords:forbidden_words", {"forbidden_words": ["rain"]}, "The train is late", "The Rain is late"),
    ("keywords:frequency", {"keyword": "so", "frequency": 2, "relation": "at least"}, "So it is, so", "So it is"),
    ("keywords:letter_frequency", {"letter": "e", "let_frequency": 3, "let_relation": "less than"},
     "Every", "Eleven e"),
    ("language:response_language", {"language": "de"},
     "Das ist ein kurzer Satz über das Wetter.", "This is a short sentence about the weather."),
    ("length_constraints:nth_paragraph_first_word", {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "weather"},
     "One.\n\nWeather is fine.", "One.\n\nThe weather is fine."),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "One\n***\nTwo", "One\n***\nTwo\n***\nThree"),
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "at least"}, "Yes. It is!", "Yes it is!"),
    ("length_constraints:number_words", {"num_words": 3, "relation": "less than"}, "two words", "now three words"),
    ("punctuation:no_comma", {}, "Yes and no", "Yes, and no"),
    ("startend:end_checker", {"end_phrase": "Any other questions?"}, "Done. any other questions?", "Any other? No."),
    ("startend:quotation", {}, '"All of it"', 'She said "some of it"'),
]  # fmt: skip


def test_every_instruction_has_a_sample():
    assert {name for name, *_ in SAMPLES} == set(CHECKS)
    assert len(CHECKS) == 25  # of Google's IFEval


@pytest.mark.parametrize(("name", "kwargs", "good", "bad"), SAMPLES)
def test_a_good_and_a_bad_answer(name, kwargs, good, bad):
    assert follows(good, name, kwargs)
    assert not follows(bad, name, kwargs)
    assert not follows("", name, kwargs)
    assert not follows("  \n", name, kwargs)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", 3),
        ("Mr. Smith met Dr. Jones at 3.30 p.m. and left.", 1),
        ("Wait... what?", 2),
        ("No end", 1),
        ("他来了。她走了！", 2),
        ('He said "Go." Then he left.', 2),
        ("", 0),
    ],
)
def test_sentences(text, sentences):
    assert count_sentences(text) == sentences


def test_relations():
    assert [holds(10, 10, relation) for relation in ("at least", "less than", "at most", "around", "exactly")] == [
        True, False, True, True, True
    ]  # fmt: skip
    assert holds(110, 100, "around") and not holds(111, 100, "around")
    assert holds(1, 2, "around") and not holds(0, 2, "around")
    with pytest.raises(ValueError, match="relation: expected one of"):
        holds(1, 1, "more than")


@pytest.mark.parametrize(
    ("name", "kwargs", "text", "result"),
    [
        ("keywords:existence", {"keywords": ["c++", "(a"]}, "c++ and (a", True),  # text, not patterns
        ("keywords:existence", {"keywords": ["a.c"]}, "abc", False),
        ("keywords:frequency", {"keyword": "cat", "frequency": 1}, "A cat in a category.", True),  # whole words
        ("keywords:frequency", {"keyword": "cat", "frequency": 2, "relation": "at least"}, "A cat, a category.", True),
        ("keywords:forbidden_words", {"forbidden_words": ["c++"]}, "I like C++!", False),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***\nOne\n* * *\nTwo\n***", True),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "One\n***\n***\nTwo", False),
        ("length_constraints:number_sentences", {"num_sentences": 20, "relation": "around"}, "Yes. " * 21, True),
        ("length_constraints:number_sentences", {"num_sentences": 20, "relation": "around"}, "Yes. " * 22, False),
        ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye.\nP.S.\nBuy milk", True),
        ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye.\np. s. Buy milk", True),
        ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Send it to the ps office.", False),
        ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye.\nP.S.", False),
        ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "Bye.\nP. P. S. Buy milk", True),
        ("combination:two_responses", {}, "a\n******\nb\n******\nc", False),
        ("combination:two_responses", {}, "******\na\n******\nb\n******", True),
        ("detectable_format:number_bullet_lists", {"num_bullets": 1}, "**bold** text\n- one", True),
        ("detectable_format:title", {}, "<<>>", False),
        ("detectable_format:json_format", {}, "[" * 5000, False),
        ("detectable_format:constrained_response", {"options": "red / blue"}, "I take blue", True),
        ("detectable_format:constrained_response", {"options": ["red", "blue"]}, "I take green", False),
        ("startend:quotation", {}, '"', False),
        ("language:response_language", {"language": "zh-cn"}, "今天天气很好。", True),
        ("change_case:english_lowercase", {}, "das ist ein kurzer satz über das wetter in den bergen.", False),
    ],
)
def test_edge_cases(name, kwargs, text, result):
    assert follows(text, name, kwargs) is result


def test_strict_and_share_and_loose():
    two = write_instructions(["punctuation:no_comma", "startend:end_checker"], [{}, {"end_phrase": "Bye."}])
    completions = [
        "<think>a, b</think>Yes. Bye.",
        "<think>a</think>Yes, bye",
        "<think>a</think>Yes, I say. Bye.",
        "<think>Bye.",
    ]
    arguments = (["?"] * 4, completions, [[1]] * 4)
    assert make_instructions_reward()(*arguments, instructions=[two] * 4) == [1.0, 0.0, 0.0, 0.0]
    assert make_instructions_reward("share")(*arguments, instructions=[two] * 4) == [1.0, 0.0, 0.5, 0.0]
    one = write_instructions(["startend:end_checker"], [{"end_phrase": "Bye."}])
    chatty = (["?"], ["Sure!\nSee you. *Bye.*"], [[1]])
    assert make_instructions_reward()(*chatty, instructions=[one]) == [0.0]
    assert make_instructions_reward(loose=True)(*chatty, instructions=[one]) == [1.0]
    assert make_instructions_reward()(
        ["?"], ["a, b</think>Bye."], [[1]], instructions=[one], thought_opened=[True]
    ) == [1.0]


def test_rows_that_cannot_be_read_have_no_reward():
    rows = [None, "", "[]", "x", '[{"id": "nothing:known", "kwargs": {}}]', '[{"id": "punctuation:no_comma"}]']
    found = make_instructions_reward()(["?"] * 6, ["Yes"] * 6, [[1]] * 6, instructions=rows)
    assert found == [None] * 6


@pytest.mark.parametrize(
    ("ids", "arguments", "message"),
    [
        (["punctuation:no_coma"], [{}], "'punctuation:no_coma'. Did you mean `punctuation:no_comma`"),
        (["length_constraints:number_words"], [{"num_words": 3}], "expected the arguments num_words, relation"),
        (["punctuation:no_comma"], [{"x": 1}], "expected the arguments none, got x"),
        (["length_constraints:number_words"], [{"num_words": "3", "relation": "at least"}], "wrong type"),
        (["length_constraints:number_words"], [{"num_words": 3, "relation": "over"}], "relation: expected one of"),
        (["language:response_language"], [{"language": "xx"}], "language: expected one of"),
        ([], [], "one or more"),
    ],
)  # fmt: skip
def test_instructions_are_checked_when_written(ids, arguments, message):
    with pytest.raises(ValueError) as caught:
        write_instructions(ids, arguments)
    assert message in str(caught.value)


def test_absent_arguments_are_left_out():
    text = write_instructions(["punctuation:no_comma"], [{"num_words": None}])
    assert json.loads(text) == [{"id": "punctuation:no_comma", "kwargs": {}}]
    assert read_instructions(text) == [("punctuation:no_comma", {})]


def test_parameters():
    assert pickle.loads(pickle.dumps(make_instructions_reward("share"))).credit == "share"
    with pytest.raises(ValueError, match="credit: expected one of all, share, got 'half'"):
        make_instructions_reward("half")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["." * 20_000 + "a", "<<" * 10_000, " " * 20_000 + "a", "[" * 20_000, "*" * 20_000, "a. " * 7_000,
             "P.S" * 7_000, "* * *" * 4_000, "\n" * 20_000, "`" * 20_000, "p s " * 5_000, "! " * 10_000],
    ids=lambda text: text[:5],
)  # fmt: skip
def test_no_text_takes_long(text):
    started = time.perf_counter()
    for name, kwargs, *_ in SAMPLES:
        if "english" not in name and "language" not in name:  # measured with the language reward
            follows(text, name, kwargs, loose=True)
    assert time.perf_counter() - started < 5


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=80), st.sampled_from(SAMPLES))
def test_any_text_gets_a_verdict(text, sample):
    assert follows(text, sample[0], sample[1]) in (True, False)
