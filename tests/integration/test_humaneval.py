"""The reward for code on HumanEval: every reference solution is right, and no empty function is."""

import pytest

from trl_reasoning.data import load_source
from trl_reasoning.rewards.code import bubblewrap_problem, make_code_tests_reward


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rows(shared_dir):
    if bubblewrap_problem() is not None:
        pytest.skip(f"needs a working bubblewrap: {bubblewrap_problem()}")
    return load_source({"path": str(shared_dir / "data" / "humaneval.jsonl.gz"), "adapter": "humaneval"})


def scores(rows, completions, credit):
    columns = {name: list(rows[name]) for name in ("tests", "entry_point", "code_prompt")}
    reward = make_code_tests_reward(credit=credit, seconds=30)
    return reward([""] * len(rows), completions, [[1]] * len(rows), **columns)


@pytest.mark.parametrize("credit", ["strict", "partial"])
def test_every_reference_solution_is_right(rows, credit):
    assert len(rows) == 164
    assert scores(rows, [f"```python\n{code}```" for code in rows["solution"]], credit) == [1.0] * 164


def test_a_completion_may_continue_the_prompt(rows):
    bodies = [code.removeprefix(prompt) for code, prompt in zip(rows["solution"], rows["code_prompt"], strict=True)]
    assert scores(rows, bodies, "strict") == [1.0] * 164


def test_no_empty_function_is_right(rows):
    assert scores(rows, ["```python\n    return None\n```"] * 164, "strict") == [0.0] * 164
