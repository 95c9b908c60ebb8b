import pytest
from datasets import Dataset

from trl_reasoning.data import DataError, build_prompt, to_sft
from trl_reasoning.text import split_thought


ROW = {"question": "1+1?", "rationale": "1+1=2", "solution": "2", "difficulty": 1}


@pytest.mark.parametrize(
    ("form", "answer"), [("boxed", "\\boxed{2}"), ("plain", "2"), ("answer_tags", "<answer>2</answer>")]
)
def test_answer_forms(form, answer):
    row = to_sft(Dataset.from_list([ROW]), answer_form=form)[0]
    assert row == {
        **ROW,
        "prompt": [{"role": "user", "content": "1+1?"}],
        "completion": [{"role": "assistant", "content": f"<think>\n1+1=2\n</think>\n\n{answer}"}],
    }


def test_a_gold_with_braces_is_boxed_whole():
    row = to_sft(Dataset.from_list([{**ROW, "solution": r"\frac{1}{2}"}]))[0]
    assert row["completion"][0]["content"].endswith(r"\boxed{\frac{1}{2}}")


def test_text_prompts_get_text_completions():
    row = to_sft(Dataset.from_list([ROW]), template="r1_zero", answer_form="answer_tags")[0]
    assert row["prompt"] == build_prompt("1+1?", template="r1_zero")
    assert row["completion"] == "<think>\n1+1=2\n</think>\n\n<answer>2</answer>"
    assert split_thought(row["completion"]).valid


def test_a_primed_prompt_is_continued_inside_the_thought():
    row = to_sft(Dataset.from_list([ROW]), template="r1_zero_primed", answer_form="plain")[0]
    assert row["completion"] == "\n1+1=2\n</think>\n\n2"
    assert split_thought(row["completion"], opened=True).valid


@pytest.mark.parametrize(
    ("rows", "form", "mentions"),
    [
        ([ROW], "box", ["answer_form", "did you mean 'boxed'"]),
        ([{"question": "q", "solution": "2"}], "plain", ["`rationale`", "found: question, solution"]),
        ([ROW, {**ROW, "rationale": None}], "plain", ["row 1", "`rationale`"]),
        ([ROW, {**ROW, "solution": " "}], "plain", ["row 1", "`solution`"]),
    ],
)
def test_what_is_missing_is_named(rows, form, mentions):
    with pytest.raises(DataError) as caught:
        to_sft(Dataset.from_list(rows), answer_form=form)
    for word in mentions:
        assert word in str(caught.value)
