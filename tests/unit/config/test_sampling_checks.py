"""`sampling` in a recipe: the data's difficulties, the reward that decides on success, and what belongs together."""

import pytest

from trl_reasoning.config import RecipeError


CURRICULUM = {"sampling": "curriculum", "difficulty_column": "difficulty"}


def test_a_curriculum_on_the_chain_task(prepared) -> None:
    args = prepared(**CURRICULUM, curriculum_steps=10).args
    assert (args.sampling, args.curriculum, args.curriculum_steps) == ("curriculum", "easy_to_hard", 10.0)


@pytest.mark.parametrize("name", ["format", "format_reward"])
def test_the_reward_that_decides(name: str, prepared) -> None:
    run = prepared(sampling="prioritized", reward_funcs=["accuracy", "format"], success_reward=name)
    assert run.args.success_reward == name


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"sampling": "priority"}, "sampling", "prioritized"),
        ({"sampling": "curriculum"}, "difficulty_column", "missing"),
        ({"curriculum_steps": 10}, "curriculum_steps", "read with `sampling: curriculum` only"),
        ({**CURRICULUM, "difficulty_column": "dificulty"}, "difficulty_column", "did you mean 'difficulty'"),
        ({"sampling": "prioritized", "success_reward": "acuracy"}, "success_reward", "Did you mean `accuracy_reward`"),
        ({"sampling": "prioritized", "shuffle_dataset": False}, "shuffle_dataset", "keeps the order"),
    ],
)
def test_what_is_refused_names_the_key(changes: dict, key: str, words: str, prepared) -> None:
    with pytest.raises(RecipeError) as caught:
        prepared(**changes)
    assert caught.value.key == key
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("levels", "row", "shown"),
    [([1, 2, None, 4], 2, "None"), (["1", "2", "3", "4"], 0, "'1'"), ([1, float("nan"), 3, 4], 1, "nan")],
)
def test_a_row_without_a_number_is_named(levels: list, row: int, shown: str, prepared, write_rows) -> None:
    rows = [{"prompt": f"{level}=?", "solution": "1", "level": level} for level in levels]
    with pytest.raises(RecipeError) as caught:
        prepared(datasets=write_rows(rows), sampling="curriculum", difficulty_column="level")
    assert caught.value.key == "difficulty_column"
    assert f"row {row}: expected a finite number, got {shown}" in str(caught.value)
