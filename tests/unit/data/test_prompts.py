import pytest
from datasets import Dataset

from trl_reasoning.data import PROMPTS, DataError, add_prompts, build_prompt, find_prompt_template
from trl_reasoning.text import prompt_opens_thought


def test_none_is_the_bare_question():
    assert build_prompt("1+1?", template="none") == [{"role": "user", "content": "1+1?"}]
    assert build_prompt("1+1?", template="none", as_text=True) == "1+1?"
    assert build_prompt("1+1?", template="none_text") == "1+1?"


def test_r1_zero_shows_the_skeleton_once_and_ends_before_the_reply():
    prompt = build_prompt("1+1?", template="r1_zero")
    assert isinstance(prompt, str)
    assert prompt.endswith(" User: 1+1? Assistant:")
    instruction = prompt.partition("User: ")[0]
    assert "\n" not in instruction
    for tag in ("<think>", "</think>", "<answer>", "</answer>"):
        assert instruction.count(tag) == 2  # named once, shown once
    assert PROMPTS["r1_zero"].stop_strings == ("</answer>",)
    assert not prompt_opens_thought(prompt)


def test_r1_zero_primed_opens_the_thought():
    prompt = build_prompt("1+1?", template="r1_zero_primed")
    assert isinstance(prompt, str)
    assert prompt == f"{build_prompt('1+1?', template='r1_zero')} <think>"
    assert prompt_opens_thought(prompt)


def messages_of(template, system_prompt=None):
    prompt = build_prompt("1+1?", template=template, system_prompt=system_prompt)
    assert isinstance(prompt, list)
    return prompt


def test_qwen_boxed_asks_for_a_box_and_takes_a_system_prompt_in_front():
    system, user = messages_of("qwen_boxed")
    assert system["role"] == "system" and "\\boxed{}" in system["content"]
    assert user == {"role": "user", "content": "1+1?"}
    longer, _ = messages_of("qwen_boxed", system_prompt="Be brief.")
    assert longer["content"] == f"Be brief.\n\n{system['content']}"


def test_qwen3_is_a_plain_user_message():
    assert build_prompt("1+1?", template="qwen3") == [{"role": "user", "content": "1+1?"}]
    assert build_prompt("1+1?", template="qwen3", system_prompt="Be brief.")[0] == {
        "role": "system", "content": "Be brief.",
    }  # fmt: skip


@pytest.mark.parametrize("template", ["r1_zero", "r1_zero_primed", "none_text"])
def test_a_system_prompt_needs_messages(template):
    with pytest.raises(DataError, match=r"system_prompt.*plain text"):
        build_prompt("1+1?", template=template, system_prompt="Be brief.")


def test_wrong_names_and_forms():
    with pytest.raises(DataError, match="did you mean 'qwen_boxed'"):
        find_prompt_template("qwen_box")
    with pytest.raises(DataError, match="'qwen3' gives messages only"):
        find_prompt_template("qwen3", as_text=True)
    with pytest.raises(DataError, match="'r1_zero' gives plain text only"):
        build_prompt("q", template="r1_zero", as_text=False)


def test_add_prompts_keeps_the_other_columns():
    rows = Dataset.from_list([{"question": "1+1?", "solution": "2"}, {"question": "1+2?", "solution": "3"}])
    dataset = add_prompts(rows, template="none", system_prompt="Be brief.")
    assert dataset[1]["solution"] == "3"
    assert dataset[1]["prompt"] == build_prompt("1+2?", template="none", system_prompt="Be brief.")


def test_add_prompts_replaces_messages_by_text():
    rows = Dataset.from_list([{"question": "1+1?", "prompt": [{"role": "user", "content": "1+1?"}]}])
    assert add_prompts(rows, template="none_text")[0]["prompt"] == "1+1?"


@pytest.mark.parametrize("prompt", ["1+1?", [{"role": "user", "content": "1+1?"}]])
def test_add_prompts_reads_a_plain_prompt(prompt):
    dataset = add_prompts(Dataset.from_list([{"prompt": prompt}]), template="r1_zero")
    assert dataset[0]["prompt"] == build_prompt("1+1?", template="r1_zero")


def test_add_prompts_says_what_it_needs():
    with pytest.raises(DataError, match=r"`question`.*found: problem.*columns:"):
        add_prompts(Dataset.from_list([{"problem": "1+1?"}]))
    with pytest.raises(DataError, match=r"row 1: `question`"):
        add_prompts(Dataset.from_list([{"question": "1+1?"}, {"question": ""}]))
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    with pytest.raises(DataError, match=r"row 0: `prompt`"):
        add_prompts(Dataset.from_list([{"prompt": turns}]), template="qwen_boxed")
