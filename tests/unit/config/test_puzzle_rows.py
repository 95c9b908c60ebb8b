"""Tasks of reasoning-gym in a recipe: mixtures, held-out problems, and their verdicts."""

import pytest

from trl_reasoning.config import RecipeError
from trl_reasoning.evaluation import load_task, task_source
from trl_reasoning.generation.verdicts import judge_texts


SORTING = {"path": "reasoning_gym:number_sorting", "size": 6, "params": {"max_numbers": 3}}
SUMS = {"path": "reasoning_gym:chain_sum", "size": 6, "params": {"max_terms": 2}}


def test_several_tasks_in_one_mixture(prepared):
    run = prepared(datasets=[SORTING, SUMS], prompt_template="none", reward_funcs=["reasoning_gym"])
    assert set(run.train_dataset["task"]) == {"number_sorting", "chain_sum"}
    assert run.reward_funcs[0].columns == ("puzzle",)


def test_countdown_beside_another_task_is_told_apart_by_its_name(prepared):
    countdown = {"path": "reasoning_gym:countdown", "size": 3, "params": {"max_numbers": 4}}
    rewards = [
        {"name": "countdown", "for": {"task": "countdown"}},
        {"name": "reasoning_gym", "for": {"task": "chain_sum"}},
    ]
    run = prepared(datasets=[countdown, SUMS], prompt_template="none", reward_funcs=rewards)
    assert run.train_dataset["nums"][-1] is None and len(run.train_dataset["nums"][0]) == 4
    with pytest.raises(RecipeError, match=r"datasets\[1\].*no column `target`, which reward countdown needs"):
        prepared(datasets=[countdown, SUMS], prompt_template="none", reward_funcs=["countdown"])


def test_held_out_problems_are_the_test_split_and_no_mathematics(prepared):
    sorting = {"task": "reasoning_gym:number_sorting", "params": {"size": 4, "max_numbers": 3}, "every": 1}
    run = prepared(datasets=[SORTING], prompt_template="none", reward_funcs=["reasoning_gym"], heldout=sorting)
    assert len(run.heldout) == 4
    assert not set(run.heldout["question"]) & set(run.train_dataset["question"])
    assert all(puzzle for puzzle in run.heldout["puzzle"])


def test_held_out_problems_of_both_kinds(prepared):
    chain = {"path": "builtin:chain", "split": "heldout", "size": 5}
    sums = {**SUMS, "split": "test", "size": 5}
    run = prepared(
        datasets=[SUMS], prompt_template="none", reward_funcs=["reasoning_gym"],
        heldout={"datasets": [chain, sums], "every": 1},
    )  # fmt: skip
    assert [puzzle is None for puzzle in run.heldout["puzzle"]] == [True] * 5 + [False] * 5


def test_a_task_for_evaluation():
    source = task_source("reasoning_gym:chain_sum", params={"size": 3, "seed": 4})
    assert source == {"path": "reasoning_gym:chain_sum", "split": "test", "size": 3, "params": {"seed": 4}}
    rows = load_task(source)
    assert rows["prompt"][0] == [{"role": "user", "content": rows["question"][0]}]
    assert task_source("reasoning_gym:aiw", split="train")["split"] == "train"


def test_samples_are_judged_by_the_rules_of_their_row():
    rows = load_task(task_source("reasoning_gym:number_sorting", params={"size": 1, "max_numbers": 3}))
    gold, puzzle = rows["solution"][0], rows["puzzle"][0]
    texts = [f"<answer>{gold}</answer>", "<answer>[]</answer>", r"\boxed{4}", r"\boxed{5}", "<think>"]
    verdicts = judge_texts(
        texts, [gold, gold, "4", "4", gold], [puzzle, puzzle, None, None, puzzle], [False] * 5, kind="auto"
    )
    assert [verdict.status for verdict in verdicts] == ["right", "wrong", "right", "wrong", "unparsed"]
    assert judge_texts([], [], [], []) == []
