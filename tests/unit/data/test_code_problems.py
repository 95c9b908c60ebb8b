import pytest
from datasets import Dataset

from trl_reasoning.data import ADAPTERS, DataError


def adapt(name, row):
    return ADAPTERS[name](Dataset.from_list([row])).to_list()


def test_humaneval():
    row = {
        "task_id": "HumanEval/0",
        "prompt": 'def up(x):\n    """Add one."""\n',
        "entry_point": "up",
        "canonical_solution": "    return x + 1\n",
        "test": "def check(candidate):\n    assert candidate(1) == 2\n",
    }
    [found] = adapt("humaneval", row)
    assert found.pop("question").endswith('```python\ndef up(x):\n    """Add one."""\n```')
    assert found == {
        "task_id": "HumanEval/0",
        "solution": row["prompt"] + row["canonical_solution"],
        "tests": [row["test"]],
        "entry_point": "up",
        "code_prompt": row["prompt"],
    }
    with pytest.raises(DataError, match="row 0: `test` should be a non-empty string"):
        adapt("humaneval", {**row, "test": " "})


def test_mbpp_shows_one_test():
    row = {
        "text": "Add one.",
        "code": "def up(x): return x + 1",
        "test_list": ["assert up(1) == 2", "assert up(5) == 6"],
    }
    [found] = adapt("mbpp", {**row, "test_setup_code": "import math", "challenge_test_list": []})
    question = found.pop("question")
    assert question.startswith("Add one. ") and "up(1)" in question and "up(5)" not in question
    assert found == {"solution": row["code"], "tests": row["test_list"], "test_setup": "import math"}
    with pytest.raises(DataError, match="`test_list` should be a list of asserts"):
        adapt("mbpp", {**row, "test_list": []})
