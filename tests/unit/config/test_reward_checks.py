import pytest
from datasets import Dataset

from trl_reasoning.config.errors import RecipeError
from trl_reasoning.config.reward_checks import check_ready, check_tests
from trl_reasoning.config.rewards import make_rewards
from trl_reasoning.data import DataError
from trl_reasoning.rewards.code import bubblewrap_problem


@pytest.fixture
def no_bubblewrap(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    bubblewrap_problem.cache_clear()
    yield
    bubblewrap_problem.cache_clear()


def test_a_missing_sandbox_stops_the_recipe(no_bubblewrap):
    rewards = make_rewards(["accuracy", "code_tests"])
    with pytest.raises(RecipeError, match=r"reward_funcs\[1\].*no sandbox.*allow_unsandboxed: true"):
        check_ready(rewards)
    routed = make_rewards([{"name": "code_tests", "for": {"scenario": "code"}}])
    with pytest.raises(RecipeError, match="no sandbox"):
        check_ready(routed)
    check_ready(make_rewards([{"name": "code_tests", "allow_unsandboxed": True}]))
    check_ready(make_rewards(["accuracy"]))


def test_rows_whose_tests_cannot_be_run_stop_the_recipe():
    good = {"prompt": "?", "tests": ["assert f(1) == 1"]}
    bad = {"prompt": "?", "tests": ["assert Stack().size == 1"]}
    rewards = make_rewards(["code_tests"])
    check_tests(Dataset.from_list([good] * 99 + [bad]), rewards)
    with pytest.raises(DataError, match=r"3 of 100 rows cannot be run; the first is row 97: .*only data comes back"):
        check_tests(Dataset.from_list([good] * 97 + [bad] * 3), rewards)


def test_only_the_rows_of_the_reward_are_looked_at():
    rows = [{"tests": ["assert f(1) == 1"], "kind": "code"}, {"tests": ["no code ("], "kind": "math"}]
    check_tests(Dataset.from_list(rows), make_rewards([{"name": "code_tests", "for": {"kind": "code"}}]))
    with pytest.raises(DataError, match="1 of 2 rows"):
        check_tests(Dataset.from_list(rows), make_rewards(["code_tests"]))


def test_the_optional_columns_are_read():
    rows = [{"tests": "def check(candidate):\n    assert candidate(1) == help(1)", "entry_point": "f"}]
    check_tests(Dataset.from_list(rows), make_rewards(["code_tests"]))
    with pytest.raises(DataError, match="needs an `entry_point`"):
        check_tests(Dataset.from_list(rows).remove_columns("entry_point"), make_rewards(["code_tests"]))
    pairs = Dataset.from_list([{"tests": [{"input": "1", "output": "2"}]}])
    check_tests(pairs, make_rewards([{"name": "code_tests", "kind": "stdin"}]))
    with pytest.raises(DataError, match="expected Python code"):
        check_tests(pairs, make_rewards(["code_tests"]))
