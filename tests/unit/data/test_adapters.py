import json

import pytest
from datasets import Dataset

from trl_reasoning.data import ADAPTERS, DataError, last_boxed
from trl_reasoning.rewards import judge_puzzles


def adapt(name, *rows):
    return ADAPTERS[name](Dataset.from_list(list(rows))).to_list()


def test_the_promised_adapters_exist():
    assert set(ADAPTERS) == {
        "gsm8k", "svamp", "math", "countdown", "deepmath", "openr1_math", "ultrafeedback", "hh_rlhf", "nectar",
        "amc23", "aime24", "minerva_math", "olympiadbench", "cmath", "humaneval", "mbpp", "ifeval", "rlvr_ifeval",
    }  # fmt: skip


def test_gsm8k():
    row = {"question": "How many?", "answer": "Sold 48/2 = <<48/2=24>>24.\nThat is 1,080 in all.\n#### 1,080"}
    assert adapt("gsm8k", row) == [
        {"question": "How many?", "rationale": "Sold 48/2 = 24.\nThat is 1,080 in all.", "solution": "1080"}
    ]


def test_svamp_writes_whole_numbers_without_a_point():
    rows = [
        {"Body": "Ann has 3 pens.", "Question": "How many?", "Answer": 8.0},
        {"Body": "Ann has 3 pens", "Question": "How many?", "Answer": 2.5},
    ]
    assert adapt("svamp", *rows) == [
        {"question": "Ann has 3 pens. How many?", "solution": "8"},
        {"question": "Ann has 3 pens. How many?", "solution": "2.5"},
    ]


def test_math_takes_the_last_box_and_the_level():
    solution = r"First $\boxed{1}$, so $\boxed{\frac{\sqrt{2}}{3}}$."
    row = {"problem": "p", "solution": solution, "level": "Level 3", "type": "Algebra"}
    odd = {"problem": "q", "solution": r"\boxed 7", "level": "Level ?", "type": "Algebra"}
    first, second = adapt("math", row, odd)
    assert first == {
        "question": "p", "rationale": solution, "solution": r"\frac{\sqrt{2}}{3}", "difficulty": 3, "type": "Algebra",
    }  # fmt: skip
    assert (second["solution"], second["difficulty"]) == ("7", None)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed{5}", "5"),
        (r"\fbox{ 5 }", "5"),
        (r"\boxed{\left\{1, 2\right.}", r"\left\{1, 2\right."),
        (r"\boxed{\text{a } b}", r"\text{a } b"),
        (r"\boxed{1} and then \boxed{2", None),
        (r"\boxed{}", None),
        (r"\boxedword{3}", None),
        ("no box", None),
    ],
)
def test_last_boxed(text, content):
    assert last_boxed(text) == content


def test_countdown_asks_for_an_expression_and_keeps_its_columns():
    (row,) = adapt("countdown", {"target": 65, "nums": [19, 36, 48]})
    assert row["solution"] == "65"
    assert "equals 65" in row["question"]
    assert "19, 36, 48" in row["question"]
    assert (row["target"], row["nums"]) == (65, [19, 36, 48])
    # What judges a reply in an evaluation: 48 + 36 - 19 = 65.
    verdicts, _ = judge_puzzles(["<answer>48+36-19</answer>", "<answer>65</answer>"], [row["puzzle"]] * 2, [False] * 2)
    assert [verdict.status for verdict in verdicts] == ["right", "wrong"]


def test_ifeval_takes_the_arguments_that_are_given():
    (row,) = adapt(
        "ifeval",
        {
            "prompt": "Two bullets, no commas.",
            "instruction_id_list": ["punctuation:no_comma", "detectable_format:number_bullet_lists"],
            "kwargs": [{"num_bullets": None, "relation": None}, {"num_bullets": 2, "relation": None}],
        },
    )
    assert row["question"] == "Two bullets, no commas."
    assert json.loads(row["instructions"]) == [
        {"id": "punctuation:no_comma", "kwargs": {}},
        {"id": "detectable_format:number_bullet_lists", "kwargs": {"num_bullets": 2}},
    ]


def test_rlvr_ifeval_is_translated_to_the_names_of_ifeval():
    truth = {"func_name": "validate_word_constraint", "N": 50, "quantifier": "at most", "end_phrase": None}
    messages = [{"role": "user", "content": "Be short."}]
    (row,) = adapt("rlvr_ifeval", {"messages": messages, "ground_truth": json.dumps(truth)})
    assert row["question"] == "Be short."
    assert json.loads(row["instructions"]) == [
        {"id": "length_constraints:number_words", "kwargs": {"num_words": 50, "relation": "at most"}}
    ]


def test_deepmath_takes_the_thought_out_of_the_trace():
    rows = [
        {"question": "q", "final_answer": "0", "difficulty": 4.5, "r1_solution_1": "Hmm, so 0.</think>\n\nIt is 0."},
        {"question": "q", "final_answer": "1", "difficulty": None, "r1_solution_1": "Only a trace."},
        {"question": "q", "final_answer": "2", "difficulty": 5.0, "r1_solution_1": None},
    ]
    assert adapt("deepmath", *rows) == [
        {"question": "q", "rationale": "Hmm, so 0.", "solution": "0", "difficulty": 4.5},
        {"question": "q", "rationale": "Only a trace.", "solution": "1", "difficulty": None},
        {"question": "q", "rationale": None, "solution": "2", "difficulty": 5.0},
    ]


