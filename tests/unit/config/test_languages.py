import pytest
from datasets import Dataset

from trl_reasoning.config.languages import check_languages
from trl_reasoning.config.rewards import make_rewards
from trl_reasoning.data import DataError


REWARD = {"name": "language_consistency", "language": "en", "column": "lang"}


def test_rows_with_an_unknown_language_stop_the_recipe():
    rewards = make_rewards(["accuracy", REWARD])
    check_languages(Dataset.from_dict({"lang": ["en", "zh", None, ""]}), rewards)
    with pytest.raises(DataError, match=r"^column `lang`: row 1 has 'zh-CN'; .*expects one of ar, .*nothing for 'en'"):
        check_languages(Dataset.from_dict({"lang": ["en", "zh-CN"]}), rewards)


def test_only_the_rows_of_the_reward_are_looked_at():
    rows = Dataset.from_dict({"lang": ["en", "python"], "kind": ["math", "code"]})
    check_languages(rows, make_rewards([{**REWARD, "for": {"kind": "math"}}]))
    check_languages(rows, make_rewards([{"name": "language_consistency", "by": "script"}]))
