import json

import pytest

from trl_reasoning.text import completion_text, prompt_opens_thought, split_thought


# completion, whether the prompt opened the thought, valid, thought, answer
CASES = [
    ("<think>2+3=5</think>5", False, True, "2+3=5", "5"),
    ("\n <think>\n2+3=5\n</think>\n\n5\n", False, True, "2+3=5", "5"),
    ("<think></think>5", False, True, "", "5"),
    ("<think>a</think>5<|end|>", False, True, "a", "5"),
    ("<think>a</think>5<|im_end|>\n<|endoftext|><|pad|>", False, True, "a", "5"),
    ("a</think>5", True, True, "a", "5"),
    ("a</think>5", False, False, "a", "5"),
    ("<think>a</think>5", True, False, "a", "5"),
    ("still thinking", True, False, "still thinking", ""),
    ("<think>still thinking<|end|>", False, False, "still thinking", ""),
    ("<think>a</think><|end|>", False, False, "a", ""),
    ("5", False, False, "", "5"),
    ("So <think>a</think>5", False, False, "a", "5"),
    ("<think>a</think>5</think>6", False, False, "a", "6"),
    ("<think>a</think>5 <think>b", False, False, "a", "5"),
    ("<THINK>a</THINK>5", False, False, "", "<THINK>a</THINK>5"),
    ("", False, False, "", ""),
]


@pytest.mark.parametrize(("completion", "opened", "valid", "thought", "answer"), CASES)
def test_split_thought(completion, opened, valid, thought, answer):
    result = split_thought(completion, opened=opened)
    assert (result.valid, result.thought, result.answer) == (valid, thought, answer)


def test_long_runs_of_blanks_are_linear():
    # A pattern with nested blanks would need minutes here.
    result = split_thought("<think>a</think>5" + " \n" * 200_000 + "x" + "\n" * 200_000)
    assert result.answer.startswith("5") and result.answer.endswith("x")


def test_shared_cases(shared_dir):
    failures = []
    for line in (shared_dir / "cases" / "format_cases.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        texts = [row["completion"], *(["".join(row["pieces"])] if "pieces" in row else [])]
        for text in texts:
            result = split_thought(text, opened=row["prompt_ends_with_think"])
            if (result.valid, result.thought, result.answer) != (row["valid"], row["think"], row["answer"]):
                failures.append((row["id"], result))
    assert failures == []


@pytest.mark.parametrize(
    ("prompt", "opens"),
    [
        ("<|user|>2+2=?<|end|><|assistant|>", False),
        ("<|user|>2+2=?<|end|><|assistant|><think>", True),
        ("<|im_start|>user\n2+2=?<|im_end|>\n<|im_start|>assistant\n<think>\n", True),
        # a thought that was begun in the prompt
        ("<|im_start|>user\n2+2=?<|im_end|>\n<|im_start|>assistant\n<think>\nOkay, let me see", True),
        # an empty block: thinking is switched off
        ("<|im_start|>user\n2+2=?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n", False),
        # tags that are only mentioned
        ("<|im_start|>system\nUse <think> tags.<|im_end|>\n<|im_start|>assistant\n", False),
        ("Think between <think> and </think>. User: 2+2=? Assistant:", False),
        ("Think between <think> and </think>. User: 2+2=? Assistant: <think>", True),
        ("Use the <think> tag. 2+2=?", False),
        ("", False),
    ],
)
def test_prompt_opens_thought(prompt, opens):
    assert prompt_opens_thought(prompt) is opens


def test_completion_text_keeps_plain_text():
    assert completion_text("<think>a</think>b") == "<think>a</think>b"
    assert completion_text([{"role": "assistant", "content": "<think>a</think>b"}]) == "<think>a</think>b"


def test_completion_text_puts_parsed_reasoning_back():
    message = {"role": "assistant", "reasoning_content": "a", "content": "b"}
    assert completion_text([message]) == "<think>a</think>b"
    assert completion_text([{"role": "assistant", "thinking": "a", "content": None}]) == "<think>a</think>"
    # the prompt wrote the opening tag, the model did not
    assert completion_text([message], opened=True) == "a</think>b"


def test_completion_text_joins_assistant_turns_and_blocks():
    completion = [
        {"role": "assistant", "content": [{"type": "text", "text": "call"}]},
        {"role": "tool", "content": "4"},
        {"role": "assistant", "content": "It is 4."},
    ]
    assert completion_text(completion) == "call\nIt is 4."
    assert completion_text([]) == ""