def test_openr1_math_prefers_a_verified_generation():
    row = {
        "problem": "p",
        "solution": "written",
        "answer": "3",
        "generations": ["<think>wrong</think>4", "<think>cut", "<think>\nright\n</think>\n\n3"],
        "correctness_math_verify": [False, True, True],
        "is_reasoning_complete": [True, False, True],
    }
    none_right = {**row, "correctness_math_verify": [False, False, False]}
    first, second = adapt("openr1_math", row, none_right)
    assert first == {"question": "p", "rationale": "right", "solution": "3"}
    assert second["rationale"] == "written"
    assert adapt("openr1_math", {"problem": "p", "solution": "written", "answer": "3"})[0]["rationale"] == "written"


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def test_ultrafeedback_dialogues_and_plain_replies():
    dialogues = {"prompt": "q", "chosen": [user("q"), assistant("good")], "rejected": [user("q"), assistant("bad")]}
    pair = {"prompt": [user("q")], "chosen": [assistant("good")], "rejected": [assistant("bad")]}
    assert adapt("ultrafeedback", {**dialogues, "score_chosen": 8.0, "score_rejected": 3.0}) == [
        {"score_chosen": 8.0, "score_rejected": 3.0, **pair}
    ]
    assert adapt("ultrafeedback", {"prompt": "q", "chosen": "good", "rejected": "bad"}) == [pair]


def test_hh_rlhf_splits_at_the_last_reply():
    start = "\n\nHuman: hi\n\nAssistant: hello\n\nHuman: how?\n\nAssistant:"
    assert adapt("hh_rlhf", {"chosen": f"{start} like this", "rejected": f"{start} "}) == [
        {
            "prompt": [user("hi"), assistant("hello"), user("how?")],
            "chosen": [assistant("like this")],
            "rejected": [assistant("")],
        }
    ]


def test_hh_rlhf_joins_two_turns_of_one_speaker():
    row = {"chosen": "\n\nHuman: a\n\nAssistant: b\n\nAssistant: c", "rejected": "\n\nHuman: a\n\nAssistant: d"}
    (pair,) = adapt("hh_rlhf", row)
    assert pair["prompt"] == [user("a")]
    assert pair["chosen"] == [assistant("b\n\nc")]


GOOD = {
    "gsm8k": {"question": "q", "answer": "w\n#### 2"},
    "svamp": {"Body": "b", "Question": "q", "Answer": 2.0},
    "math": {"problem": "p", "solution": r"\boxed{2}"},
    "countdown": {"target": 2, "nums": [1, 1]},
    "deepmath": {"question": "q", "final_answer": "2"},
    "openr1_math": {"problem": "p", "answer": "2", "solution": "w"},
    "hh_rlhf": {"chosen": "\n\nHuman: a\n\nAssistant: b", "rejected": "\n\nHuman: a\n\nAssistant: c"},
}


@pytest.mark.parametrize(
    ("name", "change", "mentions"),
    [
        ("gsm8k", {"answer": "no gold here"}, ["`answer`", "####"]),
        ("gsm8k", {"answer": "w\n#### "}, ["####"]),
        ("gsm8k", {"question": None}, ["`question`"]),
        ("svamp", {"Answer": None}, ["`Answer`", "number"]),
        ("math", {"solution": "no box"}, ["boxed"]),
        ("countdown", {"nums": []}, ["`nums`"]),
        ("countdown", {"target": None}, ["`target`"]),
        ("deepmath", {"final_answer": ""}, ["`final_answer`"]),
        ("openr1_math", {"answer": None}, ["`answer`"]),
        ("hh_rlhf", {"rejected": "\n\nHuman: z\n\nAssistant: c"}, ["different prompts"]),
        ("hh_rlhf", {"chosen": "\n\nHuman: a"}, ["`chosen`", "assistant"]),
        ("hh_rlhf", {"chosen": "a dialogue"}, ["Human:"]),
    ],
)
def test_a_row_without_its_gold_is_named(name, change, mentions):
    with pytest.raises(DataError) as caught:
        adapt(name, GOOD[name], {**GOOD[name], **change})
    for word in (name, "row 1", *mentions):
        assert word in str(caught.value)


def test_a_missing_column_is_named_with_the_ones_found():
    with pytest.raises(DataError) as caught:
        adapt("gsm8k", {"question": "q", "gold": "2"})
    for word in ("gsm8k", "answer", "gold", "columns:"):
        assert word in str(caught.value)


def test_types_do_not_depend_on_the_first_rows():
    rows = [{"problem": "p", "solution": r"\boxed{1}", "level": None}] * 1500
    rows.append({"problem": "p", "solution": r"\boxed{1}", "level": "Level 5"})
    dataset = ADAPTERS["math"](Dataset.from_list(rows))
    assert dataset.features["difficulty"].dtype == "int64"
    assert dataset[1500]["difficulty"] == 5


def test_nectar():
    answers = [{"answer": " good ", "model": "a", "rank": 1.0}, {"answer": "bad", "model": "b", "rank": 2.0}]
    replies = [[{"role": "assistant", "content": content}] for content in ("good", "bad")]
    expected = {"prompt": [{"role": "user", "content": "q"}], "replies": replies, "scores": [-1.0, -2.0]}
    for prompt in ("\n\nHuman: q\n\nAssistant: ", "\n\nHuman: q"):
        assert adapt("nectar", {"prompt": prompt, "answers": answers}) == [expected]
    with pytest.raises(DataError, match="row 0: `prompt` should end with the user's turn"):
        adapt("nectar", {"prompt": "\n\nHuman: q\n\nAssistant: a", "answers": answers})
