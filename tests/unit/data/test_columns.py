import pytest
from datasets import Dataset

from trl_reasoning.data import DataError, check_columns


USER = {"role": "user", "content": "q"}
ASSISTANT = {"role": "assistant", "content": "a"}
ACCURACY = {"solution": "reward accuracy"}


def error_of(rows, kind, needed=()):
    with pytest.raises(DataError) as caught:
        check_columns(Dataset.from_list(rows), kind, needed)
    return str(caught.value)


@pytest.mark.parametrize(
    ("rows", "kind", "mentions"),
    [
        # b039, b040, b043, b046, b047, b054 of the published table of bad recipes
        ([{"question": "1+1?", "solution": "2"}], "policy", ["prompt", "question", "solution", "prompt_template:"]),
        ([{"prompt": "1+1?", "answer": "2"}], "policy", ["accuracy", "columns: {solution: answer}"]),
        ([{"prompt": "q", "chosen": "a"}], "preference", ["rejected"]),
        ([{"conversations": [{"from": "human", "value": "q"}]}], "sft", ["conversations", "messages", "dataset.map"]),
        ([{"messages": [USER]}], "sft", ["assistant", "row 0"]),
        ([], "policy", ["empty"]),
        ([{"problem": "1+1?", "solution": "2"}], "policy", ["columns: {prompt: problem}"]),
        ([{"messages": [USER, ASSISTANT]}, {"messages": [USER]}], "sft", ["assistant", "row 1"]),
        ([{"messages": [{"from": "human", "value": "q"}]}], "sft", ["row 0", "role", "content", "human"]),
        ([{"messages": "q"}], "sft", ["row 0", "list of messages"]),
        ([{"prompt": [USER], "completion": [USER]}], "sft", ["assistant", "row 0", "completion"]),
        ([{"prompt": [USER], "completion": "a"}], "sft", ["prompt", "completion", "conversational"]),
        ([{"prompt": "q", "answer": "a"}], "sft", ["completion", "columns: {completion: answer}"]),
        ([{"text": "q a"}], "sft", ["text", "assistant", "messages"]),
        ([{"prompt": "q", "solution": "2"}, {"prompt": "", "solution": "2"}], "policy", ["row 1", "empty"]),
        ([{"prompt": "q", "solution": "2"}, {"prompt": None, "solution": "2"}], "policy", ["row 1", "string"]),
        ([{"prompt": 5, "solution": "2"}], "policy", ["row 0", "int 5"]),
    ],
)
def test_what_is_missing_is_named(rows, kind, mentions):
    message = error_of(rows, kind, ACCURACY if kind == "policy" else ())
    for word in mentions:
        assert word in message


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"prompt": "1+1?", "solution": "2"}, "policy"),
        ({"prompt": [USER], "solution": "2"}, "policy"),
        ({"prompt": [USER], "solution": "2"}, "evaluation"),
        ({"messages": [USER, ASSISTANT]}, "sft"),
        ({"prompt": [USER], "completion": [ASSISTANT]}, "sft"),
        ({"prompt": "q", "completion": "a"}, "sft"),
        ({"prompt": [USER], "chosen": [ASSISTANT], "rejected": [{**ASSISTANT, "content": "3"}]}, "preference"),
    ],
)
def test_good_rows_pass(row, kind):
    check_columns(Dataset.from_list([row]), kind, ["solution"] if "solution" in row else [])


def test_an_unknown_method_kind():
    with pytest.raises(ValueError, match="method_kind"):
        check_columns(Dataset.from_list([{"prompt": "q"}]), "grpo")


def test_the_sharegpt_recipe_works():
    rows = Dataset.from_list([{"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}])
    message = error_of(rows.to_list(), "sft")
    code = message.partition("Convert once: ")[2]
    converted = eval(code, {"dataset": rows})
    assert converted.to_list() == [{"messages": [USER, ASSISTANT]}]
    check_columns(converted, "sft")
